package attn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/kernel/kerneltest"
	"bmoe/engine/pool"
	"bmoe/engine/quant"
)

// newTestKV returns an empty cache on its own memory, filled with what a
// reused page may hold.
func newTestKV(t testing.TB, s KVSpec) *KV {
	t.Helper()
	n, err := s.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	mem := make([]byte, n)
	for i := range mem {
		mem[i] = 0x7f // a NaN as f16; as f32 3.4e38
	}
	kv, err := NewKV(s, mem)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// attnCase is a cache with its keys and values, and the queries of every position.
type attnCase struct {
	spec    Spec
	kvType  KVType
	n       int
	q, k, v []float32
	window  int       // 0: none
	sinks   []float32 // nil: none
	set     isa.Set   // of the kernels
}

func newAttnCase(seed uint64, s Spec, kvType KVType, n int, sharp float64) *attnCase {
	rng := rand.New(rand.NewPCG(seed, 11))
	return &attnCase{spec: s, set: isa.Best(), kvType: kvType, n: n, q: kerneltest.Randoms(rng, n*s.Heads*s.KeyDim, sharp), k: kerneltest.Randoms(rng, n*s.KVHeads*s.KeyDim, sharp), v: kerneltest.Randoms(rng, n*s.KVHeads*s.ValDim, 2)}
}

func (c *attnCase) cache(t testing.TB) *KV {
	return newTestKV(t, KVSpec{Heads: c.spec.KVHeads, KeyDim: c.spec.KeyDim, ValDim: c.spec.ValDim, Ctx: c.n, Window: c.window, Type: c.kvType})
}

func (c *attnCase) fill(t testing.TB, kv *KV, to int) {
	t.Helper()
	kd, vd := c.spec.KVHeads*c.spec.KeyDim, c.spec.KVHeads*c.spec.ValDim
	for p := kv.Len(); p < to; p++ {
		if err := kv.Append(p, c.k[p*kd:][:kd], c.v[p*vd:][:vd]); err != nil {
			t.Fatal(err)
		}
	}
}

// reference computes position p's output in float64, from keys, values and
// queries rounded as the cache's type rounds them.
func (c *attnCase) reference(p int) []float64 {
	s := c.spec
	half := func(x float32) float64 {
		if c.kvType == KVF32 {
			return float64(x)
		}
		return float64(quant.F16ToF32(quant.F32ToF16(x)))
	}
	stored := func(row []float32) []float64 {
		out := make([]float64, len(row))
		for i, x := range row {
			out[i] = half(x)
		}
		if c.kvType == KVQ8_0 {
			for g := 0; g < len(row); g += 32 {
				part := row[g:min(g+32, len(row))]
				top := 0.0
				for _, x := range part {
					top = max(top, math.Abs(float64(x)))
				}
				for i, x := range part {
					out[g+i] = math.RoundToEven(float64(x)/(top/127)) * (top / 127)
				}
			}
		}
		return out
	}
	out := make([]float64, s.Heads*s.ValDim)
	for h := range s.Heads {
		kvh := h / (s.Heads / s.KVHeads)
		q := c.q[(p*s.Heads+h)*s.KeyDim:][:s.KeyDim]
		scores := make([]float64, p+1)
		top := math.Inf(-1)
		if c.sinks != nil {
			top = float64(c.sinks[h])
		}
		for j := range scores {
			if c.window > 0 && p-j >= c.window {
				scores[j] = math.Inf(-1)
				continue
			}
			key := stored(c.k[(j*s.KVHeads+kvh)*s.KeyDim:][:s.KeyDim])
			for i := range q {
				scores[j] += half(q[i]) * key[i]
			}
			scores[j] *= float64(s.Scale)
			top = max(top, scores[j])
		}
		sum := 0.0
		if c.sinks != nil {
			sum = math.Exp(float64(c.sinks[h]) - top)
		}
		for j, sc := range scores {
			w := math.Exp(sc - top)
			sum += w
			val := stored(c.v[(j*s.KVHeads+kvh)*s.ValDim:][:s.ValDim])
			for i := range val {
				out[h*s.ValDim+i] += w * val[i]
			}
		}
		for i := range s.ValDim {
			out[h*s.ValDim+i] /= sum
		}
	}
	return out
}

// outputs runs the positions in batches of the given size and returns all outputs.
func (c *attnCase) outputs(t testing.TB, workers, batch int, reserve bool) []float32 {
	t.Helper()
	p := pool.New(workers)
	defer p.Close()
	a, err := New(c.spec, workers)
	if err != nil {
		t.Fatal(err)
	}
	a.set = c.set
	if reserve {
		a.Reserve(c.n)
	}
	kv := c.cache(t)
	batch = min(batch, kv.Batch())
	out := make([]float32, c.n*c.spec.Heads*c.spec.ValDim)
	for pos := 0; pos < c.n; pos += batch {
		n := min(batch, c.n-pos)
		c.fill(t, kv, pos+n)
		qd, od := c.spec.Heads*c.spec.KeyDim, c.spec.Heads*c.spec.ValDim
		a.Run(p, kv, out[pos*od:][:n*od], c.q[pos*qd:][:n*qd], c.sinks, n, pos)
	}
	return out
}

var attnShapes = []Spec{
	{Heads: 4, KVHeads: 1, KeyDim: 16, ValDim: 16, Scale: 0.25},
	{Heads: 4, KVHeads: 2, KeyDim: 32, ValDim: 32, Scale: 0.17},
	{Heads: 3, KVHeads: 3, KeyDim: 20, ValDim: 24, Scale: 0.2},
	{Heads: 16, KVHeads: 1, KeyDim: 48, ValDim: 33, Scale: 0.1},
	{Heads: 8, KVHeads: 1, KeyDim: 80, ValDim: 64, Scale: 0.1},
}

func TestAttentionAgreesWithFloat64(t *testing.T) {
	kerneltest.EachSet(t, attentionAgreesWithFloat64)
}

func attentionAgreesWithFloat64(t *testing.T, set isa.Set) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		for _, s := range attnShapes {
			for _, sharp := range []float64{0.3, 3} {
				c := newAttnCase(1, s, kvType, 150, sharp)
				c.set = set
				got := c.outputs(t, 1, 150, false)
				tol := 3e-6
				if kvType != KVF32 {
					tol = 2e-3 // weights are rounded to 11 bits
				}
				for _, p := range []int{0, 1, 63, 64, 65, 149} {
					want := c.reference(p)
					for i, w := range want {
						if g := float64(got[p*len(want)+i]); !(math.Abs(g-w) <= tol) {
							t.Fatalf("%v %+v sharp %v: position %d entry %d is %v, want %v", kvType, s, sharp, p, i, g, w)
						}
					}
				}
			}
		}
	}
}

