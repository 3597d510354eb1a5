package model

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/internal/conform"
)

// digestSpec is a layer that remembers only a digest of what it has seen, in
// size bytes.
type digestSpec struct{ size int64 }

func (r digestSpec) Bytes() (int64, error) { return r.size, nil }

func (r digestSpec) open(mem []byte) (layerState, error) {
	return &digestLayer{mem[:r.size]}, nil
}

type digestLayer struct{ mem []byte }

func (r *digestLayer) reaches(n int) bool { return n == 0 }
func (r *digestLayer) truncate(n int) {
	if n != 0 {
		panic("a recurrent layer was truncated")
	}
	clear(r.mem)
}
func (r *digestLayer) markBytes() int         { return len(r.mem) }
func (r *digestLayer) savedBytes(int) int     { return len(r.mem) }
func (r *digestLayer) save(dst []byte)        { copy(dst, r.mem) }
func (r *digestLayer) load(src []byte, _ int) { copy(r.mem, src) }

// digest returns what the layer remembers.
func (r *digestLayer) digest() uint64 { return binary.LittleEndian.Uint64(r.mem) }

// see takes an id in.
func (r *digestLayer) see(id int32) {
	for i := 0; i+8 <= len(r.mem); i += 8 {
		b := r.mem[i:]
		binary.LittleEndian.PutUint64(b, (binary.LittleEndian.Uint64(b)+uint64(id)+1)*0x9e3779b97f4a7c15)
	}
}

