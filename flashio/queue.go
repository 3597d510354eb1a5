package flashio

import (
	"slices"
	"sync"

	"bmoe/internal/clock"
	"bmoe/internal/crash"
)

// list is an intrusive FIFO of requests.
type list struct {
	head, tail *Request
	n          int
}

func (l *list) push(r *Request) {
	r.queued, r.prev, r.next = l, l.tail, nil
	if l.tail != nil {
		l.tail.next = r
	} else {
		l.head = r
	}
	l.tail = r
	l.n++
}

func (l *list) remove(r *Request) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		l.head = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		l.tail = r.prev
	}
	r.queued, r.prev, r.next = nil, nil, nil
	l.n--
}

// queue holds what has been submitted and not begun: demand, which goes first,
// and speculation. Both engines build on it.
type queue struct {
	mu       sync.Mutex
	work     sync.Cond // signalled when a waiting lane should look again
	demand   list
	spec     list
	inFlight int
	closed   bool
	waiting  int // lanes asleep in take
	// idle is set by an engine that sleeps outside of take and could begin more
	// reads; wake gets it up.
	idle bool
	wake func()
}

func (q *queue) init() { q.work.L = &q.mu }

// add queues rs, or refuses them if the queue is closed.
func (q *queue) add(rs []*Request) {
	now := clock.Now()
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		refuse(rs)
		return
	}
	for _, r := range rs {
		q.pushLocked(r, now)
	}
	for range min(len(rs), q.waiting) {
		q.work.Signal()
	}
	q.wakeLocked()
	q.mu.Unlock()
}

// wakeLocked gets an engine up that sleeps outside of take.
func (q *queue) wakeLocked() {
	if q.idle {
		q.idle = false
		q.wake()
	}
}

func (q *queue) pushLocked(r *Request, now int64) {
	if r.queued != nil {
		panic("flashio: a request was submitted again while it waits")
	}
	r.N, r.Err, r.Lane = 0, nil, -1
	r.Queued, r.Started, r.Ended = now, 0, 0
	if r.Spec {
		q.spec.push(r)
	} else {
		q.demand.push(r)
	}
}

// popLocked removes the request that is due next, or returns nil.
func (q *queue) popLocked() *Request {
	l := &q.demand
	if l.head == nil {
		l = &q.spec
	}
	r := l.head
	if r != nil {
		l.remove(r)
	}
	return r
}

// take waits for a request and counts it as in flight. It returns nil when the
// queue is closed; what is left in it is then for drain.
func (q *queue) take() *Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idle = false
	for {
		if q.closed {
			return nil
		}
		if r := q.popLocked(); r != nil {
			q.inFlight++
			return r
		}
		q.waiting++
		q.work.Wait()
		q.waiting--
	}
}

// finished counts n requests as no longer in flight. It comes before ReadDone,
// so that a caller who has seen its last request complete finds the reader idle.
func (q *queue) finished(n int) {
	q.mu.Lock()
	q.inFlight -= n
	q.mu.Unlock()
}

func (q *queue) promote(r *Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.queued != &q.spec {
		return false
	}
	q.spec.remove(r)
	r.Spec = false
	q.demand.push(r)
	return true
}

func (q *queue) cancel(r *Request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if r.queued == nil {
		return false
	}
	r.queued.remove(r)
	return true
}

// close stops take and add. It returns false if the queue was closed before.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed = true
	q.work.Broadcast()
	q.wakeLocked()
	return true
}

// drain completes what close left in the queue.
func (q *queue) drain() {
	for {
		q.mu.Lock()
		r := q.popLocked()
		q.mu.Unlock()
		if r == nil {
			return
		}
		r.Err = ErrClosed
		r.Done.ReadDone(r)
	}
}

// refuse completes requests that arrived after close. They are completed on a
// goroutine of their own, because the caller may hold a lock that its ReadDone
// takes.
func refuse(rs []*Request) {
	own := slices.Clone(rs)
	go func() {
		defer crash.Catch("lane")
		for _, r := range own {
			r.N, r.Err, r.Lane = 0, ErrClosed, -1
			r.Queued, r.Started, r.Ended = clock.Now(), 0, 0
			r.Done.ReadDone(r)
		}
	}()
}

func (q *queue) depth() (demand, spec, inFlight int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.demand.n, q.spec.n, q.inFlight
}
