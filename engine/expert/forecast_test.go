package expert

import (
	"regexp"
	"slices"
	"syscall"
	"testing"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
	"bmoe/flashio/flashtest"
)

// guessing returns a streamer that makes guesses, over a reader that waits for the
// test. One expert is read ahead at a time, as soon as less than half of the four lanes
// would be busy with guesses.
func guessing(t *testing.T, f Foresight, prompts ...bool) (*fixture, *Streamer, *held) {
	t.Helper()
	fix := newFixture(t)
	s, h := aheadStreamer(t, fix)
	s.vocab = 50
	s.SetForesight(f, len(prompts) > 0)
	return fix, s, h
}

// keys returns whose reads wait, each once, in the queue's order.
func (h *held) keys() (list []policy.Key) {
	for _, r := range h.queue {
		if k := r.Done.(*slot).key; !slices.Contains(list, k) {
			list = append(list, k)
		}
	}
	return list
}

// all completes what waits, and what is submitted meanwhile.
func (h *held) all() {
	for len(h.queue) > 0 {
		h.complete(0)
	}
}

// visit has a batch computed with whatever it reads.
func (f *fixture) visit(t *testing.T, s *Streamer, h *held, layer int, ids ...int32) {
	t.Helper()
	b := s.Acquire(layer, max(1, len(ids)/f.layout.Used), ids)
	h.all()
	for i := range b.Len() {
		b.Computed(i, StageIn)
		b.Computed(i, StageOut)
	}
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
}

// pass takes a token through the layers that the fixture has experts in.
func (f *fixture) pass(t *testing.T, s *Streamer, h *held, id int32, ids ...int32) {
	t.Helper()
	s.Tokens([]int32{id})
	for _, layer := range []int{0, 2, 3} {
		f.visit(t, s, h, layer, ids...)
	}
}

func TestTheNearestLayerIsReadFirst(t *testing.T) {
	f, s, h := guessing(t, Foresight{ByRouters: 4})
	shape := f.shape(t)
	reading := func(want ...policy.Key) {
		t.Helper()
		if got := h.keys(); !slices.Equal(got, want) {
			t.Fatalf("%v is being read, want %v", got, want)
		}
	}
	s.Tokens([]int32{1})
	s.Expect(3, 3, []int32{1, 2, 3})
	reading(shape.Key(3, 1))
	if slices.Contains(h.specs(), false) {
		t.Error("a guess is read as demand")
	}
	s.Expect(2, 2, []int32{7})
	s.Expect(0, 1, []int32{9, 10})
	reading(shape.Key(3, 1)) // what has begun goes on
	h.complete(0)
	reading(shape.Key(3, 1))
	h.complete(0)
	reading(shape.Key(3, 1), shape.Key(0, 9))
	for range 3 {
		h.complete(0)
	}
	reading(shape.Key(0, 9), shape.Key(0, 10))
	for range 3 {
		h.complete(0)
	}
	reading(shape.Key(0, 10), shape.Key(2, 7))
}

func TestByTokenIDBeforeTheFirstLayer(t *testing.T) {
	f, s, h := guessing(t, Foresight{ByToken: 1})
	shape := f.shape(t)
	f.pass(t, s, h, 7, 1, 2, 3)
	f.pass(t, s, h, 8, 4, 5, 6)
	s.Empty()
	s.Tokens([]int32{7})
	if got := h.keys(); !slices.Equal(got, []policy.Key{shape.Key(0, 1)}) {
		t.Fatalf("%v is being read, want what token 7 was given in the first layer", got)
	}
	for range 3 {
		h.complete(0)
	}
	if got := h.keys(); !slices.Equal(got, []policy.Key{shape.Key(0, 2)}) {
		t.Fatalf("%v is being read, want the next expert of token 7", got)
	}
	f.visit(t, s, h, 0, 1, 2, 9)
	got := s.Ahead()
	if size := shape.Bytes[0]; got.Useful[byToken.first] != size || got.Late[byToken.first] != size {
		t.Errorf("counted %+v, want one expert of %d bytes in time and one late", got, size)
	}
	if s.Empty(); len(h.queue) != 0 {
		t.Fatal("an emptied cache is being read ahead into")
	}
	s.Tokens([]int32{30})
	if len(h.queue) != 0 {
		t.Error("something is guessed of a token that never came")
	}
}

