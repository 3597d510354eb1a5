package policy

// autoTokens is over how many tokens the policies are compared.
const autoTokens = 64

// auto serves from whichever policy would have read least over the latest tokens.
// Each has a shadow: a directory of the same budget without memory behind it, which
// tells exactly what the policy would have hit from the beginning.
type auto struct {
	shape   Shape
	history *history
	ages    *ages
	live    []*ranked // rank the residents; they share history with the shadows
	shadows []*Directory
	best    int // that the residents are ranked by now

	read  [][autoTokens]int64 // by policy: bytes that the latest tokens missed
	sum   []int64             // of them
	token int
	last  int // layer that was visited last
	plan  Plan
	ids   []int32
}

func newAuto(s Shape) Policy {
	a := &auto{shape: s, history: newHistory(s), ages: newAges(s)}
	worths := []struct {
		name   string
		worth  []float64
		cyclic bool
	}{{"lookalike", a.history.byLikeness, true}, {"harmonic", a.history.byAge, true}, {"lru", a.ages.touched, false}}
	nothing, none := func() {}, func(int, int, []Key) {}
	for _, w := range worths {
		// What is ranked by is brought up to date once, for all.
		live, shadow := newRanked(w.name, s, w.worth, w.cyclic), newRanked(w.name, s, w.worth, w.cyclic)
		live.reset, shadow.reset, live.visit, shadow.visit = nothing, nothing, none, none
		a.live = append(a.live, live)
		a.shadows = append(a.shadows, NewDirectory(s, 0, shadow))
	}
	a.read, a.sum = make([][autoTokens]int64, len(worths)), make([]int64, len(worths))
	return a
}

func (a *auto) Name() string { return "auto" }

// Serving returns the name of the policy that residents are ranked by now.
func (a *auto) Serving() string { return a.live[a.best].name }

// SetBudget gives the shadows the directory's budget.
func (a *auto) SetBudget(budget int64) {
	a.history.setBudget(budget)
	budget = max(budget, a.shape.LayerWorkingSet()) // below, nothing is told apart
	for _, d := range a.shadows {
		d.Resize(budget)
	}
}

func (a *auto) Reset() {
	a.history.reset()
	a.ages.reset()
	for i := range a.live {
		a.live[i].Reset()
		a.shadows[i].Empty()
		a.read[i] = [autoTokens]int64{}
	}
	clear(a.sum)
	a.best, a.token, a.last = 0, 0, len(a.shape.Bytes)
}

func (a *auto) Visit(layer, tokens int, touches []Key) {
	if layer <= a.last { // another token
		a.turn()
	}
	a.last = layer
	a.history.visit(layer, tokens, touches)
	a.ages.visit(layer, tokens, touches)
	a.ids = a.ids[:0]
	first := a.shape.Key(layer, 0)
	for _, k := range touches {
		a.ids = append(a.ids, int32(k-first))
	}
	for i := range a.live {
		a.live[i].visited(layer)
		before := a.shadows[i].Counters().ReadBytes
		a.shadows[i].Visit(layer, tokens, a.ids, &a.plan)
		if n := a.shadows[i].Counters().ReadBytes - before; tokens == 1 { // a prompt reads nearly all, whatever the policy
			a.read[i][a.token] += n
			a.sum[i] += n
		}
	}
}

// turn begins a token: the policies are compared, and the oldest of their tokens
// forgotten. One that is as good as the one in force does not replace it.
func (a *auto) turn() {
	for i, n := range a.sum {
		if n < a.sum[a.best] {
			a.best = i
		}
	}
	a.token = (a.token + 1) % autoTokens
	for i := range a.sum {
		a.sum[i] -= a.read[i][a.token]
		a.read[i][a.token] = 0
	}
}

func (a *auto) Add(k Key) {
	for _, l := range a.live {
		l.Add(k)
	}
}

func (a *auto) Remove(k Key) {
	for _, l := range a.live {
		l.Remove(k)
	}
}

func (a *auto) Victim(of func(int) bool, pinned func(Key) bool) (Key, bool) {
	return a.live[a.best].Victim(of, pinned)
}