// Batches, workers and the way in which work is cut leave every bit as it is.
func TestAttentionBitsDependOnNothing(t *testing.T) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		for i, s := range attnShapes {
			c := newAttnCase(uint64(i), s, kvType, 140, 4)
			want := c.outputs(t, 1, 140, false)
			for _, run := range []struct{ workers, batch int }{{1, 1}, {1, 7}, {2, 64}, {3, 7}, {3, 1}} {
				what := fmt.Sprintf("%v %+v batch %d workers %d", kvType, s, run.batch, run.workers)
				kerneltest.WantBits(t, what, c.outputs(t, run.workers, run.batch, true), want)
			}
			kerneltest.Parity(t, "attention", func(i isa.Set) []float32 { c.set = i; return c.outputs(t, 2, 140, false) })
		}
	}
}

// Contexts beyond one span are computed whole by one worker, and in parts by
// several.
func TestAttentionBitsAcrossSpans(t *testing.T) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		s := Spec{Heads: 4, KVHeads: 2, KeyDim: 16, ValDim: 16, Scale: 0.25}
		c := newAttnCase(77, s, kvType, 1200, 6)
		want := c.outputs(t, 1, 1200, false)
		split := 0
		kerneltest.WantBits(t, "batches of 256", c.outputs(t, 2, 256, true), want)
		// One token at a time, the keys spread over workers.
		p := newTestPool(t, 3)
		a, err := New(s, 3)
		if err != nil {
			t.Fatal(err)
		}
		a.Reserve(c.n)
		kv := c.cache(t)
		out := make([]float32, s.Heads*s.ValDim)
		for _, pos := range []int{0, 300, 511, 512, 513, 1023, 1024, 1199} {
			c.fill(t, kv, pos+1)
			a.Run(p, kv, out, c.q[pos*s.Heads*s.KeyDim:][:s.Heads*s.KeyDim], c.sinks, 1, pos)
			if a.split {
				split++
			}
			kerneltest.WantBits(t, fmt.Sprintf("%v position %d alone", kvType, pos), out, want[pos*len(out):][:len(out)])
		}
		if split != 5 {
			t.Fatalf("the keys were spread in %d of 5 cases", split)
		}
	}
}

