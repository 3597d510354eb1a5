package profile

import "slices"

// ExpertMap tells of every routed expert of a model whether it is in memory, and what
// happened to it last; and of every layer what its tokens cost. Each expert's figures
// are of one instant. Decoding goes on while they are read, so that those of different
// layers may be some microseconds apart.
type ExpertMap struct {
	Token   int32 // tokens that the model was given since it was opened: ages count back from it
	Experts int   // of a layer; 0: the model has none, or they are not streamed
	// Policies are the names of who gives experts up, see ExpertCell.Why.
	Policies []string
	// Rebuilt: it comes of recorded routes and misses. Who was evicted is then known only
	// of experts that were missed later.
	Rebuilt bool
	// Timed: layers' costs were measured. NoStall: all but the waiting was, since experts
	// are not read by lanes. Estimated: of the costs there is the waiting alone, as
	// ShareStall reckons it.
	Timed, NoStall, Estimated bool
	Layers                    []MapLayer
	Cells                     []ExpertCell // [layers x Experts]
}

// MapLayer is a layer of an ExpertMap. Times are ns, summed over the decoded tokens of
// the latest run and shared among the workers as in Record.
type MapLayer struct {
	Bytes                       int64 // of one expert; 0: the layer has none
	Tokens                      int64 // whose costs are summed
	Compute, Mgmt, Stall, Other int64
}

// ExpertState says where an expert is.
type ExpertState uint8

// Where an expert can be.
const (
	Absent   ExpertState = iota
	Resident             // in the cache, or on its way there because it was asked for
	Ahead                // read, or being read, before anybody has asked for it
)

// ExpertCell is one expert. Its token numbers are those of ExpertMap.Token; 0 stands for
// never, since the cache was last emptied.
type ExpertCell struct {
	Used, Read, Gone, Guessed int32 // token of the last use, read on demand, eviction, read ahead
	Uses, Reads               int32 // tokens or batches that used it, and of them those that had it read
	By                        int32 // index of the cell for which it was given up; -1: for none
	Why                       uint8 // it was given up: see the constants
	State                     ExpertState
}

// Why an expert was given up.
const (
	NeverGone  uint8 = iota
	GoneShrunk       // the budget became smaller
	GoneFailed       // its read failed
	GoneLayer        // whole layers are read, and this one was over
	GonePolicy       // from here on: the policy of that number in ExpertMap.Policies chose it
)

// Reset forgets everything and makes room for a model's layers and cells.
func (m *ExpertMap) Reset(layers, experts int) {
	n := layers * experts
	*m = ExpertMap{Experts: experts, Layers: slices.Grow(m.Layers[:0], layers)[:layers], Cells: slices.Grow(m.Cells[:0], n)[:n]}
	clear(m.Layers)
	clear(m.Cells)
}

// Cell returns a layer's expert.
func (m *ExpertMap) Cell(layer, expert int) *ExpertCell { return &m.Cells[layer*m.Experts+expert] }

// Event is what happened to an expert last.
type Event uint8

// What can happen to an expert, the strongest last: of two in the same token that one
// is told.
const (
	NoEvent Event = iota
	WasGuessed
	WasHit
	WasRead
	WasEvicted
)

// Latest returns what happened to an expert last, and how many tokens ago.
func (m *ExpertMap) Latest(c *ExpertCell) (Event, int32) {
	what, at := NoEvent, int32(0)
	for _, e := range []struct {
		Event
		at int32
	}{{WasGuessed, c.Guessed}, {WasHit, c.Used}, {WasRead, c.Read}, {WasEvicted, c.Gone}} {
		if e.at > 0 && e.at >= at {
			what, at = e.Event, e.at
		}
	}
	if what == WasEvicted && c.State == Resident { // evicted and read again for the same token
		what = WasRead
	}
	return what, m.Token - at
}

// ShareStall adds a token's waiting to the layers of its misses, each by the miss that took
// longest. It is an estimate: what was computed meanwhile is not taken off.
func (m *ExpertMap) ShareStall(r *Record, misses []Miss) {
	if !r.Stall.OK {
		return
	}
	longest := func(from int) (last int, wait int64) { // of the layer that a miss is of
		for last = from; last < len(misses) && misses[last].Layer == misses[from].Layer; last++ {
			wait = max(wait, int64(misses[last].Wait))
		}
		return last, wait
	}
	all := int64(0)
	for i := 0; i < len(misses); {
		next, wait := longest(i)
		all += wait
		i = next
	}
	for i := 0; i < len(misses) && all > 0; {
		next, wait := longest(i)
		if l := int(misses[i].Layer); l < len(m.Layers) {
			m.Layers[l].Stall += int64(float64(r.Stall.Value) * float64(wait) / float64(all))
		}
		i = next
	}
	for i := range m.Layers {
		m.Layers[i].Tokens++
	}
	m.Estimated = true
}

// HitShare returns of how many uses an expert was in the cache, in percent.
func (c *ExpertCell) HitShare() Maybe[float64] {
	return Ratio(100*float64(c.Uses-c.Reads), float64(c.Uses))
}

// Totals sums up a layer: how often its experts were used, and read for it, and how many
// are in memory.
func (m *ExpertMap) Totals(layer int) (uses, reads int64, resident int) {
	for i := range m.Cells[layer*m.Experts:][:m.Experts] {
		c := m.Cell(layer, i)
		uses += int64(c.Uses)
		reads += int64(c.Reads)
		if c.State == Resident {
			resident++
		}
	}
	return uses, reads, resident
}
