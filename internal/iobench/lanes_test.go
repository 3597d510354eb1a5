package iobench

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"bmoe/flashio"
	"bmoe/internal/host"
)

func TestWalkStaysInsideAndReachesBothEnds(t *testing.T) {
	const align = 4096
	for _, c := range []struct{ size, rangeBytes, length, first, last int64 }{
		{10 << 20, 0, 576 << 10, 0, 10<<20 - 576<<10},
		{10<<20 + 100, 0, 576 << 10, 0, 10<<20 - 576<<10},                           // the tail is no block
		{10 << 20, 2 << 20, 576 << 10, 4 << 20, 6<<20 - 576<<10},                    // the middle
		{576 << 10, 0, 576 << 10, 0, 0},                                             // one place
		{10<<20 + 4096 + 100, 1 << 20, 64 << 10, 4718592, 4718592 + 1<<20 - 64<<10}, // the middle, on a block
	} {
		w := newWalk(1, 0, c.size, c.rangeBytes, c.length, align)
		first, last := int64(math.MaxInt64), int64(-1)
		for range 20_000 {
			at := w.next()
			if at%align != 0 || at < 0 || at+c.length > c.size {
				t.Fatalf("%+v: a read at %d", c, at)
			}
			first, last = min(first, at), max(last, at)
		}
		if first != c.first || last != c.last {
			t.Errorf("%+v: offsets %d to %d", c, first, last)
		}
	}
}

func TestWalkDependsOnSeedAndLaneAlone(t *testing.T) {
	walkOf := func(seed uint64, lane int) []int64 {
		w := newWalk(seed, lane, 1<<30, 0, 576<<10, 4096)
		var at []int64
		for range 50 {
			at = append(at, w.next())
		}
		return at
	}
	if !slices.Equal(walkOf(1, 3), walkOf(1, 3)) {
		t.Error("the same lane walks two ways")
	}
	if slices.Equal(walkOf(1, 3), walkOf(1, 2)) || slices.Equal(walkOf(1, 3), walkOf(2, 3)) {
		t.Error("another lane or seed walks the same way")
	}
}

// fakeReader completes reads on a goroutine of its own, and remembers them.
type fakeReader struct {
	flashio.Reader // nil: the lanes call nothing else
	queue          chan *flashio.Request
	offsets        map[*flashio.Request][]int64
	err            error // completes the reads after the first failAfter
	failAfter      int
	served         int
}

func newFakeReader() *fakeReader {
	return &fakeReader{queue: make(chan *flashio.Request, 64), offsets: map[*flashio.Request][]int64{}, failAfter: math.MaxInt}
}

func (f *fakeReader) Submit(rs ...*flashio.Request) {
	for _, r := range rs {
		f.queue <- r
	}
}

// serve completes reads, one after the other, each taking a step of a made-up
// clock, until n are done; then it tells the lanes to stop.
func (f *fakeReader) serve(l *lanes, n int) {
	now := int64(0)
	for r := range f.queue {
		f.offsets[r] = append(f.offsets[r], r.Offset)
		f.served++
		r.Started, r.Ended, r.N = now, now+1000, len(r.Buf)
		now += 1000
		if f.served > f.failAfter {
			r.Err = f.err
		}
		if f.served >= n {
			l.stop.Store(true)
		}
		r.Done.ReadDone(r)
	}
}

func testRig(t *testing.T, size int) (*bench, *rig) {
	t.Helper()
	path := testFile(t, size)
	set, err := flashio.OpenFiles([]string{path}, flashio.FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o := &options{model: path, seed: 7, duration: time.Second, repeats: 1}
	return &bench{opt: o, subject: &subject{path: path, size: set.Size(), align: set.Align()}, process: host.OpenProcess()}, &rig{set: set}
}

func TestLaneWalksTheSameOffsetsWhateverTheLaneCount(t *testing.T) {
	b, r := testRig(t, 4<<20)
	perLane := func(n int) [][]int64 {
		fake := newFakeReader()
		r.reader = fake
		l, err := newLanes(b, &cell{lanes: n, scatter: 1}, r, 64<<10, func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		defer l.free()
		go fake.serve(l, 40*n)
		l.start()
		l.running.Wait()
		close(fake.queue)
		var walks [][]int64
		for _, w := range l.walkers {
			walks = append(walks, fake.offsets[&w.request])
		}
		return walks
	}
	one, four := perLane(1), perLane(4)
	if !slices.Equal(one[0][:30], four[0][:30]) {
		t.Errorf("lane 0 alone:\n%v\nbeside three others:\n%v", one[0][:30], four[0][:30])
	}
	eight := perLane(8)
	for lane := range 4 {
		if !slices.Equal(four[lane][:30], eight[lane][:30]) {
			t.Errorf("lane %d walks another way among 8 than among 4", lane)
		}
	}
}

func TestLanesEndAtTheFirstError(t *testing.T) {
	b, r := testRig(t, 4<<20)
	fake := newFakeReader()
	fake.err, fake.failAfter = errors.New("the drive is gone"), 10
	r.reader = fake
	ctx, fail := context.WithCancelCause(context.Background())
	l, err := newLanes(b, &cell{lanes: 3, scatter: 1}, r, 64<<10, fail)
	if err != nil {
		t.Fatal(err)
	}
	defer l.free()
	go fake.serve(l, math.MaxInt)
	l.start()
	<-ctx.Done()
	l.running.Wait() // each walker fails in turn
	close(fake.queue)
	if context.Cause(ctx) != fake.err {
		t.Errorf("%v", context.Cause(ctx))
	}
}

func TestBookCountsOverlapsInProportion(t *testing.T) {
	l := &lanes{from: 1000, to: 2000}
	for _, c := range []struct {
		started, ended int64
		want           float64
		whole          bool
	}{
		{1200, 1400, 100, true},
		{900, 1100, 50, false},
		{1900, 2100, 50, false},
		{500, 2500, 50, false}, // a read longer than the measured time
		{0, 900, 0, false},
		{2000, 2100, 0, false},
	} {
		w := &walker{lanes: l}
		w.book(&flashio.Request{Started: c.started, Ended: c.ended, N: 100})
		if math.Abs(w.bytes-c.want) > 1e-9 || (w.latency.Count() == 1) != c.whole {
			t.Errorf("a read from %d to %d: %v bytes, %d in the histogram", c.started, c.ended, w.bytes, w.latency.Count())
		}
	}
}

// TestReadsDoNotAllocate reads for real, through the simulated host so that the
// drive does not decide how many reads there are.
func TestReadsDoNotAllocate(t *testing.T) {
	b, _ := testRig(t, 8<<20)
	b.opt.simulate, b.opt.duration = true, 200*time.Millisecond
	measured := func(d time.Duration) (reads int64, mallocs uint64) {
		b.opt.duration = d
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		m, err := b.measure(context.Background(), &cell{lanes: 2, scatter: 1, sliceKiB: 64, engine: "lanes"})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatal(err)
		}
		return m.latency.Count(), after.Mallocs - before.Mallocs
	}
	// What a measurement allocates to set itself up is the same in both.
	shortReads, short := measured(60 * time.Millisecond)
	longReads, long := measured(360 * time.Millisecond)
	if longReads < 3*shortReads/2 {
		t.Fatalf("%d reads in 60 ms, %d in 360 ms", shortReads, longReads)
	}
	if more := int64(long) - int64(short); more > (longReads-shortReads)/20 {
		t.Errorf("%d more reads took %d more allocations", longReads-shortReads, more)
	}
}
