package policy

// lru gives up the expert whose last touch is the longest ago. It is a list
// through arrays indexed by key, so that neither a touch nor an eviction
// allocates; node len(next)-1 is the list's anchor.
type lru struct {
	next, prev []Key
	touched    []uint64 // number of the last touch, by key
	touches    uint64
	resident   []bool
}

func newLRU(s Shape) Policy {
	n := s.Keys()
	l := &lru{next: make([]Key, n+1), prev: make([]Key, n+1), touched: make([]uint64, n), resident: make([]bool, n)}
	l.Reset()
	return l
}

func (l *lru) Name() string { return "lru" }

func (l *lru) anchor() Key { return Key(len(l.next) - 1) }

func (l *lru) Reset() {
	a := l.anchor()
	l.next[a], l.prev[a] = a, a
	clear(l.touched)
	clear(l.resident)
	l.touches = 0
}

func (l *lru) Visit(_, _ int, touches []Key) {
	for _, k := range touches {
		l.touches++
		l.touched[k] = l.touches
		if l.resident[k] {
			l.unlink(k)
			l.insertBefore(k, l.anchor())
		}
	}
}

// Add puts k where its last touch belongs. Whatever was touched later sits at
// the recent end and belongs to the same batch, so the walk is short.
func (l *lru) Add(k Key) {
	at := l.anchor()
	for p := l.prev[at]; p != l.anchor() && l.touched[p] > l.touched[k]; p = l.prev[at] {
		at = p
	}
	l.insertBefore(k, at)
	l.resident[k] = true
}

func (l *lru) Remove(k Key) {
	l.unlink(k)
	l.resident[k] = false
}

func (l *lru) Victim(pinned func(Key) bool) (Key, bool) {
	for k := l.next[l.anchor()]; k != l.anchor(); k = l.next[k] {
		if !pinned(k) {
			return k, true
		}
	}
	return 0, false
}

func (l *lru) unlink(k Key) {
	l.next[l.prev[k]], l.prev[l.next[k]] = l.next[k], l.prev[k]
}

func (l *lru) insertBefore(k, at Key) {
	l.prev[k], l.next[k] = l.prev[at], at
	l.next[l.prev[at]], l.prev[at] = k, k
}