// A router two layers early knows more than the token's id, one four layers early less.
func TestTheBetterGuessStays(t *testing.T) {
	f, s, h := guessing(t, Foresight{ByToken: 1, ByRouters: 4})
	shape := f.shape(t)
	f.pass(t, s, h, 7, 1, 2, 3)
	s.Empty()
	s.Tokens([]int32{7})
	s.Expect(3, 4, []int32{8, 9, 10})
	if p := s.fore.chance[shape.Key(3, 1)]; p != s.fore.hit[byToken.first][0] {
		t.Errorf("a router four layers early displaced the token's id: %v", p)
	}
	s.Expect(3, 2, []int32{8, 9, 10})
	if p := s.fore.chance[shape.Key(3, 1)]; p != 0 || s.fore.chance[shape.Key(3, 8)] != s.fore.hit[byRouters.first+1][0] {
		t.Errorf("a router two layers early did not displace the token's id: %v", p)
	}
}

// A guess takes the place of what was guessed wrongly, never of what is likelier.
func TestGuessesDisplaceOnlyWhatIsLessLikely(t *testing.T) {
	f, s, h := guessing(t, Foresight{ByRouters: 4})
	shape := f.shape(t)
	s.Tokens([]int32{1})
	s.Expect(2, 1, []int32{1, 2, 3})
	h.all()
	if free := len(s.poolOf(2).free); len(s.poolOf(2).aheads) != 3 || free == 0 {
		t.Fatalf("%d experts are there early, want the three that there is room for", len(s.poolOf(2).aheads))
	}
	s.fore.chance[shape.Key(2, 1)], s.fore.chance[shape.Key(2, 2)], s.fore.chance[shape.Key(2, 3)] = 0.8, 0.5, 0.9
	g := &guess{key: shape.Key(2, 4), p: 0.5}
	if s.makeRoomAhead(g) || s.slotOf[shape.Key(2, 2)] == nil {
		t.Error("a guess displaced one that is as likely")
	}
	g.p = 0.6
	if !s.makeRoomAhead(g) || s.slotOf[shape.Key(2, 2)] != nil || s.slotOf[shape.Key(2, 1)] == nil {
		t.Error("a guess did not displace the one that is less likely")
	}
	if got := s.Ahead(); got.Wasted[byRouters.first] != shape.Bytes[2] {
		t.Errorf("counted %+v, want one expert read for nothing", got)
	}
}

// Guesses that turn out wrong again and again are no longer read.
func TestWrongGuessesAreGivenUp(t *testing.T) {
	f, s, h := guessing(t, Foresight{ByRouters: 1})
	read := func() bool {
		s.Tokens([]int32{1})
		s.Expect(2, 1, []int32{11})
		asked := len(h.queue) > 0
		f.visit(t, s, h, 2, 0, 1, 2)
		s.Recall()
		return asked
	}
	if !read() {
		t.Fatal("the first guess is not read")
	}
	n := 1
	for ; n < 500 && read(); n++ {
	}
	if n < 20 || n == 500 {
		t.Errorf("a kind of guess that was never right was read %d times", n)
	}
	if p := s.fore.hit[byRouters.first][1]; p < leastWorth {
		t.Errorf("guesses of another rank are thought right in %v of all cases, though none was judged", p)
	}
}

