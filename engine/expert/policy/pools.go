package policy

import (
	"cmp"
	"slices"
)

// Pools is how a budget is cut into slots. Every size of slot that the model
// needs has a pool; an expert lives in its layer's pool and gives way only to
// experts of that pool. So a slot fits whatever takes it over, nothing is ever
// moved to make room, and the slots together never exceed the budget.
//
// Each pool gets the same number of slots a layer: all of them hold the same
// number of token cycles, which is what one order over all experts tends to as
// well, since every token visits every layer.
type Pools struct {
	Of    []int   // by layer: its pool; -1 where a layer has no routed experts
	Bytes []int64 // by pool, ascending: of one slot
	Slots []int   // by pool
	Cap   []int   // by pool: the most slots that any budget gives it
}

// Pools cuts a budget of slot bytes. Where it cannot give every pool the
// experts of one token's layer, pools share the slots of the next larger size:
// below that hardly anything is kept, but a layer's reads can all be in flight.
func (s Shape) Pools(budget int64) Pools {
	sizes := slices.Clone(s.Slots)
	slices.Sort(sizes)
	sizes = slices.DeleteFunc(slices.Compact(sizes), func(n int64) bool { return n == 0 })
	p := Pools{Of: make([]int, len(s.Slots)), Bytes: sizes, Slots: make([]int, len(sizes)), Cap: make([]int, len(sizes))}
	layers := make([]int, len(sizes)) // by pool; none where a larger one has taken them over
	for l, n := range s.Slots {
		p.Of[l] = -1
		if n > 0 {
			p.Of[l], _ = slices.BinarySearch(sizes, n)
			layers[p.Of[l]]++
		}
	}
	most := 0
	for i, n := range layers {
		most += n * s.Experts
		p.Cap[i] = most
	}
	p.share(s.Used, budget, layers)

	limit := func(i int) int { return layers[i] * s.Experts }
	left := budget
	for i, n := range layers {
		if n > 0 {
			p.Slots[i] = int(min(int64(min(s.Used, limit(i))), left/sizes[i]))
			left -= int64(p.Slots[i]) * sizes[i]
		}
	}
	for {
		next := -1
		for i, n := range layers {
			// The fewest slots a layer, compared without dividing.
			if p.Slots[i] < limit(i) && sizes[i] <= left && (next < 0 || p.Slots[i]*layers[next] < p.Slots[next]*n) {
				next = i
			}
		}
		if next < 0 {
			return p
		}
		p.Slots[next]++
		left -= sizes[next]
	}
}

// share gives layers of one pool to the next larger, the pair that wastes least
// first, until the budget holds used slots of every pool that is left.
func (p *Pools) share(used int, budget int64, layers []int) {
	for {
		need, best, waste, last := int64(0), -1, int64(0), -1
		for i, n := range layers {
			if n == 0 {
				continue
			}
			need += int64(used) * p.Bytes[i]
			if last >= 0 {
				if w := int64(layers[last]) * (p.Bytes[i] - p.Bytes[last]); best < 0 || w < waste {
					best, waste = last, w
				}
			}
			last = i
		}
		if need <= budget || best < 0 {
			return
		}
		to := best + 1
		for layers[to] == 0 {
			to++
		}
		layers[to] += layers[best]
		layers[best] = 0
		for l, of := range p.Of {
			if of == best {
				p.Of[l] = to
			}
		}
	}
}

// nearly is how close two sizes must be to count as one, as a part of the
// larger.
const nearly = 64

// Level raises slots that differ by little to the largest of them, so that their
// layers share a pool: those of experts of equal size, which differ only by how
// far windows reach beyond the experts, and those that differ by less than a
// sixty-fourth.
func (s Shape) Level() {
	largest := map[int64]int64{} // by the expert's size
	for l, n := range s.Slots {
		largest[s.Bytes[l]] = max(largest[s.Bytes[l]], n)
	}
	order := make([]int, len(s.Slots))
	for l := range order {
		order[l] = l
		s.Slots[l] = largest[s.Bytes[l]]
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.Slots[b], s.Slots[a]) })
	top := int64(0)
	for _, l := range order {
		if top == 0 || top-s.Slots[l] >= (top+nearly-1)/nearly {
			top = s.Slots[l]
		}
		s.Slots[l] = top
	}
}

// Beside returns how many slots of each pool fit into bytes beside its own, for what
// is read before it is asked for: as many a layer in each.
func (p Pools) Beside(bytes int64) []int {
	slots, layers := make([]int, len(p.Bytes)), make([]int, len(p.Bytes))
	for _, of := range p.Of {
		if of >= 0 {
			layers[of]++
		}
	}
	for {
		next := -1
		for i, n := range layers {
			if n > 0 && p.Bytes[i] <= bytes && (next < 0 || slots[i]*layers[next] < slots[next]*n) {
				next = i
			}
		}
		if next < 0 {
			return slots
		}
		slots[next]++
		bytes -= p.Bytes[next]
	}
}

// Reserve returns which part of a budget is kept for what is read before it is asked
// for: two layers' worth, never more than a sixteenth, and none where all experts fit.
// It is kept whether anything is read ahead or not, so that what is hit and evicted
// does not depend on that.
func (s Shape) Reserve(budget int64) int64 {
	layer := s.LayerWorkingSet()
	return max(0, min(2*layer, budget/16, budget-layer, s.Total()-budget))
}
