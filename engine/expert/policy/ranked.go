package policy

import "math"

// ranked gives up the resident expert of the smallest worth. A worth belongs to the
// route alone: it changes only when the expert's layer is visited. So the least of
// each layer is remembered, and a victim costs a look at one expert a layer.
type ranked struct {
	name  string
	shape Shape
	// worth is by key; visit brings a layer's up to date.
	worth []float64
	visit func(layer, tokens int, touches []Key)
	reset func()
	// budget hears of the budget; nil: it does not matter.
	budget func(slotBytes int64)
	// near is what a worth counts for by how many layers away the next visit is, of
	// those with experts: one that is due soon takes up its slot only for so long. The
	// layer just visited is the furthest. nil: it does not matter.
	near  []float64
	place []int // by layer: its number among those with experts
	now   int   // place of the layer that was visited last

	resident []bool
	least    []Key // by layer: the resident of the smallest worth, None if not known
	count    []int // by layer: residents
}

func newRanked(name string, s Shape, worth []float64, cyclic bool) *ranked {
	r := &ranked{name: name, shape: s, worth: worth, resident: make([]bool, s.Keys()), least: make([]Key, len(s.Bytes)), count: make([]int, len(s.Bytes))}
	n := 0
	for _, b := range s.Bytes {
		r.place = append(r.place, n)
		if b > 0 {
			n++
		}
	}
	if cyclic {
		r.near = make([]float64, n+1)
		for d := 1; d <= n; d++ {
			r.near[d] = math.Sqrt(float64(n) / float64(d))
		}
	}
	return r
}

func (r *ranked) Name() string { return r.name }

func (r *ranked) Reset() {
	r.reset()
	clear(r.resident)
	clear(r.count)
	for i := range r.least {
		r.least[i] = None
	}
	r.now = 0
}

// SetBudget implements Budgeted.
func (r *ranked) SetBudget(slotBytes int64) {
	if r.budget != nil {
		r.budget(slotBytes)
		for i := range r.least { // what they were found by may have changed
			r.least[i] = None
		}
	}
}

func (r *ranked) Visit(layer, tokens int, touches []Key) {
	r.visit(layer, tokens, touches)
	r.visited(layer)
}

// visited is told that the worths of a layer have changed.
func (r *ranked) visited(layer int) {
	r.least[layer] = None
	r.now = r.place[layer]
}

func (r *ranked) Add(k Key) {
	layer := r.shape.Layer(k)
	r.resident[k] = true
	r.count[layer]++
	least := r.least[layer]
	switch {
	case r.count[layer] == 1:
		r.least[layer] = k
	case least != None && (r.worth[k] < r.worth[least] || r.worth[k] == r.worth[least] && k < least):
		r.least[layer] = k
	}
}

func (r *ranked) Remove(k Key) {
	layer := r.shape.Layer(k)
	r.resident[k] = false
	r.count[layer]--
	if r.least[layer] == k {
		r.least[layer] = None
	}
}

func (r *ranked) Victim(of func(layer int) bool, pinned func(Key) bool) (Key, bool) {
	best, least := None, 0.0
	for layer, n := range r.count {
		if n == 0 || !of(layer) {
			continue
		}
		k := r.least[layer]
		if k == None {
			k = r.leastOf(layer, nil)
			r.least[layer] = k
		}
		if pinned != nil && pinned(k) {
			if k = r.leastOf(layer, pinned); k == None {
				continue
			}
		}
		worth := r.worth[k]
		if r.near != nil {
			worth *= r.near[r.away(layer)]
		}
		if best == None || worth < least {
			best, least = k, worth
		}
	}
	return best, best != None
}

// away returns how many layers with experts lie before a layer's next visit, itself
// included.
func (r *ranked) away(layer int) int {
	d := r.place[layer] - r.now
	if d <= 0 {
		d += len(r.near) - 1
	}
	return d
}

// leastOf finds the resident of a layer of the smallest worth that is not pinned.
func (r *ranked) leastOf(layer int, pinned func(Key) bool) Key {
	best := None
	for k := r.shape.Key(layer, 0); k < r.shape.Key(layer+1, 0); k++ {
		if r.resident[k] && (best == None || r.worth[k] < r.worth[best]) && (pinned == nil || !pinned(k)) {
			best = k
		}
	}
	return best
}

// newLRU gives up the expert whose last touch is the longest ago. Its worth is the
// number of that touch.
func newLRU(s Shape) Policy {
	a := newAges(s)
	r := newRanked("lru", s, a.touched, false)
	r.visit, r.reset = a.visit, a.reset
	return r
}

// ages numbers touches.
type ages struct {
	touched []float64 // by key: number of its last touch
	n       float64
}

func newAges(s Shape) *ages { return &ages{touched: make([]float64, s.Keys())} }

func (a *ages) visit(_, _ int, touches []Key) {
	for _, k := range touches {
		a.n++
		a.touched[k] = a.n
	}
}

func (a *ages) reset() {
	clear(a.touched)
	a.n = 0
}

// newHarmonic gives up the expert with the smallest sum of 1/age over its past uses.
func newHarmonic(s Shape) Policy {
	h := newHistory(s)
	r := newRanked("harmonic", s, h.byAge, true)
	r.visit, r.reset, r.budget = h.visit, h.reset, h.setBudget
	return r
}

// newLookalike asks besides what followed tokens whose routes were like the present
// one's.
func newLookalike(s Shape) Policy {
	h := newHistory(s)
	r := newRanked("lookalike", s, h.byLikeness, true)
	r.visit, r.reset, r.budget = h.visit, h.reset, h.setBudget
	return r
}
