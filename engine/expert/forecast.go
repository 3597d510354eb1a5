package expert

import (
	"bmoe/engine/expert/policy"
	"bmoe/internal/clock"
)

// Ahead is what was read before it was asked for, in logical bytes by who guessed.
type Ahead struct {
	Useful [mostKinds]int64 // there when it was demanded
	Late   [mostKinds]int64 // demanded while it was on its way
	Wasted [mostKinds]int64 // given up without having been demanded
}

// guess is an expert that may be needed at the next visit of its layer.
type guess struct {
	key    policy.Key
	p      float32
	origin Origin
	rank   uint8
	began  bool // it is being read, or needs no reading
}

// leastWorth is the chance below which a guess is not worth a read.
const leastWorth = 0.3

// forecast is what is expected of the layers to come. It is guarded by the
// streamer's mu.
type forecast struct {
	level   Foresight
	prompts bool                    // the next layer of a prompt's batch is guessed too
	at      [mostPredictors]guesser // nil: never switched on, or none of its own
	order   []int                   // layers with experts
	place   []int                   // by layer: its number in order
	now     int                     // place of the layer visited last
	lists   [][]guess               // by place
	waiting []int                   // by place: guesses that have not begun
	chance  []float32               // by key: of being used at the next visit
	touched []bool                  // by key: a prompt's last batch used it
	failed  []bool                  // by key: it could not be read ahead, and was not demanded since
	hit     [mostKinds][]float32    // by rank: how often such a guess was right, of those that were not resident
	ids     []int32                 // tokens of the pass
	most    int                     // speculative reads in flight
	trial   trial
	worth   Ahead
}

func (f *forecast) init(s policy.Shape) {
	f.place, f.chance, f.touched, f.failed = make([]int, len(s.Bytes)), make([]float32, s.Keys()), make([]bool, s.Keys()), make([]bool, s.Keys())
	for l, b := range s.Bytes {
		f.place[l] = len(f.order)
		if b > 0 {
			f.order = append(f.order, l)
		}
	}
	f.lists, f.waiting = make([][]guess, len(f.order)), make([]int, len(f.order))
	for i := range f.lists {
		f.lists[i] = make([]guess, 0, s.Experts)
	}
	for i, kind := range Kinds {
		f.hit[i] = make([]float32, s.Experts)
		for r := range f.hit[i] {
			f.hit[i][r] = kind.right
		}
	}
}

// decode reports whether anything is guessed of single tokens, which trials are about.
func (f *forecast) decode() bool { return f.level != Foresight{} }

// on reports whether anything is guessed.
func (f *forecast) on() bool { return f.decode() || f.prompts }

// SetForesight says how far predictors are turned up from now on, and whether the next
// layer of a prompt's batch is guessed. No batch may be open.
func (s *Streamer) SetForesight(f Foresight, prompts bool) {
	s.Recall()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fore.level, s.fore.prompts = f, prompts
	s.fore.trial = trial{}
	for i, p := range Predictors {
		if f[i] > 0 && s.fore.at[i] == nil && p.start != nil {
			s.fore.at[i] = p.start(s)
		}
	}
}

// Tokens hears which tokens the next pass is of. For a single one the layers'
// experts are guessed by its id.
func (s *Streamer) Tokens(ids []int32) {
	f := &s.fore
	s.mu.Lock()
	defer s.mu.Unlock()
	s.census.pass(len(ids))
	s.links.pass(len(ids))
	if !f.on() {
		return
	}
	f.ids = ids
	f.now = -1
	if len(ids) == 1 && f.decode() {
		f.trial.token(clock.Now())
	}
	if len(ids) != 1 || !f.trial.on() {
		return
	}
	for i, g := range f.at {
		if f.level[i] > 0 && g != nil {
			g.token(ids[0])
		}
	}
	s.pump()
}

// expect replaces what is guessed of a layer; the likeliest come first. What is being
// read for a guess that is given up by this stays until its place is needed. mu is
// held.
func (s *Streamer) expect(place int, origin Origin, ids []int32) {
	f := &s.fore
	if old := f.lists[place]; len(old) > 0 && old[0].origin != origin {
		// The better kind of guess stays.
		if middle := s.shape.Used / 2; f.hit[old[0].origin][middle] > f.hit[origin][middle] {
			return
		}
	}
	f.forget(place)
	list := f.lists[place]
	for rank, e := range ids {
		if len(list) == cap(list) {
			break
		}
		g := guess{key: s.shape.Key(f.order[place], e), origin: origin, rank: uint8(min(rank, 255))}
		g.p = f.hit[origin][g.rank]
		g.began = s.slotOf[g.key] != nil || f.failed[g.key]
		if !g.began {
			f.waiting[place]++
		}
		f.chance[g.key] = g.p
		list = append(list, g)
	}
	f.lists[place] = list
}

// forget drops what is guessed of a layer.
func (f *forecast) forget(place int) {
	for _, g := range f.lists[place] {
		f.chance[g.key] = 0
	}
	f.lists[place], f.waiting[place] = f.lists[place][:0], 0
}

