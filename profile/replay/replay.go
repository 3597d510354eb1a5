package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"bmoe/engine/expert/policy"
	"bmoe/profile/trace"
)

// Change is a budget that comes into force with a decoded token.
type Change struct {
	Token  int // of all decoded tokens, from 0
	Budget int64
}

// Case is a policy at a budget.
type Case struct {
	Policy string
	Budget int64    // bytes
	Then   []Change // by token, ascending
}

// Outcome is what a case came to.
type Outcome struct {
	Case
	All, Decode Counters // prompts and answers; answers alone
}

// Offline are the policies that only a replay has.
var Offline = []string{"belady", "lfu", "random", "layer", "layerlfu"}

// Names returns all policies that can be replayed.
func Names() []string { return append(slices.Clone(Offline), policy.Names()...) }

// Check refuses a name that is no policy.
func Check(name string) error {
	if !slices.Contains(Names(), name) {
		return fmt.Errorf("unknown policy %q; known: %s", name, strings.Join(Names(), ", "))
	}
	return nil
}

// simulated is a cache of any kind.
type simulated interface {
	visit(b *Batch)
	resize(budget int64)
	empty()
	counted() Counters
}

// mostLookups bounds what Belady's optimum is computed for: it needs to know the
// future, four bytes a lookup.
const mostLookups = 1 << 25