// windows are cases of what a layer with a window and sinks computes: windows of one
// key, within a block, at its borders, over several, and over more than a span.
func windowCases(kvType KVType) []*attnCase {
	var cases []*attnCase
	s := Spec{Heads: 4, KVHeads: 2, KeyDim: 16, ValDim: 16, Scale: 0.25}
	for i, w := range []int{1, 2, 6, 63, 64, 65, 66, 128, 200, 600} {
		c := newAttnCase(uint64(100+i), s, kvType, min(4*w+150, 900), 4)
		c.window = w
		if i%2 == 0 {
			c.sinks = []float32{-3, 0.5, 2, 9} // of little weight to nearly all
		}
		cases = append(cases, c)
	}
	return cases
}

func TestWindowsAndSinksAgreeWithFloat64(t *testing.T) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		for _, c := range windowCases(kvType) {
			got := c.outputs(t, 1, 64, false)
			tol := 3e-6
			if kvType != KVF32 {
				tol = 2e-3
			}
			for _, p := range []int{0, 1, c.window - 1, c.window, c.window + 1, 63, 64, 65, c.n / 2, c.n - 1} {
				want := c.reference(p)
				for i, w := range want {
					if g := float64(got[p*len(want)+i]); !(math.Abs(g-w) <= tol) {
						t.Fatalf("%v, window %d: position %d entry %d is %v, want %v", kvType, c.window, p, i, g, w)
					}
				}
			}
		}
	}
}

// A ring of the window's keys gives the bits that all keys give, whatever the
// batches and workers, and keeps no more than it needs.
func TestWindowBitsDependOnNothing(t *testing.T) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		for _, c := range windowCases(kvType) {
			want := c.outputs(t, 1, 64, false)
			for _, run := range []struct{ workers, batch int }{{1, 1}, {2, 7}, {3, 64}, {3, 1}} {
				kerneltest.WantBits(t, fmt.Sprintf("%v, window %d, batch %d, workers %d", kvType, c.window, run.batch, run.workers), c.outputs(t, run.workers, run.batch, true), want)
			}
			kerneltest.Parity(t, "attention in a window", func(i isa.Set) []float32 { c.set = i; return c.outputs(t, 1, 64, false) })
			kv := c.cache(t)
			if most := (c.window+windowBatch)/kvBlock + 2; kv.ring > most {
				t.Errorf("window %d keeps %d blocks", c.window, kv.ring)
			}
		}
	}
}

