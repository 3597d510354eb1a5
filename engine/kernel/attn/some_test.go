package attn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"bmoe/engine/pool"
)

// The keys that a query sees can be any. If they are those up to its own, the bits are
// those of Run, with sinks and without; whatever they are, what the others hold does not
// matter, nor does the batch or the number of workers.
func TestRunSome(t *testing.T) {
	for _, kvType := range []KVType{KVF32, KVF16, KVQ8_0} {
		c := newAttnCase(5, Spec{Heads: 6, KVHeads: 2, KeyDim: 40, ValDim: 24, Scale: 0.2}, kvType, 700, 1)
		c.sinks = []float32{0, 1, -1, 3, 0.5, 2}
		kv := c.cache(t)
		c.fill(t, kv, c.n)
		words := (c.n + 63) / 64
		od := c.spec.Heads * c.spec.ValDim
		run := func(seen []uint64, workers, batch int) []float32 {
			p := pool.New(workers)
			defer p.Close()
			a, err := New(c.spec, workers)
			if err != nil {
				t.Fatal(err)
			}
			a.Reserve(c.n)
			out := make([]float32, c.n*od)
			for pos := 0; pos < c.n; pos += batch {
				n := min(batch, c.n-pos)
				a.RunSome(p, kv, out[pos*od:], c.q[pos*c.spec.Heads*c.spec.KeyDim:], c.sinks, seen[pos*words:][:n*words], nil, n)
			}
			return out
		}
		causal, some := make([]uint64, c.n*words), make([]uint64, c.n*words)
		rng := rand.New(rand.NewPCG(1, 2))
		for p := range c.n {
			for j := range p + 1 {
				causal[p*words+j/64] |= 1 << (j % 64)
				if p%5 > 0 && rng.IntN(9) == 0 && j%300 > 100 {
					some[p*words+j/64] |= 1 << (j % 64)
				}
			}
		}
		if !slices.Equal(run(causal, 2, 50), c.outputs(t, 1, 64, false)) {
			t.Errorf("%v: all keys up to a query's own give other bits than Run", kvType)
		}
		want := run(some, 1, c.n)
		for _, by := range [][2]int{{3, 1}, {2, 33}, {2, c.n}} {
			if !slices.Equal(run(some, by[0], by[1]), want) {
				t.Errorf("%v: %d workers, batches of %d: other bits", kvType, by[0], by[1])
			}
		}
		for _, v := range want[:od] { // the first query sees nothing
			if v != 0 {
				t.Fatalf("%v: a query that sees nothing gives %v", kvType, v)
			}
		}
		// A query that sees some keys of 699: in float64, from a case that has only those.
		const p = 699
		left := newAttnCase(5, c.spec, kvType, 0, 1)
		left.sinks = c.sinks
		for j := range p + 1 {
			if some[p*words+j/64]>>(j%64)&1 == 1 {
				left.n++
				left.k, left.v = append(left.k, c.k[j*2*40:][:2*40]...), append(left.v, c.v[j*2*24:][:2*24]...)
			}
		}
		left.q = slices.Repeat(c.q[p*6*40:][:6*40], left.n)
		for i, x := range left.reference(left.n - 1) {
			if got := float64(want[p*od+i]); math.Abs(got-x) > 3e-3 {
				t.Errorf("%v: entry %d is %v, want %v", kvType, i, got, x)
			}
		}
		if left.n < 20 {
			t.Errorf("only %d keys", left.n)
		}
	}
}

// Merge: what two caches give, each with its part of the keys, is what one gives that
// has them all.
func TestMerge(t *testing.T) {
	c := newAttnCase(8, Spec{Heads: 4, KVHeads: 1, KeyDim: 16, ValDim: 16, Scale: 0.5}, KVF32, 200, 1)
	c.sinks = []float32{0, 1, -1, float32(math.Inf(-1))}
	p := pool.New(2)
	defer p.Close()
	a, err := New(c.spec, 2)
	if err != nil {
		t.Fatal(err)
	}
	kv := c.cache(t)
	c.fill(t, kv, c.n)
	words := (c.n + 63) / 64
	for name, first := range map[string]func(j int) bool{"halves": func(j int) bool { return j < 100 }, "turns": func(j int) bool { return j%3 == 0 }, "all": func(j int) bool { return true }} {
		var outs, sums [2][]float32
		for k := range 2 {
			seen := make([]uint64, words)
			for j := range c.n {
				if first(j) == (k == 0) {
					seen[j/64] |= 1 << (j % 64)
				}
			}
			outs[k], sums[k] = make([]float32, 4*16), make([]float32, 2*4)
			a.RunSome(p, kv, outs[k], c.q[199*4*16:], nil, seen, sums[k], 1)
		}
		want := c.reference(199)
		for h := range 4 {
			out := outs[0][h*16:][:16]
			Merge(out, sums[0][2*h:], outs[1][h*16:][:16], sums[1][2*h:], c.sinks[h])
			for i, x := range out {
				if math.Abs(float64(x)-want[h*16+i]) > 1e-5 {
					t.Fatalf("%s: head %d, entry %d is %v, want %v", name, h, i, x, want[h*16+i])
				}
			}
		}
	}
}
