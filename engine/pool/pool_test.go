package pool

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// procs sets GOMAXPROCS for a test.
func procs(t testing.TB, n int) {
	old := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(old) })
}

func newTestPool(t testing.TB, workers int) *Pool {
	p := New(workers)
	t.Cleanup(p.Close)
	return p
}

// within fails the test if f takes far longer than it can, instead of letting
// the whole run hang.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		f()
	}()
	select {
	case v := <-done:
		if v != nil {
			t.Fatalf("%s: %v", what, v)
		}
	case <-time.After(d):
		buf := make([]byte, 1<<16)
		t.Fatalf("%s hangs\n%s", what, buf[:runtime.Stack(buf, true)])
	}
}

// countTask counts how often each part was done, without synchronisation of
// its own: the race detector and the sums prove that the barrier is one.
type countTask struct {
	counts []int
	spin   int
}

func (t *countTask) Do(_, i int) {
	for range t.spin {
		pause()
	}
	t.counts[i]++
}

func TestRunDoesEveryPartOnce(t *testing.T) {
	for _, gmp := range []int{1, 2, 4} {
		for _, workers := range []int{1, 2, 3, 9} {
			for _, spin := range []int64{0, defaultSpin} {
				t.Run(fmt.Sprintf("procs %d workers %d spin %d", gmp, workers, spin), func(t *testing.T) {
					procs(t, gmp)
					p := newTestPool(t, workers)
					p.spin.Store(spin)
					task := &countTask{counts: make([]int, 301)}
					within(t, 20*time.Second, "Run", func() {
						rounds := 0
						for ; rounds < 200; rounds++ {
							task.spin = rounds % 3
							p.Run(len(task.counts), task)
							p.Run(rounds%5, task)
							for i, c := range task.counts {
								want := rounds + 1
								for r := 0; r <= rounds; r++ {
									if i < r%5 {
										want++
									}
								}
								if c != want {
									panic(fmt.Sprintf("part %d of round %d was done %d times, want %d", i, rounds, c, want))
								}
							}
						}
					})
				})
			}
		}
	}
}

// meetTask only finishes if two workers are inside it at once.
type meetTask struct{ in atomic.Int32 }

func (t *meetTask) Do(_, _ int) {
	t.in.Add(1)
	for t.in.Load() < 2 {
		runtime.Gosched()
	}
}

func TestRunUsesMoreThanOneWorker(t *testing.T) {
	p := newTestPool(t, 3)
	within(t, 20*time.Second, "two parts that wait for each other", func() { p.Run(2, &meetTask{}) })
}

type panicTask struct {
	at    int
	value any
	other func()
}

func (t *panicTask) Do(_, i int) {
	if i == t.at {
		panic(t.value)
	}
	if t.other != nil {
		t.other()
	}
}

func TestPanicReachesTheCallerOfRun(t *testing.T) {
	cause := errors.New("cause")
	for _, workers := range []int{1, 2, 4} {
		p := newTestPool(t, workers)
		for round := range 50 {
			for _, n := range []int{1, 100} {
				for _, at := range []int{0, n / 2, n - 1} {
					func() {
						defer func() {
							err, ok := recover().(error)
							var pe *Panic
							if !ok || !errors.As(err, &pe) || !errors.Is(err, cause) || len(pe.Stack) == 0 {
								t.Errorf("%d workers, round %d, part %d of %d: recovered %v", workers, round, at, n, err)
							}
						}()
						p.Run(n, &panicTask{at: at, value: cause, other: pause})
					}()
				}
			}
			// The pool is whole afterwards.
			task := &countTask{counts: make([]int, 50)}
			p.Run(50, task)
			for i, c := range task.counts {
				if c != 1 {
					t.Fatalf("after a panic part %d was done %d times", i, c)
				}
			}
		}
	}
}

func TestPanicOnAnotherWorker(t *testing.T) {
	p := newTestPool(t, 2)
	task := &otherPanics{}
	within(t, 20*time.Second, "panic on worker 1", func() {
		defer func() {
			pe, ok := recover().(*Panic)
			if !ok || pe.Worker != 1 || pe.Error() != "compute worker 1: boom" {
				panic(fmt.Sprintf("recovered %v", pe))
			}
		}()
		p.Run(100, task)
	})
	var ts Times
	p.Times(&ts)
	if p.accounts[1].state != Other {
		t.Fatalf("worker 1 was left in %v", p.accounts[1].state)
	}
}