// The batch of a prompt reads the next layer whole if it is large, and what the batch
// before used there if not.
func TestAPromptReadsTheNextLayer(t *testing.T) {
	f, s, h := guessing(t, Foresight{}, true)
	shape := f.shape(t)
	long := make([]int32, 0, 3*f.layout.Experts)
	for i := range int32(cap(long)) {
		long = append(long, i%12)
	}
	guessed := func(layer int) (list []policy.Key) {
		for _, g := range s.fore.lists[s.fore.place[layer]] {
			list = append(list, g.key)
		}
		return list
	}
	s.Tokens(make([]int32, len(long)/3))
	f.visit(t, s, h, 0, long...)
	if got := guessed(2); len(got) != f.layout.Experts {
		t.Errorf("%d of %d experts of the next layer are guessed of a batch that needs nearly all", len(got), f.layout.Experts)
	}
	f.visit(t, s, h, 2, long...)
	f.visit(t, s, h, 3, long...)
	// A short batch, and another: the second knows what the first used.
	for range 2 {
		s.Tokens([]int32{1, 2})
		f.visit(t, s, h, 0, 0, 1, 2, 1, 2, 3)
		if len(guessed(2)) == 0 {
			t.Error("nothing is guessed of a short batch's next layer")
		}
		f.visit(t, s, h, 2, 4, 5, 6, 5, 6, 7)
		f.visit(t, s, h, 3, 0, 1, 2, 1, 2, 3)
	}
	s.Tokens([]int32{1, 2})
	f.visit(t, s, h, 0, 0, 1, 2, 1, 2, 3)
	if got := guessed(2); !slices.Equal(got, []policy.Key{shape.Key(2, 4), shape.Key(2, 5), shape.Key(2, 6), shape.Key(2, 7)}) {
		t.Errorf("%v is guessed of a short batch, want what the batch before used there", got)
	}
}

func TestNothingIsGuessedWhileATrialGoesWithout(t *testing.T) {
	_, s, h := guessing(t, Foresight{ByRouters: 2, ByToken: 1})
	s.fore.trial = trial{off: true, hold: mostHold, left: mostHold}
	s.Tokens([]int32{1})
	if s.Lead() != 0 || !s.SwitchedOff() || len(h.queue) != 0 {
		t.Error("routers are run ahead though it was found not to pay")
	}
}

// An expert that could not be read ahead is left alone until it is demanded: a bad
// sector takes a drive seconds each time.
func TestWhatFailsIsNotGuessedAgain(t *testing.T) {
	f, s, h := guessing(t, Foresight{ByRouters: 1})
	expect := func() bool {
		s.Tokens([]int32{1})
		s.Expect(2, 1, []int32{5})
		return len(h.queue) > 0
	}
	if !expect() {
		t.Fatal("the guess is not read")
	}
	h.end(h.begin(0), syscall.EIO)
	h.all()
	if expect() {
		t.Error("what could not be read is read ahead again")
	}
	f.visit(t, s, h, 2, 5, 6, 7) // this time it can be read
	f.visit(t, s, h, 2, 5, 6, 7)
	s.Empty()
	if !expect() {
		t.Error("after it was read on demand it is not read ahead")
	}
	h.all()
}

// Reads that fail, end short or find the file cut off end their batch with layer,
// expert, file and offset, and the next batch goes on.
func TestFaultsNameWhatCouldNotBeRead(t *testing.T) {
	f := newFixture(t)
	disk := flashtest.NewDisk(nil)
	files, err := flashio.OpenFiles([]string{f.path}, flashio.FileOptions{Opener: disk, Round: -1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := policy.New("lru", f.shape(t))
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStreamer(files, f.layout, Options{Budget: f.shape(t).LayerWorkingSet(), Policy: p, Overlap: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := flashio.OpenLanes(files, flashio.LaneOptions{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.SetReader(r)
	visit := func(layer int, ids ...int32) error {
		b := s.Acquire(layer, 1, ids)
		f.compute(b, 2, func(e int32, ok bool) {
			if !ok {
				t.Errorf("layer %d, expert %d has wrong bytes", layer, e)
			}
		})
		return b.Release()
	}
	run := func() error {
		s.Empty()
		return visit(2, 4, 5, 6)
	}
	up := f.layout.Layers[2][1]
	at := up.Offset + 5*up.Bytes + 100 // in the middle of expert 5's
	for name, c := range map[string]struct{ fault, mend func() }{
		"EIO":       {func() { disk.Fail(at, syscall.EIO) }, func() { disk.Fail(at, nil) }},
		"truncated": {func() { disk.Shrink(at) }, func() { disk.Shrink(-1) }},
	} {
		if err := run(); err != nil {
			t.Fatal(err)
		}
		c.fault()
		err := run()
		c.mend()
		if err == nil || !regexp.MustCompile(`layer 2, expert [456]: .*experts\.bin.* \d+`).MatchString(err.Error()) {
			t.Errorf("%s: %v, want layer, expert, file and offset", name, err)
		}
		if err := run(); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	disk.Limit(4096) // a read that ends short is gone on with
	if err := run(); err != nil {
		t.Errorf("short reads: %v", err)
	}
}
