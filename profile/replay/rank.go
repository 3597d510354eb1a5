package replay

import "math/rand/v2"

// ranking orders the residents of a cache by who goes first: the least by a, then
// by b. It is a binary heap that knows where each of its keys is.
type ranking struct {
	heap []Key
	at   []int32 // by key: place in heap, or -1
	a, b []int64 // by key
	held []Key   // scratch of victim
}

func newRanking(keys int) *ranking {
	r := &ranking{at: make([]int32, keys), a: make([]int64, keys), b: make([]int64, keys)}
	for i := range r.at {
		r.at[i] = -1
	}
	return r
}

func (r *ranking) less(x, y Key) bool { return r.a[x] < r.a[y] || r.a[x] == r.a[y] && r.b[x] < r.b[y] }

func (r *ranking) set(i int, k Key) {
	r.heap[i] = k
	r.at[k] = int32(i)
}

func (r *ranking) up(i int) {
	k := r.heap[i]
	for i > 0 {
		parent := (i - 1) / 2
		if !r.less(k, r.heap[parent]) {
			break
		}
		r.set(i, r.heap[parent])
		i = parent
	}
	r.set(i, k)
}

func (r *ranking) down(i int) {
	k := r.heap[i]
	for {
		child := 2*i + 1
		if child >= len(r.heap) {
			break
		}
		if child+1 < len(r.heap) && r.less(r.heap[child+1], r.heap[child]) {
			child++
		}
		if !r.less(r.heap[child], k) {
			break
		}
		r.set(i, r.heap[child])
		i = child
	}
	r.set(i, k)
}

// rank gives a key its rank, whether it is there or not.
func (r *ranking) rank(k Key, a, b int64) {
	r.a[k], r.b[k] = a, b
	if i := int(r.at[k]); i >= 0 {
		r.up(i)
		r.down(int(r.at[k]))
	}
}

func (r *ranking) add(k Key) {
	r.heap = append(r.heap, k)
	r.at[k] = int32(len(r.heap) - 1)
	r.up(len(r.heap) - 1)
}

func (r *ranking) remove(k Key) {
	i, last := int(r.at[k]), len(r.heap)-1
	r.at[k] = -1
	if i != last {
		moved := r.heap[last]
		r.heap = r.heap[:last]
		r.set(i, moved)
		r.up(i)
		r.down(int(r.at[moved]))
		return
	}
	r.heap = r.heap[:last]
}

// victim returns who goes first of those that are not pinned.
func (r *ranking) victim(pinned func(Key) bool) (k Key, ok bool) {
	r.held = r.held[:0]
	for len(r.heap) > 0 {
		if k = r.heap[0]; !pinned(k) {
			ok = true
			break
		}
		r.held = append(r.held, k)
		r.remove(k)
	}
	for _, p := range r.held {
		r.add(p)
	}
	return k, ok
}

// order says how a policy ranks: what a touch makes of a key.
type order interface {
	touched(r *ranking, k Key, first bool) // first: of the batch
}

// recency is least recently used.
type recency struct{ now int64 }

func (o *recency) touched(r *ranking, k Key, _ bool) {
	o.now++
	r.rank(k, 0, o.now)
}

// frequency is least frequently used, the longest untouched first among equals.
type frequency struct{ now int64 }

func (o *frequency) touched(r *ranking, k Key, first bool) {
	o.now++
	n := r.a[k]
	if first {
		n++
	}
	r.rank(k, n, o.now)
}

// chance gives everybody a rank by lot.
type chance struct{ random *rand.Rand }

func (o *chance) touched(r *ranking, k Key, _ bool) { r.rank(k, o.random.Int64(), 0) }

// future knows when each expert is asked for next: Belady's optimum for experts of
// one size.
type future struct {
	next []int32 // by lookup, in the order of the trace: number of the batch that asks next
	i    int
}

func (o *future) touched(r *ranking, k Key, first bool) {
	if first {
		r.rank(k, -int64(o.next[o.i]), 0)
		o.i++
	}
}
