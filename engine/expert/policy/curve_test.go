package policy

import (
	"math/rand/v2"
	"testing"
)

// What a curve says of a budget is what a cache of that budget does.
func TestCurveIsWhatACacheDoes(t *testing.T) {
	for name, shape := range map[string]Shape{
		"one size":    same(16, 3, 10, 10, 10, 10),
		"three sizes": {Experts: 16, Used: 3, Bytes: []int64{10, 0, 14, 9, 30}, Slots: []int64{12, 0, 15, 12, 33}},
	} {
		rng := rand.New(rand.NewPCG(3, 4))
		var budgets []int64
		for b := shape.LayerWorkingSet(); b <= shape.Total(); b += shape.Total() / 23 {
			budgets = append(budgets, b)
		}
		budgets = append(budgets, shape.Total())
		curve := NewCurve(shape)
		curve.Ask(budgets)
		caches := make([]*Directory, len(budgets))
		for i, b := range budgets {
			p, err := New("lru", shape)
			if err != nil {
				t.Fatal(err)
			}
			caches[i] = NewDirectory(shape, b-shape.Reserve(b), p)
		}
		counted := make([]Counters, len(budgets)) // before what is not counted
		var plan Plan
		ids := make([]int32, 3)
		for token := range 2000 {
			if token == 1200 {
				curve.Forget()
				for i, d := range caches {
					counted[i] = d.Counters()
				}
			}
			for layer, n := range shape.Slots {
				if n == 0 {
					continue
				}
				hot := rng.IntN(8)
				for i := range ids {
					ids[i] = int32((hot + rng.IntN(5)*i) % 16)
				}
				curve.Visit(layer, ids, true)
				for _, d := range caches {
					d.Visit(layer, 1, ids, &plan)
				}
			}
		}
		points, known := make([]Point, len(budgets)), 0
		if n := curve.Read(points); n != len(budgets) {
			t.Fatalf("%s: %d points, want %d", name, n, len(budgets))
		}
		for i, p := range points {
			if !p.Known {
				continue
			}
			known++
			c := caches[i].Counters()
			lookups, hits, read := c.Lookups-counted[i].Lookups, c.Hits-counted[i].Hits, c.ReadBytes-counted[i].ReadBytes
			if p.Budget != budgets[i] || p.Lookups != lookups || p.Hits != hits || p.ReadBytes != read {
				t.Errorf("%s, budget %d: %d of %d hits and %d bytes, want %d of %d and %d", name, p.Budget, p.Hits, p.Lookups, p.ReadBytes, hits, lookups, read)
			}
		}
		if known < len(budgets)/2 || points[len(points)-1].Hits == points[len(points)/2].Hits {
			t.Errorf("%s: %d of %d budgets are known: %+v", name, known, len(budgets), points)
		}
	}
}

func TestCurveAfterAnEmptiedCache(t *testing.T) {
	shape := same(8, 2, 10)
	c := NewCurve(shape)
	c.Ask([]int64{shape.Total()})
	var got [1]Point
	c.Visit(0, []int32{1, 2}, true)
	c.Empty()
	c.Visit(0, []int32{1, 2}, false) // a prompt is not counted, but it leaves its experts behind
	c.Visit(0, []int32{2, 3}, true)
	if c.Read(got[:]); got[0].Hits != 1 || got[0].Lookups != 2 || got[0].ReadBytes != 10 {
		t.Errorf("%+v", got[0])
	}
}

func TestCurveAllocatesNothing(t *testing.T) {
	shape := same(64, 4, 10, 10)
	c := NewCurve(shape)
	c.Ask([]int64{shape.TokenCycle(), shape.Total()})
	var points [2]Point
	rng := rand.New(rand.NewPCG(5, 6))
	ids := make([]int32, 4)
	if n := testing.AllocsPerRun(2000, func() {
		for i := range ids {
			ids[i] = int32(rng.IntN(64))
		}
		c.Visit(0, ids, true)
		c.Read(points[:])
	}); n != 0 {
		t.Errorf("%v allocations a visit", n)
	}
}

func BenchmarkCurve(b *testing.B) {
	bytes := make([]int64, 48)
	for i := range bytes {
		bytes[i] = 3 << 20
	}
	shape := same(128, 8, bytes...)
	c := NewCurve(shape)
	rng := rand.New(rand.NewPCG(7, 8))
	ids := make([]int32, 48*8)
	for i := range ids {
		ids[i] = int32(rng.IntN(128))
	}
	for b.Loop() {
		for l := range 48 {
			c.Visit(l, ids[l*8:l*8+8], true)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/48/8, "ns/lookup")
}
