package policy

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// same returns a shape whose experts take as many bytes in the cache as they have.
func same(experts, used int, bytes ...int64) Shape {
	return Shape{Experts: experts, Used: used, Bytes: bytes, Slots: bytes}
}

// TestAgainstPlainLRU drives random batches and checks, against a plain model
// of least-recently-used in each pool, who is resident after each of them.
func TestAgainstPlainLRU(t *testing.T) {
	shape := Shape{Experts: 8, Used: 2, Bytes: []int64{10, 0, 14, 9}, Slots: []int64{12, 0, 15, 12}}
	rng := rand.New(rand.NewPCG(1, 2))
	p, err := New("lru", shape)
	if err != nil {
		t.Fatal(err)
	}
	const budget = 95 // of 312: two slots of 15 and five of 12
	d := NewDirectory(shape, budget, p)
	recency := map[int64][]Key{} // by slot size, least recent first
	room := map[int64]int{15: 2, 12: 5}
	var plan Plan
	var hits, evictions int64
	for range 5000 {
		layer := []int{0, 2, 3}[rng.IntN(3)]
		ids := make([]int32, 2)
		for i := range ids {
			ids[i] = int32(rng.IntN(8))
		}
		d.Visit(layer, 1, ids, &plan)

		// The plain model: touch all, then evict the oldest until the rest fits.
		pool := recency[shape.Slots[layer]]
		inBatch := map[Key]bool{}
		for _, id := range ids {
			k := shape.Key(layer, id)
			if i := slices.Index(pool, k); i >= 0 {
				if !inBatch[k] {
					hits++
				}
				pool = slices.Delete(pool, i, i+1)
			}
			inBatch[k] = true
			pool = append(pool, k)
		}
		if over := len(pool) - room[shape.Slots[layer]]; over > 0 {
			pool = pool[over:]
			evictions += int64(over)
		}
		recency[shape.Slots[layer]] = pool

		var slots int64
		for k := range Key(shape.Keys()) {
			l := shape.Layer(k)
			want := slices.Contains(recency[shape.Slots[l]], k)
			if d.isResident[k] != want {
				t.Fatalf("key %d: resident %v, want %v", k, d.isResident[k], want)
			}
			if want {
				slots += shape.Slots[l]
			}
		}
		if got, n := d.Resident(); got != slots || n != len(recency[12])+len(recency[15]) || slots > budget {
			t.Fatalf("resident %d bytes in %d, want %d; the budget is %d", got, n, slots, budget)
		}
	}
	if c := d.Counters(); c.Hits != hits || c.Evictions != evictions || c.Hits == 0 || c.Evictions == 0 {
		t.Fatalf("counted %+v, want %d hits and %d evictions", c, hits, evictions)
	}
}

func TestBatchLargerThanBudgetReadsEachOnce(t *testing.T) {
	shape := same(16, 2, 10)
	p, _ := New("lru", shape)
	d := NewDirectory(shape, 40, p)
	var plan Plan
	ids := []int32{3, 1, 4, 1, 5, 9, 2, 6}
	d.Visit(0, 1, ids[:2], &plan)
	d.Visit(0, 1, ids, &plan)
	var order []Key
	done := map[Key]bool{}
	for _, s := range plan.Steps {
		v := s.Evicted
		if inPlan := slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.Key == v }); inPlan && !done[v] {
			t.Errorf("step %d takes the place of %d before its turn", s.Key, v)
		}
		done[s.Key] = true
		order = append(order, s.Key)
	}
	if want := []Key{3, 1, 4, 5, 9, 2, 6}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if got, _ := d.Resident(); got != 40 {
		t.Errorf("resident %d bytes, want the budget of 40", got)
	}
	want := Counters{Lookups: 9, Hits: 2, Evictions: 3, ReadBytes: 70}
	if got := d.Counters(); got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
}

func TestLRUScoresNothingBelowATokenCycle(t *testing.T) {
	// The layer order is a cycle, so the least recently used is the soonest needed.
	shape := same(4, 1, 10, 10, 10, 10)
	for _, budget := range []int64{30, 40} {
		p, _ := New("lru", shape)
		d := NewDirectory(shape, budget, p)
		var plan Plan
		for range 10 {
			for layer := range 4 {
				d.Visit(layer, 1, []int32{0}, &plan)
			}
		}
		want := int64(0)
		if budget >= shape.TokenCycle() {
			want = 36
		}
		if got := d.Counters().Hits; got != want {
			t.Errorf("budget %d: %d hits, want %d", budget, got, want)
		}
	}
}

func TestResizeEvictsInOrderAndForgetsNothingElse(t *testing.T) {
	shape := same(8, 1, 10)
	p, _ := New("lru", shape)
	d := NewDirectory(shape, 50, p)
	var plan Plan
	for _, id := range []int32{0, 1, 2, 3, 4, 0} {
		d.Visit(0, 1, []int32{id}, &plan)
	}
	if got, want := d.Resize(20), []Key{1, 2, 3}; !slices.Equal(got, want) {
		t.Errorf("resize gave up %v, want %v", got, want)
	}
	d.Visit(0, 1, []int32{4}, &plan)
	if !plan.Steps[0].Hit {
		t.Error("the most recent expert did not survive the resize")
	}
	d.Resize(50)
	d.Visit(0, 1, []int32{1}, &plan)
	if c := d.Counters(); c.Rereads != 1 {
		t.Errorf("%d re-reads, want 1", c.Rereads)
	}
	d.Empty()
	if got, n := d.Resident(); got != 0 || n != 0 || d.Counters() != (Counters{}) {
		t.Errorf("not empty: %d bytes, %d experts, %+v", got, n, d.Counters())
	}
}

func TestVisitDoesNotAllocate(t *testing.T) {
	shape := same(64, 8, 10, 10, 12, 10, 12, 10, 10, 12)
	p, _ := New("lru", shape)
	d := NewDirectory(shape, 1000, p)
	var plan Plan
	rng := rand.New(rand.NewPCG(3, 4))
	ids := make([]int32, 8)
	visit := func() {
		for layer := range 8 {
			for i := range ids {
				ids[i] = int32(rng.IntN(64))
			}
			d.Visit(layer, 1, ids, &plan)
		}
	}
	for range 50 {
		visit()
	}
	if n := testing.AllocsPerRun(100, visit); n != 0 {
		t.Errorf("%v allocations a token", n)
	}
}

func TestUnknownPolicyNamesTheKnown(t *testing.T) {
	_, err := New("lur", Shape{Experts: 1, Bytes: []int64{1}})
	if want := `unknown cache policy "lur"; known: ` + strings.Join(Names(), ", "); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