// A windowed cache goes back as far as its keys reach, and beyond that to what a
// mark has saved; what it then computes has the bits of a cache that never went on.
func TestWindowGoesBack(t *testing.T) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		for _, c := range windowCases(kvType) {
			want := c.outputs(t, 1, 64, false)
			p := newTestPool(t, 1)
			a, err := New(c.spec, 1)
			if err != nil {
				t.Fatal(err)
			}
			od, qd := c.spec.Heads*c.spec.ValDim, c.spec.Heads*c.spec.KeyDim
			from := func(kv *KV, pos int) {
				out := make([]float32, od)
				for ; pos < min(c.n, pos+70); pos++ {
					c.fill(t, kv, pos+1)
					a.Run(p, kv, out, c.q[pos*qd:][:qd], c.sinks, 1, pos)
					kerneltest.WantBits(t, fmt.Sprintf("%v, window %d, position %d", kvType, c.window, pos), out, want[pos*od:][:od])
					if pos%64 == 40 {
						break
					}
				}
			}
			kv := c.cache(t)
			at := c.n / 3
			c.fill(t, kv, at)
			mark := make([]byte, kv.MarkBytes())
			kv.Save(mark)
			c.fill(t, kv, c.n)
			reached := c.n
			for reached > 0 && kv.Reaches(reached-1) {
				reached--
			}
			if reached > c.n-1 || reached == 0 && kv.ring*kvBlock < c.n {
				t.Errorf("window %d: of %d positions it reaches back to %d", c.window, c.n, reached)
			}
			kv.Truncate(reached)
			from(kv, reached)
			kv.Load(mark, at)
			if kv.Len() != at || !kv.Reaches(at) {
				t.Fatalf("window %d: loaded to %d, want %d", c.window, kv.Len(), at)
			}
			from(kv, at)
			kv.Truncate(0)
			from(kv, 0)
		}
	}
}

// FuzzAttention computes one context in one batch and in uneven ones, on every path.
func FuzzAttention(f *testing.F) {
	for i := range 12 {
		f.Add(uint64(i), uint8(i), uint8(3*i), uint8(40*i))
	}
	f.Fuzz(func(t *testing.T, seed uint64, shape, dims, length uint8) {
		s := Spec{KVHeads: 1 + int(shape)%3, KeyDim: 1 + int(dims)%70, ValDim: 1 + int(dims/2)%50, Scale: 0.3}
		s.Heads = s.KVHeads * (1 + int(shape)/3%9)
		c := newAttnCase(seed, s, KVType(seed%3), 1+int(length), float64(1+seed%30))
		want := c.outputs(t, 1, c.n, false)
		kerneltest.WantBits(t, "uneven batches", c.outputs(t, 2, 1+int(seed>>8)%9, true), want)
		kerneltest.Parity(t, "attention", func(i isa.Set) []float32 { c.set = i; return c.outputs(t, 1, 100, false) })
	})
}

// A score that dwarfs those before it shrinks their sum to nothing; what is
// left must not depend on the sign of a zero.
func TestAttentionWithExtremeScores(t *testing.T) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		s := Spec{Heads: 8, KVHeads: 2, KeyDim: 16, ValDim: 20, Scale: 1}
		c := newAttnCase(5, s, kvType, 140, 40)
		for i := range c.v {
			if i%3 == 0 {
				c.v[i] = float32(math.Copysign(0, float64(c.v[i])))
			}
		}
		want := c.outputs(t, 1, 140, false)
		for _, batch := range []int{1, 3, 50} {
			kerneltest.WantBits(t, fmt.Sprintf("%v batch %d", kvType, batch), c.outputs(t, 2, batch, true), want)
		}
		for i, v := range want {
			if v != v {
				t.Fatalf("%v: number %d is NaN", kvType, i)
			}
		}
	}
}

func TestAttentionPassesNaNOn(t *testing.T) {
	c := newAttnCase(6, attnShapes[0], KVF16, 10, 1)
	c.q[5*c.spec.Heads*c.spec.KeyDim] = float32(math.NaN())
	out := c.outputs(t, 1, 10, false)
	od := c.spec.Heads * c.spec.ValDim
	if v := out[5*od]; v == v {
		t.Fatalf("a NaN in a query gave %v", v)
	}
	if v := out[4*od]; v != v {
		t.Fatal("a NaN in one query reached another")
	}
}

func TestKVTruncateAndAppend(t *testing.T) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		s := attnShapes[1]
		c := newAttnCase(3, s, kvType, 100, 2)
		other := newAttnCase(4, s, kvType, 100, 2)
		kv := c.cache(t)
		c.fill(t, kv, 40)
		other.fill(t, kv, 90)
		kv.Truncate(40)
		kv.Truncate(95)
		if kv.Len() != 40 {
			t.Fatalf("length %d after Truncate(40)", kv.Len())
		}
		c.fill(t, kv, 100)
		p := newTestPool(t, 1)
		a, err := New(s, 1)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 100*s.Heads*s.ValDim)
		a.Run(p, kv, got, c.q, nil, 100, 0)
		kerneltest.WantBits(t, fmt.Sprintf("%v after Truncate", kvType), got, c.outputs(t, 1, 100, false))
	}
}

