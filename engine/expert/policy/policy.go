// Package policy decides which routed experts stay in memory. It is pure: no
// I/O, no time, no goroutines. The cache, the replay of recorded routes and
// the what-if curves all run this same code, so their figures agree exactly.
package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Key names one routed expert: layer*experts + expert.
type Key int32

// Policy ranks the resident experts. It does no accounting: a Directory tells
// it what happens and asks it whom to give up.
type Policy interface {
	// Name returns the policy's name on the command line.
	Name() string
	// Visit tells of a layer's batch before anything is evicted for it: every
	// touch, [tokens x k] token-major, duplicates included, resident or not.
	Visit(layer, tokens int, touches []Key)
	// Add tells that k is resident from now on.
	Add(k Key)
	// Remove tells that k no longer is.
	Remove(k Key)
	// Victim returns the resident expert to give up next of the layers that of
	// holds, passing over those that are pinned; ok is false when all of them are.
	Victim(of func(layer int) bool, pinned func(Key) bool) (k Key, ok bool)
	// Reset forgets everything, as for an empty cache.
	Reset()
}

// Budgeted is a policy that wants to know of the budget. It is told before the first
// visit and after every change.
type Budgeted interface{ SetBudget(slotBytes int64) }

// Shape is what a policy and a directory need to know of a model.
type Shape struct {
	Experts int     // routed experts of a layer
	Used    int     // of them, routed to by a token
	Bytes   []int64 // logical bytes of one expert, by layer; 0 where a layer has none
	Slots   []int64 // bytes that it takes in the cache, by layer: what budgets count
}

// Layer returns the layer of a key.
func (s Shape) Layer(k Key) int { return int(k) / s.Experts }

// Key returns the key of a layer's expert.
func (s Shape) Key(layer int, expert int32) Key { return Key(layer*s.Experts) + Key(expert) }

// Keys returns how many keys there are.
func (s Shape) Keys() int { return len(s.Bytes) * s.Experts }

// TokenCycle returns the slot bytes of the experts that one token is routed to.
// Below it, least-recently-used scores nothing: the layer order is a cycle, so
// the least recently used expert is the soonest needed.
func (s Shape) TokenCycle() int64 {
	var n int64
	for _, b := range s.Slots {
		n += b * int64(s.Used)
	}
	return n
}

// LayerWorkingSet returns the slot bytes of the experts that one token needs at
// once in the largest layer: the least budget that can work.
func (s Shape) LayerWorkingSet() int64 {
	var n int64
	for _, b := range s.Slots {
		n = max(n, b*int64(s.Used))
	}
	return n
}

// Total returns the slot bytes of all routed experts.
func (s Shape) Total() int64 {
	var n int64
	for _, b := range s.Slots {
		n += b * int64(s.Experts)
	}
	return n
}

// makers holds every policy by name.
var makers = map[string]func(Shape) Policy{
	"auto":      newAuto,
	"harmonic":  newHarmonic,
	"lookalike": newLookalike,
	"lru":       newLRU,
}

// Names returns the names of all policies, sorted.
func Names() []string {
	names := make([]string, 0, len(makers))
	for n := range makers {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// New returns the named policy for a model's shape. An unknown name is an
// error that lists the known ones.
func New(name string, s Shape) (Policy, error) {
	mk, ok := makers[name]
	if !ok {
		return nil, fmt.Errorf("unknown cache policy %q; known: %s", name, strings.Join(Names(), ", "))
	}
	return mk(s), nil
}