// otherPanics panics on worker 1 and holds worker 0 until it has.
type otherPanics struct{ thrown atomic.Bool }

func (t *otherPanics) Do(w, _ int) {
	if w == 1 {
		t.thrown.Store(true)
		panic("boom")
	}
	for !t.thrown.Load() {
		runtime.Gosched()
	}
}

// abortLoop: worker 0 waits for something that only Abort brings.
type abortLoop struct {
	once sync.Once
	stop chan struct{}
}

func (l *abortLoop) Work(w int) {
	if w != 0 {
		panic("lost")
	}
	<-l.stop
}
func (l *abortLoop) Abort() { l.once.Do(func() { close(l.stop) }) }

func TestEachAbortsWhenAWorkerPanics(t *testing.T) {
	p := newTestPool(t, 2)
	within(t, 20*time.Second, "Each with a panicking worker", func() {
		defer func() {
			if pe, ok := recover().(*Panic); !ok || pe.Worker != 1 {
				panic(fmt.Sprintf("recovered %v", pe))
			}
		}()
		p.Each(&abortLoop{stop: make(chan struct{})})
	})
}

// gatherLoop returns when all workers are in.
type gatherLoop struct {
	want int32
	in   atomic.Int32
	seen []int
}

func (l *gatherLoop) Work(w int) {
	l.seen[w]++
	l.in.Add(1)
	for l.in.Load() < l.want {
		runtime.Gosched()
	}
}

func TestEachCallsEveryWorkerOnceWhileTheLoopIsOpen(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		p := newTestPool(t, workers)
		for range 100 {
			l := &gatherLoop{want: int32(workers), seen: make([]int, workers)}
			within(t, 20*time.Second, "Each", func() { p.Each(l) })
			for w, n := range l.seen {
				if n != 1 {
					t.Fatalf("worker %d of %d worked %d times", w, workers, n)
				}
			}
		}
	}
}

func TestNestedRunIsRefused(t *testing.T) {
	p := newTestPool(t, 1)
	defer func() {
		if recover() == nil {
			t.Fatal("a Run inside a Run was accepted")
		}
	}()
	p.Run(1, nested{p})
}

type nested struct{ p *Pool }

func (n nested) Do(_, _ int) { n.p.Run(1, n) }

func TestParkStopsEveryWorker(t *testing.T) {
	for _, spin := range []int64{0, 5_000_000} {
		p := newTestPool(t, 4)
		p.spin.Store(spin)
		task := &countTask{counts: make([]int, 1000)}
		for range 20 {
			p.Run(1000, task)
			p.Park()
			for w := 1; w < 4; w++ {
				if !p.sleepers[w].parked.Load() {
					t.Fatalf("worker %d is awake after Park", w)
				}
			}
		}
		p.Run(1000, task) // and they can be woken again
	}
}

func TestCloseEndsTheGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		p := New(4)
		p.Run(10, &countTask{counts: make([]int, 10)})
		p.Close()
		p.Close()
		task := &countTask{counts: make([]int, 10)}
		p.Run(10, task)
		if task.counts[9] != 1 {
			t.Fatal("Run after Close did not do the work")
		}
	}
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// The states are driven through a scripted clock, so the figures are exact.
func TestTimesOfAScript(t *testing.T) {
	var now atomic.Int64
	p := newPool(2, now.Load)
	defer p.Close()
	tick := func(ns int64) { now.Add(ns) }

	tick(10) // serial on 0: other for both
	p.Enter(0, Mgmt)
	tick(5)
	if prev := p.Enter(0, Compute); prev != Mgmt {
		t.Fatalf("Enter returned %v", prev)
	}
	tick(7)
	p.Enter(0, Other)
	p.Each(&script{p: p, tick: tick, ready: make(chan struct{}), done: make(chan struct{})})
	var ts Times
	p.Times(&ts)
	// Worker 0: 10 other, 5 mgmt, 7 compute; then compute 3, stall 4 (union
	// begins), stall 6 together, compute 2. Worker 1: 22 other, 3 + 4 compute,
	// stall 6, stall 2 while worker 0 computes.
	want := Times{Now: 37, Workers: 2, StallUnion: 12, MgmtSerial: 5}
	want.State[Other] = 10 + 22
	want.State[Mgmt] = 5
	want.State[Compute] = 7 + 3 + 2 + 3 + 4
	want.State[Stall] = 10 + 8
	if ts != want {
		t.Fatalf("got %+v, want %+v", ts, want)
	}
}

