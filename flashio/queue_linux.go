package flashio

import "slices"

// What only io_uring asks of the queue, which may lose its ring in mid-run.

func (l *list) pushFront(r *Request) {
	r.queued, r.prev, r.next = l, nil, l.head
	if l.head != nil {
		l.head.prev = r
	} else {
		l.tail = r
	}
	l.head = r
	l.n++
}

// giveBack queues requests again that an engine had begun and could not serve,
// before all others, in order.
func (q *queue) giveBack(rs []*Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inFlight -= len(rs)
	for _, r := range slices.Backward(rs) {
		if r.Spec {
			q.spec.pushFront(r)
		} else {
			q.demand.pushFront(r)
		}
	}
	q.work.Broadcast()
}