func TestKVRefusesNonsense(t *testing.T) {
	good := KVSpec{Heads: 2, KeyDim: 8, ValDim: 8, Ctx: 10}
	kv := newTestKV(t, good)
	k, v := make([]float32, 16), make([]float32, 16)
	for _, pos := range []int{-1, 1, 10} {
		if kv.Append(pos, k, v) == nil {
			t.Errorf("position %d was accepted by an empty cache", pos)
		}
	}
	if kv.Append(0, k[:15], v) == nil || kv.Append(0, k, v[:8]) == nil {
		t.Error("a short key or value was accepted")
	}
	for p := range 10 {
		if err := kv.Append(p, k, v); err != nil {
			t.Fatal(err)
		}
	}
	if kv.Append(10, k, v) == nil {
		t.Error("a position beyond the context was accepted")
	}
	for _, s := range []KVSpec{{}, {Heads: 1, KeyDim: 8, ValDim: 8}, {Heads: -1, KeyDim: 8, ValDim: 8, Ctx: 4}, {Heads: 1, KeyDim: 8, ValDim: 8, Ctx: 4, Type: 7},
		{Heads: 1 << 24, KeyDim: 1 << 24, ValDim: 1 << 24, Ctx: 1 << 30}} {
		if n, err := s.Bytes(); err == nil {
			t.Errorf("%+v takes %d bytes", s, n)
		}
	}
	n, _ := good.Bytes()
	if _, err := NewKV(good, make([]byte, n-1)); err == nil {
		t.Error("too little memory was accepted")
	}
	if _, err := NewKV(good, make([]byte, n+1)[1:]); err == nil {
		t.Error("memory at an odd address was accepted")
	}
	for _, name := range []string{"f16", "f32", "q8_0"} {
		if kt, err := ParseKVType(name); err != nil || kt.String() != name {
			t.Errorf("%s parses as %v, %v", name, kt, err)
		}
	}
	if _, err := ParseKVType("q4_0"); err == nil {
		t.Error("q4_0 parses")
	}
}

func TestAttnRefusesNonsense(t *testing.T) {
	for _, s := range []Spec{
		{}, {Heads: 3, KVHeads: 2, KeyDim: 8, ValDim: 8, Scale: 1}, {Heads: 2, KVHeads: 2, KeyDim: 0, ValDim: 8, Scale: 1},
		{Heads: 2, KVHeads: 2, KeyDim: 8, ValDim: 8}, {Heads: 2, KVHeads: 2, KeyDim: 8, ValDim: 8, Scale: float32(math.Inf(1))},
		{Heads: 2, KVHeads: 2, KeyDim: 8, ValDim: 8, Scale: float32(math.NaN())},
	} {
		if _, err := New(s, 1); err == nil {
			t.Errorf("%+v was accepted", s)
		}
	}
}