type script struct {
	p           *Pool
	tick        func(int64)
	ready, done chan struct{}
}

func (s *script) Work(w int) {
	if w == 1 {
		s.ready <- struct{}{}
		<-s.ready // worker 0 stalls, and 4 ns pass
		s.p.Enter(1, Stall)
		s.ready <- struct{}{}
		<-s.done
		s.p.Enter(1, Compute)
		s.done <- struct{}{}
		return
	}
	<-s.ready
	s.tick(3)
	s.p.Enter(0, Stall)
	s.tick(4)
	s.ready <- struct{}{}
	<-s.ready // worker 1 stalls too
	s.tick(6)
	s.p.Enter(0, Compute)
	s.tick(2)
	s.done <- struct{}{}
	<-s.done
}

// stallLoop makes each worker walk through the states many times.
type stallLoop struct{ p *Pool }

func (l *stallLoop) Work(w int) {
	for range 200 {
		l.p.Enter(w, Stall)
		for range 20 {
			pause()
		}
		l.p.Enter(w, Mgmt)
		pause()
		l.p.Enter(w, Compute)
		pause()
	}
}

func TestTimesAddUpToWallExactly(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		p := newTestPool(t, workers)
		var a, b Times
		p.Times(&a)
		task := &countTask{counts: make([]int, 400), spin: 20}
		for range 50 {
			p.Enter(0, Mgmt)
			p.Run(len(task.counts), task)
			p.Enter(0, Other)
			p.Each(&stallLoop{p: p})
			p.Times(&b)
			var sum int64
			for s := range b.State {
				d := b.State[s] - a.State[s]
				if d < 0 {
					t.Fatalf("%v went back by %d ns", State(s), -d)
				}
				sum += d
			}
			wall := b.Now - a.Now
			if sum != wall*int64(workers) {
				t.Fatalf("%d workers: the states add up to %d ns, wall is %d", workers, sum, wall)
			}
			stall, union := b.State[Stall]-a.State[Stall], b.StallUnion-a.StallUnion
			if union <= 0 || union > wall || union > stall || union < stall/int64(workers) {
				t.Fatalf("%d workers: union %d ns, stall %d, wall %d", workers, union, stall, wall)
			}
			a = b
		}
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	p := newTestPool(t, 3)
	task := &countTask{counts: make([]int, 100)}
	loop := &stallLoop{p: p}
	var ts Times
	step := func() {
		p.Run(100, task)
		p.Each(loop)
		p.Times(&ts)
	}
	step()
	// Another goroutine of the process may allocate once in a while: what counts is that
	// 200 steps do not.
	best := uint64(1 << 62)
	for range 5 {
		var a, b runtime.MemStats
		runtime.ReadMemStats(&a)
		for range 200 {
			step()
		}
		runtime.ReadMemStats(&b)
		best = min(best, b.Mallocs-a.Mallocs)
	}
	if best > 20 {
		t.Fatalf("200 steps allocate %d times", best)
	}
}

// BenchmarkRun is the cost of a job and its barrier when the parts do nothing,
// which is what a dependent step of a token pays on top of its work.
func BenchmarkRun(b *testing.B) {
	for _, workers := range []int{1, 2, 4} {
		for _, spin := range []int64{defaultSpin, 0} {
			b.Run(fmt.Sprintf("workers=%d/spin=%dus", workers, spin/1000), func(b *testing.B) {
				p := newTestPool(b, workers)
				p.spin.Store(spin)
				task := &countTask{counts: make([]int, 64)}
				for b.Loop() {
					p.Run(64, task)
				}
			})
		}
	}
}

// BenchmarkRunShare is a job of about 40 us for one worker: how much of the
// ideal speedup is left.
func BenchmarkRunShare(b *testing.B) {
	for _, workers := range []int{1, 2} {
		b.Run(fmt.Sprintf("workers=%d", workers), func(b *testing.B) {
			p := newTestPool(b, workers)
			task := &countTask{counts: make([]int, 64), spin: 10}
			for b.Loop() {
				p.Run(64, task)
			}
		})
	}
}

func BenchmarkEnter(b *testing.B) {
	p := newTestPool(b, 1)
	for b.Loop() {
		p.Enter(0, Compute)
		p.Enter(0, Other)
	}
}