// visited is told of a layer's batch after the directory has looked it up and before
// its reads are submitted: guesses are judged, and the next ones made. mu is held.
func (s *Streamer) visited(layer, tokens int, ids []int32) {
	f := &s.fore
	place := f.place[layer]
	f.now = place
	f.judge(s, place)
	f.forget(place)
	for i, g := range f.at {
		if f.level[i] > 0 && g != nil {
			g.visited(layer, tokens, ids, !f.trial.on())
		}
	}
	if tokens > 1 && f.prompts {
		s.prompt(place, layer, tokens, ids)
	}
}

// guessRate is by how much one guess moves what is known of its kind.
const guessRate = 1. / 64

// judge notes which of a layer's guesses were right. Only those count that had to be
// read: what is resident is likely to be used again anyway.
func (f *forecast) judge(s *Streamer, place int) {
	b := &s.batch
	for _, g := range f.lists[place] {
		used := float32(0)
		for i := range b.plan.Steps {
			if step := &b.plan.Steps[i]; step.Key == g.key {
				used = 1
				if step.Hit {
					used = -1
				}
				break
			}
		}
		if used < 0 || used == 0 && s.dir.IsResident(g.key) {
			continue
		}
		p := &f.hit[g.origin][g.rank]
		*p += float32((used - *p) * guessRate)
	}
}

// prompt guesses the next layer of a prompt's batch: all its experts where the batch
// must touch nearly all, else those that the batch before used there.
func (s *Streamer) prompt(place, layer, tokens int, ids []int32) {
	f := &s.fore
	first := s.shape.Key(layer, 0)
	clear(f.touched[first:][:s.layout.Experts])
	for _, e := range ids {
		f.touched[first+policy.Key(e)] = true
	}
	if place+1 == len(f.order) {
		return
	}
	next := place + 1
	f.forget(next)
	from := s.shape.Key(f.order[next], 0)
	all := tokens*s.layout.Used >= 3*s.layout.Experts
	for e := range s.layout.Experts {
		k := from + policy.Key(e)
		if !all && !f.touched[k] || len(f.lists[next]) == cap(f.lists[next]) {
			continue
		}
		g := guess{key: k, p: 0.9, origin: Whole, began: s.slotOf[k] != nil || f.failed[k]}
		if !g.began {
			f.waiting[next]++
		}
		f.chance[k] = g.p
		f.lists[next] = append(f.lists[next], g)
	}
}

// pump begins reads of what is expected, the nearest layer first and of a layer the
// likeliest, as long as there is room: little is in flight at a time, so that demand
// does not wait for it, and demand overtakes what no lane has begun. A guess takes
// the place only of one that is less likely by now. mu is held.
func (s *Streamer) pump() {
	f := &s.fore
	for s.flying < f.most {
		g := f.best(s)
		if g == nil {
			return
		}
		g.began = true
		f.waiting[f.place[s.shape.Layer(g.key)]]--
		if s.slotOf[g.key] != nil {
			continue
		}
		if s.makeRoomAhead(g) {
			s.begin(g)
		}
	}
}

// best returns the guess to read next, nil if none is worth it.
func (f *forecast) best(s *Streamer) *guess {
	n := len(f.order)
	for d := 1; d <= n; d++ {
		place := (f.now + d) % n
		if f.waiting[place] == 0 {
			continue
		}
		var best *guess
		for i := range f.lists[place] {
			if g := &f.lists[place][i]; !g.began && g.p >= leastWorth && (best == nil || g.p > best.p) {
				best = g
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// makeRoomAhead reports whether a slot for a guess is there, or was made free.
func (s *Streamer) makeRoomAhead(g *guess) bool {
	p := s.poolOf(s.shape.Layer(g.key))
	if len(p.aheads) < p.maxAhead {
		return len(p.free) > 0
	}
	var least *slot
	for _, sl := range p.aheads {
		if c := s.fore.chance[sl.key]; sl.pending == 0 && c < g.p && (least == nil || c < s.fore.chance[least.key]) {
			least = sl
		}
	}
	if least == nil {
		return false
	}
	s.waste(least)
	s.give(least)
	return true
}

// waste counts a slot that is given up without its expert having been demanded.
func (s *Streamer) waste(sl *slot) {
	s.fore.worth.Wasted[sl.origin] += s.shape.Bytes[s.shape.Layer(sl.key)]
}

// begin starts the reads of a guess. mu is held.
func (s *Streamer) begin(g *guess) {
	s.startAhead(g.key, g.origin)
}

// Guesses reports whether anything is guessed.
func (s *Streamer) Guesses() bool { return s.fore.on() }

// SwitchedOff reports whether a trial has found that tokens take less time without
// guesses.
func (s *Streamer) SwitchedOff() bool { return s.fore.trial.off }

// Ahead returns what came of reading ahead since the cache was last emptied. No batch
// may be open.
func (s *Streamer) Ahead() Ahead {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fore.worth
}