// Run replays a trace under every case, in one pass; Belady's optimum takes one
// before it. open opens the trace from its beginning, as often as it is called.
//
// A trace that tells what its experts take in a cache is replayed under the engine's
// policies by the engine's own book-keeping, so that the counters are the engine's.
// Else, and for policies that the engine does not have, bytes count whatever their
// sizes, and room is made after a batch, as the engine that recorded it did.
func Run(open func() (io.ReadCloser, error), cases []Case) (*trace.RouteHead, []Outcome, error) {
	var next []int32
	for _, c := range cases {
		if err := Check(c.Policy); err != nil {
			return nil, nil, err
		}
		if c.Policy == "belady" && next == nil {
			var err error
			if next, err = nextUses(open); err != nil {
				return nil, nil, err
			}
		}
	}
	in, err := open()
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	rows, err := trace.NewRouteRows(in)
	if err != nil {
		return nil, nil, err
	}
	outcomes := make([]Outcome, len(cases))
	caches := make([]simulated, len(cases))
	for i, c := range cases {
		outcomes[i].Case = c
		if caches[i], err = simulate(&rows.RouteHead, c, next); err != nil {
			return nil, nil, err
		}
	}
	token := -1
	err = Batches(rows, func(b *Batch) error {
		if b.Decode && b.Token != token {
			token = b.Token
			for i := range outcomes {
				for c := &outcomes[i].Case; len(c.Then) > 0 && c.Then[0].Token <= token; c.Then = c.Then[1:] {
					caches[i].resize(c.Then[0].Budget)
				}
			}
		}
		for i, c := range caches {
			if b.Emptied {
				c.empty()
			}
			before := c.counted()
			c.visit(b)
			if b.Decode {
				outcomes[i].Decode = outcomes[i].Decode.add(c.counted().sub(before))
			}
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for i, c := range caches {
		outcomes[i].All = c.counted()
		outcomes[i].Then = cases[i].Then
	}
	return &rows.RouteHead, outcomes, nil
}

// simulate makes the cache of a case.
func simulate(head *trace.RouteHead, c Case, next []int32) (simulated, error) {
	shape := Shape(head)
	if !slices.Contains(Offline, c.Policy) {
		p, err := policy.New(c.Policy, shape)
		if err != nil {
			return nil, err
		}
		if slices.Contains(head.SlotBytes, 0) {
			return newPolicyCache(shape, c.Budget, p), nil
		}
		if c.Budget < shape.LayerWorkingSet() {
			return nil, fmt.Errorf("a budget of %d MiB is below one layer's working set of %d", c.Budget>>20, shape.LayerWorkingSet()>>20)
		}
		return &engineCache{dir: policy.NewDirectory(shape, c.Budget-shape.Reserve(c.Budget), p), shape: shape}, nil
	}
	sizes := make([]int64, shape.Keys())
	for k := range sizes {
		sizes[k] = shape.Bytes[k/shape.Experts]
	}
	orders := map[string]func() order{
		"belady":   func() order { return &future{next: next} },
		"lfu":      func() order { return &frequency{} },
		"random":   func() order { return &chance{rand.New(rand.NewPCG(1, 1))} },
		"layer":    func() order { return &recency{} },
		"layerlfu": func() order { return &frequency{} },
	}
	return newCache(sizes, shape.Experts, c.Budget, strings.HasPrefix(c.Policy, "layer"), orders[c.Policy]), nil
}

// Shape returns what policies need to know of a trace's model. Where the trace does
// not tell what experts take in a cache, they take their size.
func Shape(head *trace.RouteHead) policy.Shape {
	s := policy.Shape{Experts: head.Experts, Used: head.Used, Bytes: head.ExpertBytes, Slots: slices.Clone(head.SlotBytes)}
	for i, n := range s.Slots {
		if n == 0 {
			s.Slots[i] = s.Bytes[i]
		}
	}
	return s
}

// nextUses reads a trace and returns, for every lookup in its order, the number of
// the batch that asks for the same expert next; the largest number if none does.
func nextUses(open func() (io.ReadCloser, error)) ([]int32, error) {
	in, err := open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	rows, err := trace.NewRouteRows(in)
	if err != nil {
		return nil, err
	}
	latest := make([]int32, len(rows.Layers)*rows.Experts) // by key: its last lookup, from 1
	var next []int32
	batch := int32(0)
	err = Batches(rows, func(b *Batch) error {
		for _, k := range b.Distinct() {
			if len(next) == mostLookups {
				return errors.New("belady: the trace is too long to look ahead in; leave that policy out")
			}
			if at := latest[k]; at > 0 {
				next[at-1] = batch
			}
			next = append(next, math.MaxInt32)
			latest[k] = int32(len(next))
		}
		batch++
		return nil
	})
	return next, err
}

// engineCache is the engine's own book-keeping.
type engineCache struct {
	dir   *policy.Directory
	past  Counters // before the cache was last emptied
	shape policy.Shape
	plan  policy.Plan
	ids   []int32
}

func (c *engineCache) visit(b *Batch) {
	c.ids = c.ids[:0]
	for _, k := range b.Touches {
		c.ids = append(c.ids, k-int32(b.Place*c.shape.Experts))
	}
	c.dir.Visit(b.Place, b.Tokens, c.ids, &c.plan)
}

func (c *engineCache) resize(budget int64) { c.dir.Resize(budget - c.shape.Reserve(budget)) }

func (c *engineCache) empty() {
	c.past = c.counted()
	c.dir.Empty()
}

func (c *engineCache) counted() Counters {
	n := c.dir.Counters()
	return c.past.add(Counters{n.Lookups, n.Hits, n.Evictions, n.Rereads, n.ReadBytes})
}

// policyCache is one of the engine's policies under the rule of the recording
// engine.
type policyCache struct {
	shape    policy.Shape
	p        policy.Policy
	budget   int64
	used     int64
	resident []bool
	was      []bool
	batch    []int
	n        int
	touches  []policy.Key
	counters Counters
}

func newPolicyCache(s policy.Shape, budget int64, p policy.Policy) *policyCache {
	p.Reset()
	tellBudget(p, budget)
	return &policyCache{shape: s, p: p, budget: budget, resident: make([]bool, s.Keys()), was: make([]bool, s.Keys()), batch: make([]int, s.Keys())}
}

func (c *policyCache) visit(b *Batch) {
	c.n++
	c.touches = c.touches[:0]
	for _, k := range b.Touches {
		c.touches = append(c.touches, policy.Key(k))
	}
	c.p.Visit(b.Place, b.Tokens, c.touches)
	for _, k := range b.Distinct() {
		c.batch[k] = c.n
		c.counters.Lookups++
		if c.resident[k] {
			c.counters.Hits++
			continue
		}
		c.counters.ReadBytes += c.shape.Bytes[b.Place]
		if c.was[k] {
			c.counters.Rereads++
		}
		c.was[k], c.resident[k] = true, true
		c.used += c.shape.Bytes[b.Place]
		c.p.Add(policy.Key(k))
	}
	c.shrink(func(k policy.Key) bool { return c.batch[k] == c.n })
}

func everywhere(int) bool { return true }

func (c *policyCache) shrink(pinned func(policy.Key) bool) {
	for c.used > c.budget {
		k, ok := c.p.Victim(everywhere, pinned)
		if !ok {
			return
		}
		c.p.Remove(k)
		c.resident[k] = false
		c.used -= c.shape.Bytes[c.shape.Layer(k)]
		c.counters.Evictions++
	}
}

// tellBudget tells a policy that wants to know of the budget.
func tellBudget(p policy.Policy, budget int64) {
	if b, ok := p.(policy.Budgeted); ok {
		b.SetBudget(budget)
	}
}

func (c *policyCache) resize(budget int64) {
	c.budget = budget
	tellBudget(c.p, budget)
	c.shrink(func(policy.Key) bool { return false })
}

func (c *policyCache) empty() {
	c.p.Reset()
	c.used = 0
	clear(c.resident)
	clear(c.was)
}

func (c *policyCache) counted() Counters { return c.counters }

// Recorded adds up what the recording engine found, from the trace's own column of
// hits and misses; ok is false where the trace has none. recorded is the policy in
// force, lru where the trace does not say.
func Recorded(open func() (io.ReadCloser, error)) (hitPct float64, recorded string, ok bool, err error) {
	in, err := open()
	if err != nil {
		return 0, "", false, err
	}
	defer in.Close()
	rows, err := trace.NewRouteRows(in)
	if err != nil {
		return 0, "", false, err
	}
	var lookups, misses int
	ok = true
	err = Batches(rows, func(b *Batch) error {
		lookups += len(b.Distinct())
		misses += b.Misses
		ok = ok && b.Misses >= 0
		return nil
	})
	if lookups == 0 || !ok {
		return 0, "", false, err
	}
	return 100 * float64(lookups-misses) / float64(lookups), cmp.Or(rows.Run["cache_policy"], "lru"), ok, err
}
