package expert

import (
	"errors"
	"syscall"
	"testing"

	"bmoe/engine/expert/policy"
)

// Every expert of the layer is read anew for each batch, only those that are wanted
// are computed, and the batch lasts until all reads are over.
func TestWholeLayers(t *testing.T) {
	f := newFixture(t)
	shape := f.shape(t)
	shape.Used = shape.Experts
	p, err := policy.New("lru", shape)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStreamer(f.files, f.layout, Options{Budget: shape.LayerWorkingSet(), Policy: p, Overlap: true, WholeLayers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	h := &held{}
	s.SetReader(h)
	for pass := range 3 {
		for _, layer := range []int{0, 2, 3} {
			b := s.Acquire(layer, 2, []int32{7, 1, 4, 1, 4, 9})
			if len(h.queue) != 3*f.layout.Experts || b.Len() != 4 || b.Expert(0) != 7 || b.Expert(3) != 9 {
				t.Fatalf("pass %d, layer %d: %d reads for %d experts, want %d for 4", pass, layer, len(h.queue), b.Len(), 3*f.layout.Experts)
			}
			for i := range 2 * f.layout.Experts { // gate and up of all
				if b.Ready(3, StageIn) != (i > 7) {
					t.Fatalf("after %d reads the fourth expert is ready: %v", i, b.Ready(3, StageIn))
				}
				h.complete(0)
			}
			for i := range b.Len() {
				b.Computed(i, StageIn)
				h.complete(0)
				b.Computed(i, StageOut)
			}
			released := make(chan error)
			go func() { released <- b.Release() }()
			for len(h.queue) > 1 {
				h.complete(0)
			}
			select {
			case <-released:
				t.Fatal("released with a read in flight")
			default:
			}
			h.complete(0)
			if err := <-released; err != nil {
				t.Fatal(err)
			}
		}
	}
	if st := s.Stats(); st.Hits != 0 || st.Lookups != int64(3*3*f.layout.Experts) || st.Rereads != int64(2*3*f.layout.Experts) {
		t.Errorf("counted %+v", st.Counters)
	}
	b := s.Acquire(2, 1, []int32{0, 1, 2})
	for len(h.queue) > 1 {
		h.complete(0)
	}
	for i := range b.Len() {
		b.Computed(i, StageIn)
		b.Computed(i, StageOut)
	}
	h.end(h.begin(0), syscall.EIO) // of an expert that nobody wants
	if err := b.Release(); !errors.Is(err, syscall.EIO) {
		t.Errorf("a layer that could not be read whole: %v", err)
	}
	if b := s.Acquire(2, 1, []int32{0, 1, 2}); len(h.queue) != 3*f.layout.Experts || b.Failed() {
		t.Error("after a failed batch the next does not read the layer")
	}
}
