package policy

import (
	"slices"
	"testing"
)

const mib = 1 << 20

// q4km is the shape of a Qwen3-30B-A3B file of type Q4_K_M, whose down
// projections have two types.
func q4km() Shape {
	s := Shape{Experts: 128, Used: 8}
	for l := range 48 {
		n := int64(2_654_208)
		if l < 6 || l >= 42 || l%3 == 2 {
			n = 3_059_712
		}
		s.Bytes, s.Slots = append(s.Bytes, n), append(s.Slots, n+3*4096)
	}
	return s
}

// dynamic is the shape of a file that has six sizes of experts, one of them in
// a single layer and three times as large as the smallest.
func dynamic() Shape {
	s := Shape{Experts: 128, Used: 8}
	for l := range 48 {
		n := []int64{1_548_288, 1_548_288, 2_027_520, 2_433_024, 2_654_208}[l%5]
		switch {
		case l == 0:
			n = 5_013_504
		case l%12 == 1:
			n = 3_059_712
		}
		s.Bytes, s.Slots = append(s.Bytes, n), append(s.Slots, n+3*4096)
	}
	return s
}

// TestPoolsUseTheBudget: slots never take more than the budget, hold nearly all
// the logical bytes that it names, and every layer has as many as the next.
func TestPoolsUseTheBudget(t *testing.T) {
	for _, c := range []struct {
		name  string
		shape Shape
		holds float64
	}{{"one size", same(128, 8, 3*mib, 0, 3*mib, 3*mib), 0.95}, {"Q4_K_M", q4km(), 0.95}, {"dynamic", dynamic(), 0.90}} {
		shape := c.shape
		for budget := shape.LayerWorkingSet(); budget < shape.Total(); budget += budget / 7 {
			p := shape.Pools(budget)
			var taken, holds int64
			layers := make([]int, len(p.Slots))
			for l, of := range p.Of {
				if (of < 0) != (shape.Slots[l] == 0) {
					t.Fatalf("%s: layer %d is of pool %d", c.name, l, of)
				}
				if of < 0 {
					continue
				}
				layers[of]++
				if p.Bytes[of] < shape.Slots[l] {
					t.Fatalf("%s, %d MiB: slots of %d bytes for layer %d", c.name, budget/mib, p.Bytes[of], l)
				}
			}
			logical := map[int]int64{} // of the smallest expert of a pool
			for l, of := range p.Of {
				if of >= 0 && (logical[of] == 0 || shape.Bytes[l] < logical[of]) {
					logical[of] = shape.Bytes[l]
				}
			}
			least, most := 1e9, 0.0
			for i, n := range p.Slots {
				taken += int64(n) * p.Bytes[i]
				holds += int64(n) * logical[i]
				if n > p.Cap[i] || (n == 0) != (layers[i] == 0) || n > 0 && n < shape.Used {
					t.Errorf("%s, %d MiB: %d slots for %d layers, at most %d", c.name, budget/mib, n, layers[i], p.Cap[i])
				}
				if n > shape.Used && n < layers[i]*shape.Experts {
					least, most = min(least, float64(n)/float64(layers[i])), max(most, float64(n)/float64(layers[i]))
				}
			}
			if taken > budget {
				t.Errorf("%s: a budget of %d takes %d", c.name, budget, taken)
			}
			if budget >= shape.TokenCycle() {
				if part := float64(holds) / float64(budget); part < c.holds {
					t.Errorf("%s, %d MiB: holds %.3f of it, want %.2f", c.name, budget/mib, part, c.holds)
				}
				if most > least+1 {
					t.Errorf("%s, %d MiB: from %.2f to %.2f slots a layer", c.name, budget/mib, least, most)
				}
			}
		}
	}
}

func TestPoolsAtTheEdges(t *testing.T) {
	shape := q4km()
	if p := shape.Pools(shape.TokenCycle()); p.Slots[0] != 8*countOf(p.Of, 0) || p.Slots[1] != 8*countOf(p.Of, 1) {
		t.Errorf("one token cycle gives %v slots, want eight a layer", p.Slots)
	}
	if p := shape.Pools(shape.Total()); p.Slots[0]+p.Slots[1] != 48*128 {
		t.Errorf("room for all gives %v slots", p.Slots)
	}
	if p := shape.Pools(shape.LayerWorkingSet()); p.Slots[0] != 0 || p.Slots[1] != 8 {
		t.Errorf("one layer's working set gives %v slots, want eight of the larger size", p.Slots)
	}
	if p := shape.Pools(3 * mib); p.Slots[1] != 1 {
		t.Errorf("room for one expert gives %v slots", p.Slots)
	}
}

func countOf(of []int, pool int) (n int) {
	for _, p := range of {
		if p == pool {
			n++
		}
	}
	return n
}

func TestLevelJoinsWhatDiffersByBlocks(t *testing.T) {
	s := Shape{Bytes: []int64{999_000, 0, 999_001, 1_999_000, 985_000, 400, 500, 400}, Slots: []int64{1_000_000, 0, 1_004_096, 2_000_000, 990_000, 512, 1536, 1024}}
	s.Level()
	if want := []int64{1_004_096, 0, 1_004_096, 2_000_000, 1_004_096, 1024, 1536, 1024}; !slices.Equal(s.Slots, want) {
		t.Errorf("got %v, want %v", s.Slots, want)
	}
}