// hybrid is a state with a layer of every kind.
func hybrid(t *testing.T, mark int64, more ...layerSpec) *state {
	t.Helper()
	kv := kvSpec{attn.KVSpec{Heads: 1, KeyDim: 4, ValDim: 4, Ctx: 200, Type: attn.KVF32}}
	s, err := newState(200, append([]layerSpec{kv, digestSpec{mark}, kv}, more...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// forward takes ids in as a Forward would. It fails in the second layer if told to.
func forward(t *testing.T, s *state, fail bool, ids ...int32) {
	t.Helper()
	pos, err := s.begin(len(ids))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range s.layers {
		for i, id := range ids {
			switch l := l.(type) {
			case kvLayer:
				x := []float32{float32(id), 0, 0, 0}
				if err := l.Append(pos+i, x, x); err != nil {
					t.Fatal(err)
				}
			case *digestLayer:
				l.see(id)
				if fail {
					return
				}
			}
		}
	}
	s.commit(len(ids))
}

func TestRewindGoesBackToMarks(t *testing.T) {
	s := hybrid(t, 24)
	layer := s.layers[1].(*digestLayer)
	digests := map[int]uint64{0: 0} // by length
	grow := func(n int, mark bool) {
		t.Helper()
		for s.n < n {
			forward(t, s, false, int32(s.n))
		}
		digests[n] = layer.digest()
		if mark {
			if err := s.Mark(s.Len()); err != nil {
				t.Fatal(err)
			}
		}
	}
	// back rewinds to n and expects to come to want.
	back := func(n, want int) {
		t.Helper()
		got, err := s.Rewind(n)
		if err != nil || got != want || s.Len() != want {
			t.Fatalf("rewound to %d: at %d of %d, %v; want %d", n, got, s.Len(), err, want)
		}
		if layer.digest() != digests[want] {
			t.Fatalf("at %d the recurrent layer has another state than on the way there", want)
		}
		for _, i := range []int{0, 2} {
			if kv := s.layers[i].(kvLayer); kv.Len() != want {
				t.Fatalf("a layer holds %d positions of %d", kv.Len(), want)
			}
		}
	}
	grow(10, true)
	grow(20, true)
	grow(25, false)
	back(25, 25) // nothing to do
	back(24, 20)
	grow(30, true)
	grow(40, true)
	grow(50, true) // a fifth: 20 gives way, 10 stays
	if m := s.Marks(); m.Kept != 4 || m.Most != 4 || m.Bytes != 4*64 {
		t.Errorf("%+v", m)
	}
	back(45, 40)
	back(29, 10)
	grow(20, true)
	back(15, 10)
	back(9, 0)
	if m := s.Marks(); m.Kept != 0 {
		t.Errorf("in an empty state there are marks: %+v", m)
	}
	grow(12, true)
	grow(13, false)
	back(12, 12)
	// The same place twice is one mark.
	for range 3 {
		grow(12, true)
	}
	if m := s.Marks(); m.Kept != 1 {
		t.Errorf("%+v", m)
	}
	for _, n := range []int{-1, 14} {
		if _, err := s.Rewind(n); err == nil {
			t.Errorf("rewound from 12 to %d", n)
		}
	}
}

func TestFailedForwardLeavesTheStateDirty(t *testing.T) {
	s := hybrid(t, 24)
	layer := s.layers[1].(*digestLayer)
	forward(t, s, false, 1, 2, 3)
	if err := s.Mark(s.Len()); err != nil {
		t.Fatal(err)
	}
	want := layer.digest()
	forward(t, s, false, 4, 5)
	forward(t, s, true, 6)
	if s.Len() != 5 {
		t.Errorf("a failed forward pass left %d positions, want 5", s.Len())
	}
	if _, err := s.begin(1); !errors.Is(err, errDirty) {
		t.Errorf("a dirty state goes on: %v", err)
	}
	if err := s.Mark(s.Len()); !errors.Is(err, errDirty) {
		t.Errorf("a dirty state is marked: %v", err)
	}
	// Where it stands it cannot stay: the recurrent layer has seen too much.
	if n, err := s.Rewind(5); n != 3 || err != nil || layer.digest() != want {
		t.Errorf("rewound to %d, %v", n, err)
	}
	forward(t, s, false, 4)

	// A failure before the first mark leaves the empty state.
	s = hybrid(t, 24)
	forward(t, s, true, 1, 2)
	if n, err := s.Rewind(0); n != 0 || err != nil || s.layers[1].(*digestLayer).digest() != 0 {
		t.Errorf("rewound to %d, %v", n, err)
	}
	forward(t, s, false, 1)
}

func TestMarksAreBounded(t *testing.T) {
	for size, want := range map[int64]int{64 << 20: 4, 100 << 20: 2, 200 << 20: 1, 300 << 20: 1} {
		s := hybrid(t, size)
		m := s.Marks()
		if m.Most != want || m.Bytes != int64(want)*size || s.Bytes() < size+m.Bytes {
			t.Errorf("marks of %d MiB: %+v, state of %d bytes; want %d marks", size>>20, m, s.Bytes(), want)
		}
	}
	// One mark that moves along, where there is no room for two.
	s := hybrid(t, 200<<20)
	s.layers[1].(*digestLayer).mem = s.layers[1].(*digestLayer).mem[:8] // less to copy
	for i := range int32(3) {
		forward(t, s, false, i)
		if err := s.Mark(s.Len()); err != nil {
			t.Fatal(err)
		}
	}
	forward(t, s, false, 3)
	if n, err := s.Rewind(3); n != 3 || err != nil {
		t.Errorf("rewound to %d, %v; want the newest mark at 3", n, err)
	}
	plain, err := newState(200, slices.Repeat([]layerSpec{kvSpec{attn.KVSpec{Heads: 1, KeyDim: 4, ValDim: 4, Ctx: 200}}}, 2))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if m := plain.Marks(); m != (Marks{}) {
		t.Errorf("a state that reaches every length keeps marks: %+v", m)
	}
}

// TestRewoundStateGivesTheSameLogits: also after a pass that was cancelled in
// the middle.
func TestRewoundStateGivesTheSameLogits(t *testing.T) {
	m := load(t, conform.File(t, "models/qwen3moe.gguf"), kernel.Fast, 2, 32)
	st, err := m.arch.NewState(64, attn.KVF16)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	logits := func(ctx context.Context, ids ...int32) ([]byte, error) {
		l := make([]float32, m.arch.Info().Vocab)
		err := m.arch.Forward(ctx, st, ids, l)
		return fmt.Append(nil, l), err
	}
	first, err := logits(context.Background(), 1, 2, 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	second, err := logits(context.Background(), 5, 6)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	stop := &Observer{Layer: func(int, int) { cancel() }}
	m.c.Watch(stop)
	if _, err := logits(ctx, 7, 8, 9); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	m.c.Unwatch(stop)
	if _, err := logits(context.Background(), 7); !errors.Is(err, errDirty) {
		t.Errorf("after a cancelled pass the state goes on: %v", err)
	}
	for _, c := range []struct {
		to   int
		ids  []int32
		want []byte
	}{{4, []int32{5, 6}, second}, {0, []int32{1, 2, 3, 4}, first}} {
		if n, err := st.Rewind(c.to); n != c.to || err != nil {
			t.Fatalf("rewound to %d: at %d, %v", c.to, n, err)
		}
		got, err := logits(context.Background(), c.ids...)
		if err != nil || !bytes.Equal(got, c.want) {
			t.Errorf("from %d on the logits are others, %v", c.to, err)
		}
	}
}

// TestSavedStateGoesOn: what was saved goes on in another state as in the first,
// also with more room, and what is damaged leaves an empty one.
func TestSavedStateGoesOn(t *testing.T) {
	windowed := kvSpec{attn.KVSpec{Heads: 1, KeyDim: 4, ValDim: 4, Ctx: 200, Window: 20}}
	s := hybrid(t, 24, windowed)
	for i := range int32(70) { // more than one block of keys
		forward(t, s, false, i)
	}
	var file bytes.Buffer
	if err := s.Save(&file); err != nil {
		t.Fatal(err)
	}
	to := hybrid(t, 24, windowed)
	forward(t, to, false, 9, 9, 9)
	if err := to.Mark(to.Len()); err != nil {
		t.Fatal(err)
	}
	if err := to.Load(bytes.NewReader(file.Bytes())); err != nil || to.Len() != 70 || to.Marks().Kept != 0 {
		t.Fatalf("loaded %d positions and %d marks, %v", to.Len(), to.Marks().Kept, err)
	}
	contents := func(s *state) []byte {
		var b bytes.Buffer
		if err := s.Save(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	forward(t, s, false, 70)
	forward(t, to, false, 70)
	if !bytes.Equal(contents(s), contents(to)) {
		t.Error("a loaded state goes on in another way")
	}
	for name, b := range map[string][]byte{
		"empty": {}, "cut": file.Bytes()[:file.Len()-5], "cut early": file.Bytes()[:20], "no state": []byte("GGUF, but no state of anything"),
		"damaged": func() []byte { b := bytes.Clone(file.Bytes()); b[len(b)/2] ^= 1; return b }(),
	} {
		to := hybrid(t, 24, windowed)
		forward(t, to, false, 9, 9, 9)
		if err := to.Load(bytes.NewReader(b)); err == nil || to.Len() != 0 {
			t.Errorf("%s: %d positions, %v", name, to.Len(), err)
		}
		fresh := hybrid(t, 24, windowed)
		forward(t, fresh, false, 1, 2)
		forward(t, to, false, 1, 2) // as usable as a new one
		if to.layers[1].(*digestLayer).digest() != fresh.layers[1].(*digestLayer).digest() {
			t.Errorf("%s: the state was not emptied", name)
		}
	}
	forward(t, s, true, 1)
	if err := s.Save(&file); !errors.Is(err, errDirty) {
		t.Errorf("a dirty state is saved: %v", err)
	}
	short, err := newState(71, []layerSpec{digestSpec{24}})
	if err != nil {
		t.Fatal(err)
	}
	defer short.Close()
	if err := short.Load(bytes.NewReader(file.Bytes())); err == nil || !strings.Contains(err.Error(), "4 layers") {
		t.Errorf("another model's state: %v", err)
	}
}

// TestSavedStateOfAModel: the logits behind a saved state are those behind the
// state itself, for every KV type and in a larger context.
func TestSavedStateOfAModel(t *testing.T) {
	m := load(t, conform.File(t, "models/qwen3moe.gguf"), kernel.Fast, 2, 32)
	for _, kv := range []attn.KVType{attn.KVF16, attn.KVF32, attn.KVQ8_0} {
		state := func(n int) State {
			st, err := m.arch.NewState(n, kv)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { st.Close() })
			return st
		}
		next := func(st State, ids ...int32) []float32 {
			l := make([]float32, m.arch.Info().Vocab)
			if err := m.arch.Forward(context.Background(), st, ids, l); err != nil {
				t.Fatal(err)
			}
			return l
		}
		from := state(64)
		next(from, 1, 2, 3, 4, 5)
		var file bytes.Buffer
		if err := from.Save(&file); err != nil {
			t.Fatal(err)
		}
		saved := file.Bytes()
		to := state(200)
		if err := to.Load(bytes.NewReader(saved)); err != nil {
			t.Fatal(err)
		}
		if want, got := next(from, 6, 7), next(to, 6, 7); !slices.Equal(got, want) {
			t.Errorf("%v: behind a saved state the logits are others", kv)
		}
		if err := state(4).Load(bytes.NewReader(saved)); err == nil || !strings.Contains(err.Error(), "5 positions") {
			t.Errorf("%v: loaded into a context of 4: %v", kv, err)
		}
		other, err := m.arch.NewState(64, (kv+1)%3)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Load(bytes.NewReader(saved)); err == nil || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%v loaded as %v: %v", kv, (kv+1)%3, err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}
