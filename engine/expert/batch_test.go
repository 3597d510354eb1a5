package expert

import (
	"slices"
	"testing"

	"bmoe/flashio"
)

// held is a reader that serves nothing by itself: a test completes the reads in
// whatever order it likes.
type held struct {
	flashio.Reader
	queue []*flashio.Request
}

func (h *held) Lanes() int { return 4 }

func (h *held) Submit(rs ...*flashio.Request) { h.queue = append(h.queue, rs...) }

func (h *held) Promote(r *flashio.Request) bool {
	was := r.Spec && slices.Contains(h.queue, r)
	r.Spec = r.Spec && !was
	return was
}

func (h *held) Cancel(r *flashio.Request) bool {
	i := slices.Index(h.queue, r)
	if i >= 0 {
		h.queue = slices.Delete(h.queue, i, i+1)
	}
	return i >= 0
}

// complete ends the n-th of the reads that wait, without an error.
func (h *held) complete(n int) { h.end(h.begin(n), nil) }

// begin takes the n-th of the reads that wait, as a lane does.
func (h *held) begin(n int) *flashio.Request {
	r := h.queue[n]
	h.queue = slices.Delete(h.queue, n, n+1)
	return r
}

// end completes a read that has begun.
func (h *held) end(r *flashio.Request, err error) {
	r.N, r.Err, r.Started, r.Ended = len(r.Buf), err, 1, 2
	r.Done.ReadDone(r)
}

// TestFirstStageIsReadFirst: gate and up of every missing expert are queued
// before the first down, an expert's first stage is ready without its second,
// and only a read that lets somebody go on is news.
func TestFirstStageIsReadFirst(t *testing.T) {
	f := newFixture(t)
	s := f.streamer(t, f.shape(t).Total(), 1, true)
	h := &held{}
	s.SetReader(h)
	b := s.Acquire(2, 1, []int32{4, 0, 7})
	if len(h.queue) != 9 {
		t.Fatalf("%d reads, want 9", len(h.queue))
	}
	down := f.layout.Layers[2][2]
	for i, r := range h.queue {
		if isDown := r.Offset+int64(r.Need) > down.Offset; isDown != (i >= 6) {
			t.Errorf("read %d of 9 is of a down projection: %v", i, isDown)
		}
	}

	news := func(what string, want bool, do func()) {
		t.Helper()
		seq := b.Seq()
		do()
		if got := b.Seq() != seq; got != want {
			t.Errorf("%s is news: %v", what, got)
		}
	}
	// The queue: gate and up of 4, of 0, of 7, then their downs.
	news("a gate without its up", false, func() { h.complete(0) })
	news("a down before its first stage", false, func() { h.complete(5) }) // of expert 4
	if b.Ready(0, StageIn) || !b.Ready(0, StageOut) {
		t.Error("expert 4 has its down and its gate, and is not ready for the first stage")
	}
	news("the up that completes a first stage", true, func() { h.complete(0) })
	if !b.Ready(0, StageIn) || b.Ready(1, StageIn) {
		t.Error("expert 4 is ready for its first stage, expert 0 is not")
	}
	news("a first stage computed whose down is there", true, func() { b.Computed(0, StageIn) })
	h.complete(0)
	news("the first stage of another expert", true, func() { h.complete(0) })
	news("a first stage computed whose down is missing", false, func() { b.Computed(1, StageIn) })
	news("the down that it waited for", true, func() { h.complete(2) })
	for len(h.queue) > 0 {
		h.complete(0)
	}
	for i := range b.Len() {
		if !b.Ready(i, StageIn) || !b.Ready(i, StageOut) {
			t.Errorf("item %d has all its bytes and is not ready", i)
		}
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
}