func TestAttentionAllocatesNothing(t *testing.T) {
	s := Spec{Heads: 8, KVHeads: 2, KeyDim: 32, ValDim: 32, Scale: 0.2}
	c := newAttnCase(1, s, KVF16, 1100, 1)
	p := newTestPool(t, 2)
	a, err := New(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	a.Reserve(c.n)
	kv := c.cache(t)
	c.fill(t, kv, c.n-100)
	out := make([]float32, s.Heads*s.ValDim)
	kd, qd := s.KVHeads*s.KeyDim, s.Heads*s.KeyDim
	best := uint64(1 << 62)
	for range 3 {
		kv.Truncate(c.n - 100)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for pos := c.n - 100; pos < c.n; pos++ {
			if err := kv.Append(pos, c.k[pos*kd:][:kd], c.v[pos*kd:][:kd]); err != nil {
				t.Fatal(err)
			}
			a.Run(p, kv, out, c.q[pos*qd:][:qd], nil, 1, pos)
		}
		runtime.ReadMemStats(&after)
		best = min(best, after.Mallocs-before.Mallocs)
	}
	if best > 20 {
		t.Fatalf("100 tokens allocate %d times", best)
	}
}

// BenchmarkAttentionDecode is one token's attention in one layer of
// Qwen3-30B-A3B's shape. GB/s counts the keys and values read once.
func BenchmarkAttentionDecode(b *testing.B) {
	s := Spec{Heads: 32, KVHeads: 4, KeyDim: 128, ValDim: 128, Scale: 0.088388346}
	for _, kvType := range []KVType{KVF16, KVQ8_0, KVF32} {
		for _, ctx := range []int{512, 8192, 32768} {
			for _, workers := range []int{1, 2} {
				b.Run(fmt.Sprintf("%v/ctx=%d/workers=%d", kvType, ctx, workers), func(b *testing.B) {
					benchAttention(b, s, kvType, ctx, 1, workers)
				})
			}
		}
	}
}

// BenchmarkAttentionHeads is decode where every query head has its own keys.
func BenchmarkAttentionHeads(b *testing.B) {
	benchAttention(b, Spec{Heads: 16, KVHeads: 16, KeyDim: 128, ValDim: 128, Scale: 0.088388346}, KVF16, 8192, 1, 1)
}

// BenchmarkAttentionPrefill is the last 64 tokens of a prompt in one layer.
func BenchmarkAttentionPrefill(b *testing.B) {
	s := Spec{Heads: 32, KVHeads: 4, KeyDim: 128, ValDim: 128, Scale: 0.088388346}
	for _, ctx := range []int{512, 8192} {
		b.Run(fmt.Sprintf("ctx=%d", ctx), func(b *testing.B) { benchAttention(b, s, KVF16, ctx, 64, 1) })
	}
}

func benchAttention(b *testing.B, s Spec, kvType KVType, ctx, n, workers int) {
	kv := newTestKV(b, KVSpec{Heads: s.KVHeads, KeyDim: s.KeyDim, ValDim: s.ValDim, Ctx: ctx, Type: kvType})
	rng := rand.New(rand.NewPCG(1, 1))
	k, v := kerneltest.Randoms(rng, s.KVHeads*s.KeyDim, 1), kerneltest.Randoms(rng, s.KVHeads*s.ValDim, 1)
	for p := range ctx {
		k[p%len(k)], v[p%len(v)] = float32(rng.Float64()), float32(rng.Float64())
		if err := kv.Append(p, k, v); err != nil {
			b.Fatal(err)
		}
	}
	a, err := New(s, workers)
	if err != nil {
		b.Fatal(err)
	}
	a.Reserve(ctx)
	p := newTestPool(b, workers)
	q, out := kerneltest.Randoms(rng, n*s.Heads*s.KeyDim, 1), make([]float32, n*s.Heads*s.ValDim)
	for b.Loop() {
		a.Run(p, kv, out, q, nil, n, ctx-n)
	}
	macs := float64(n) * float64(ctx) * float64(s.Heads*(s.KeyDim+s.ValDim)) * float64(b.N)
	b.ReportMetric(macs/b.Elapsed().Seconds()/1e9, "GMAC/s")
	if n == 1 {
		bytes, _ := kv.Bytes()
		b.ReportMetric(float64(bytes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GB/s")
	}
}

// BenchmarkKVAppend stores one position of one layer of Qwen3-30B-A3B's shape.
func BenchmarkKVAppend(b *testing.B) {
	for _, kvType := range []KVType{KVF16, KVQ8_0, KVF32} {
		b.Run(kvType.String(), func(b *testing.B) {
			kv := newTestKV(b, KVSpec{Heads: 4, KeyDim: 128, ValDim: 128, Ctx: 4096, Type: kvType})
			x := kerneltest.Randoms(rand.New(rand.NewPCG(1, 1)), 512, 1)
			for b.Loop() {
				if kv.Len() == 4096 {
					kv.Truncate(0)
				}
				if err := kv.Append(kv.Len(), x, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func newTestPool(t testing.TB, workers int) *pool.Pool {
	p := pool.New(workers)
	t.Cleanup(p.Close)
	return p
}
