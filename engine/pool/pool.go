// Package pool runs compute: a fixed set of workers that share one job at a
// time, and accounts of what each worker's time went into.
package pool

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"bmoe/internal/clock"
	"bmoe/internal/crash"
)

// State is what a compute worker is doing. At every moment each worker is in
// exactly one state, so the four add up to the wall time.
type State uint8

const (
	// Other is waiting for a job or at a barrier, a serial step of another
	// worker, sampling: everything that is none of the three below.
	Other State = iota
	// Compute is arithmetic on the model's numbers.
	Compute
	// Mgmt is bookkeeping of the expert cache.
	Mgmt
	// Stall is having nothing runnable while a read that is needed is in flight.
	Stall

	numStates
)

// String returns the state's name as it stands in docs/architecture.md.
func (s State) String() string {
	switch s {
	case Other:
		return "other"
	case Compute:
		return "compute"
	case Mgmt:
		return "mgmt"
	case Stall:
		return "stall"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Task is work that splits into independent parts numbered 0 to n-1. It is
// normally a pointer to a struct that the caller fills anew for each Run, so
// that a call allocates nothing.
type Task interface {
	// Do computes part i on the given worker (0 <= worker < Workers). Which
	// worker gets which part, and in which order, is not defined: a result must
	// not depend on it.
	Do(worker, i int)
}

// Loop is work that hands itself out: each worker that takes part calls Work
// once, and Work returns when nothing is left for that worker to do.
type Loop interface {
	Work(worker int)
}

// Aborter is a Loop whose workers wait for each other or for a read. When one
// of them panics the pool calls Abort, on the panicking worker's goroutine, and
// the loop must then let every other Work return.
type Aborter interface {
	Abort()
}

// Times is a reading of the workers' accounts.
type Times struct {
	Now        int64            // clock.Now at the reading
	Workers    int              // how many workers the sums run over
	State      [numStates]int64 // ns in each State, summed over the workers since New
	StallUnion int64            // ns during which at least one worker stalled
	MgmtSerial int64            // ns that worker 0 spent in Mgmt: bookkeeping that the token waited for
}

// Panic is what Run and Each panic with when a part panicked on any worker.
type Panic struct {
	Worker int    // the worker on which it happened
	Value  any    // the value passed to panic, nil for runtime.Goexit
	Stack  []byte // the stack of that worker
}

// Error tells the worker and the panic's value; the stack is left to the field.
func (e *Panic) Error() string { return fmt.Sprintf("compute worker %d: %v", e.Worker, e.Value) }

// Unwrap returns the panic's value if it was an error.
func (e *Panic) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// PanicValue and PanicStack tell package crash what happened where.
func (e *Panic) PanicValue() any { return e.Value }

// PanicStack returns the stack of the worker that panicked.
func (e *Panic) PanicStack() []byte { return e.Stack }

// Fault reports whether the panic is a fault at an address, as of a read through
// a mapping whose file has shrunk; flashio.Guard understands its Value.
func (e *Panic) Fault() bool {
	_, ok := e.Value.(interface{ Addr() uintptr })
	return ok
}

// defaultSpin is how long an idle worker looks for the next job before it
// parks. Serial steps between two jobs of a token take a few tens of
// microseconds, and waking a parked goroutine costs about as much.
const defaultSpin = 50_000 // ns

// A job is announced by the gate, one word that holds
//
//	bits 32..63  the job's number
//	bit  31      open: a worker may still join
//	bit  30      the caller is parked until the last worker leaves
//	bits 0..15   how many workers have joined and not left
//
// A worker joins only while the job is open, and the caller closes it as soon
// as it finds no more work: a worker that wakes late is not waited for. The
// job's other fields may be read only between joining and leaving, and are
// written only while the gate is closed and nobody is inside.
const (
	gateOpen    = 1 << 31
	gateWaiting = 1 << 30
	gateJoined  = 1<<16 - 1
	gateStep    = 1 << 32
)

const cacheLine = 128 // two lines of 64: adjacent lines are fetched in pairs

// account is one worker's time. Only that worker writes it; it is read by
// worker 0 after a barrier.
type account struct {
	state State
	since int64 // when it entered the state
	ns    [numStates]int64
	_     [cacheLine - 48]byte
}

// sleeper is one worker's place to park.
type sleeper struct {
	parked atomic.Bool
	wake   chan struct{} // capacity 1
	_      [cacheLine - 16]byte
}

// Pool is a fixed set of compute workers that live as long as the pool. Worker
// 0 is the goroutine that calls Run or Each, and takes part in the work; the
// others are goroutines that spin briefly between jobs and then park. All
// methods but Enter are for worker 0 alone.
type Pool struct {
	gate atomic.Uint64
	_    [cacheLine - 8]byte
	next atomic.Int64 // the next part of the task that nobody has claimed
	_    [cacheLine - 8]byte

	// The job. Exactly one of task and loop is set.
	task Task
	loop Loop
	n    int

	failed atomic.Pointer[Panic] // the job's first panic

	workers  int
	busy     bool // a job runs: Run may not be called from inside it
	spin     atomic.Int64
	closed   atomic.Bool
	done     chan struct{} // wakes a caller that parked at the barrier; capacity 1
	exited   sync.WaitGroup
	accounts []account
	sleepers []sleeper
	now      func() int64

	stallMu    sync.Mutex
	stalling   int   // workers in Stall
	stallSince int64 // when the first of them entered it
	stallUnion int64
}

// New starts a pool of the given number of workers, at least one. It does
// not touch GOMAXPROCS, which must exceed workers by what the rest of the
// process needs (docs/architecture.md, "Where time is counted").
func New(workers int) *Pool { return newPool(workers, clock.Now) }

func newPool(workers int, now func() int64) *Pool {
	workers = min(max(workers, 1), gateJoined)
	p := &Pool{
		workers:  workers,
		done:     make(chan struct{}, 1),
		accounts: make([]account, workers),
		sleepers: make([]sleeper, workers),
		now:      now,
	}
	// With more workers than processors a spinning worker only keeps another
	// one from working.
	if workers <= min(runtime.NumCPU(), runtime.GOMAXPROCS(0)) {
		p.spin.Store(defaultSpin)
	}
	start := now()
	for i := range p.accounts {
		p.accounts[i].since = start
	}
	for w := 1; w < workers; w++ {
		p.sleepers[w].wake = make(chan struct{}, 1)
		p.exited.Add(1)
		go p.serve(w)
	}
	return p
}

// Workers returns the number of workers, worker 0 included.
func (p *Pool) Workers() int { return p.workers }

// Run calls t.Do for every i in [0, n), spread over the workers, and returns
// when all have returned. Workers claim ranges of parts that shrink as the work
// runs out, so that a slow worker does not hold the others; one that is not
// awake by then is left out. If a Do panics, the parts not yet claimed are
// dropped and Run panics with a *Panic. While Do runs, its worker is in Compute
// unless Do says otherwise; afterwards worker 0 is back in the state it was in.
// Run allocates nothing.
func (p *Pool) Run(n int, t Task) {
	if n > 0 {
		p.run(n, t, nil, min(p.workers, n))
	}
}

// Each calls l.Work once on worker 0 and on every other worker that joins
// before those who did have returned, and returns when all are back. A worker that
// wakes too late is left out, so Work must not count on the others taking part.
// States and panics are as in Run.
func (p *Pool) Each(l Loop) {
	p.run(0, nil, l, p.workers)
}

func (p *Pool) run(n int, t Task, l Loop, wanted int) {
	if p.busy {
		panic("pool: Run or Each called from inside a job of the same pool")
	}
	p.busy = true
	prev := p.Enter(0, Compute)
	p.task, p.loop, p.n = t, l, n
	p.next.Store(0)
	if wanted > 1 && !p.closed.Load() {
		p.gate.Store((p.gate.Load()&^(gateStep-1) + gateStep) | gateOpen)
		for w := 1; w < wanted; w++ {
			p.unpark(w)
		}
		p.part(0)
		p.barrier()
	} else {
		p.part(0)
	}
	p.Enter(0, prev)
	p.task, p.loop = nil, nil
	p.busy = false
	if f := p.failed.Load(); f != nil {
		p.failed.Store(nil)
		panic(f)
	}
}

// barrier closes the job and waits until every worker that joined has left.
func (p *Pool) barrier() {
	for {
		g := p.gate.Load()
		if p.gate.CompareAndSwap(g, g&^gateOpen) {
			if g&gateJoined == 0 {
				return
			}
			break
		}
	}
	p.Enter(0, Other)
	if p.await(func() bool { return p.gate.Load()&gateJoined == 0 }) {
		return
	}
	for {
		g := p.gate.Load()
		if g&gateJoined == 0 {
			return
		}
		if p.gate.CompareAndSwap(g, g|gateWaiting) {
			<-p.done
			return
		}
	}
}

// await spins until ok holds, and reports false when the time to spin is over.
// It reads Go's atomics in a Go loop, so the scheduler can preempt it.
func (p *Pool) await(ok func() bool) bool {
	limit := p.spin.Load()
	if ok() {
		return true
	}
	if limit == 0 {
		return false
	}
	start := clock.Now()
	for {
		for range 16 {
			pause()
			if ok() {
				return true
			}
		}
		if clock.Now()-start > limit {
			return false
		}
	}
}

// unpark wakes worker w if it is parked.
func (p *Pool) unpark(w int) {
	s := &p.sleepers[w]
	if s.parked.Load() && s.parked.CompareAndSwap(true, false) {
		s.wake <- struct{}{}
	}
}

// serve is the life of a worker other than 0.
func (p *Pool) serve(w int) {
	defer crash.Catch("compute worker")
	// A read through a mapping whose file has shrunk must not end the process.
	debug.SetPanicOnFault(true)
	defer p.exited.Done()
	s := &p.sleepers[w]
	var seen uint64 // the number of the last job that this worker looked at
	fresh := func() bool { return p.gate.Load()&^(gateStep-1) != seen || p.closed.Load() }
	for {
		if !p.await(fresh) {
			s.parked.Store(true)
			// A job announced before the flag was up would find nobody to wake.
			if !fresh() || !s.parked.CompareAndSwap(true, false) {
				<-s.wake
			}
		}
		if p.closed.Load() {
			return
		}
		for {
			g := p.gate.Load()
			seen = g &^ (gateStep - 1)
			if g&gateOpen == 0 {
				break
			}
			if p.gate.CompareAndSwap(g, g+1) {
				p.part(w)
				p.leave()
				break
			}
		}
	}
}

// leave takes a worker out of the job, and wakes the caller if it was the last.
func (p *Pool) leave() {
	for {
		g := p.gate.Load()
		to := g - 1
		last := to&gateJoined == 0 && g&gateWaiting != 0
		if last {
			to &^= gateWaiting
		}
		if p.gate.CompareAndSwap(g, to) {
			if last {
				p.done <- struct{}{}
			}
			return
		}
	}
}

// part does worker w's share of the job and catches its panic. A worker other
// than 0 comes back in state Other.
func (p *Pool) part(w int) {
	returned := false
	defer func() {
		if returned {
			return
		}
		v := recover()
		first := p.failed.CompareAndSwap(nil, &Panic{Worker: w, Value: v, Stack: debug.Stack()})
		p.next.Store(int64(p.n)) // nobody claims more of a job that has failed
		if a, ok := p.loop.(Aborter); ok && first {
			a.Abort()
		}
		p.Enter(w, Other)
	}()
	if p.loop != nil {
		p.Enter(w, Compute)
		p.loop.Work(w)
		p.Enter(w, Other)
	} else {
		p.claim(w)
	}
	returned = true
}

// claim does parts of the task until none is left. Ranges are a share of what
// is left, so that they are few at first and small at the end.
func (p *Pool) claim(w int) {
	n, t := int64(p.n), p.task
	share := int64(4 * p.workers)
	entered := false
	for {
		from := p.next.Load()
		if from >= n {
			break
		}
		to := from + max((n-from)/share, 1)
		if !p.next.CompareAndSwap(from, to) {
			continue
		}
		if !entered {
			p.Enter(w, Compute)
			entered = true
		}
		for i := from; i < to; i++ {
			t.Do(w, int(i))
		}
	}
	if entered && w != 0 {
		p.Enter(w, Other)
	}
}

// Enter puts a worker into a state and returns the one it was in. Only the
// worker itself may call it: from inside Do or Work, or, for worker 0, from the
// serial code between jobs.
func (p *Pool) Enter(worker int, s State) State {
	a := &p.accounts[worker]
	prev := a.state
	if prev == s {
		return prev
	}
	if prev == Stall || s == Stall {
		// The clock is read under the lock, so that the edges of the union come
		// in the order of their times.
		p.stallMu.Lock()
		now := p.now()
		if s == Stall {
			if p.stalling == 0 {
				p.stallSince = now
			}
			p.stalling++
		} else {
			p.stalling--
			if p.stalling == 0 {
				p.stallUnion += now - p.stallSince
			}
		}
		p.stallMu.Unlock()
		a.change(s, now)
		return prev
	}
	a.change(s, p.now())
	return prev
}

func (a *account) change(s State, now int64) {
	a.ns[a.state] += now - a.since
	a.state, a.since = s, now
}

// Times reads the accounts into dst, the time since each worker's last change
// included, so that between two readings the four states add up to Workers
// times the difference of Now. It is for worker 0 between jobs.
func (p *Pool) Times(dst *Times) {
	p.stallMu.Lock()
	now := p.now()
	*dst = Times{Now: now, Workers: p.workers, StallUnion: p.stallUnion}
	if p.stalling > 0 {
		dst.StallUnion += now - p.stallSince
	}
	p.stallMu.Unlock()
	for i := range p.accounts {
		a := &p.accounts[i]
		for s, ns := range a.ns {
			dst.State[s] += ns
		}
		dst.State[a.state] += now - a.since
	}
	first := &p.accounts[0]
	dst.MgmtSerial = first.ns[Mgmt]
	if first.state == Mgmt {
		dst.MgmtSerial += now - first.since
	}
}

// Park returns when every worker other than 0 is parked: none of them runs any
// code until the next job.
func (p *Pool) Park() {
	for w := 1; w < p.workers && !p.closed.Load(); w++ {
		for !p.sleepers[w].parked.Load() {
			runtime.Gosched()
		}
	}
}

// Close ends the workers and waits for them. A Run after it does all of the
// work on worker 0.
func (p *Pool) Close() {
	if p.closed.Swap(true) {
		return
	}
	for w := 1; w < p.workers; w++ {
		p.unpark(w)
	}
	p.exited.Wait()
}
