package tokenizer

import (
	"hash/maphash"
	"math"
)

// noMerge is the rank of two symbols that do not merge.
const noMerge = math.MaxInt32

// mergeTable finds a merge's rank by its halves: open addressing, a power of two
// of slots. A Go map would take three times the memory and time.
type mergeTable struct {
	slots []mergeSlot
	shift uint // hash bits that are not used
}

type mergeSlot struct {
	key  uint64 // left<<32 | right, plus 1, so that 0 is free
	rank int32
}

func newMergeTable(n int) mergeTable {
	bits := uint(4)
	for 1<<bits < n*2 {
		bits++
	}
	return mergeTable{slots: make([]mergeSlot, 1<<bits), shift: 64 - bits}
}

func mergeKey(left, right int32) uint64 { return uint64(left)<<32 | uint64(uint32(right)) + 1 }

// slot is where the search for a key begins: the golden ratio spreads keys that
// lie close together (Knuth, volume 3, section 6.4).
func (t *mergeTable) slot(key uint64) uint64 { return key * 0x9E3779B97F4A7C15 >> t.shift }

// add enters a merge. The first of two equal ones counts.
func (t *mergeTable) add(left, right, rank int32) {
	key, mask := mergeKey(left, right), uint64(len(t.slots)-1)
	for i := t.slot(key); ; i = (i + 1) & mask {
		switch t.slots[i].key {
		case 0:
			t.slots[i] = mergeSlot{key, rank}
			return
		case key:
			return
		}
	}
}

// find returns the rank of a merge, or noMerge.
func (t *mergeTable) find(left, right int32) int32 {
	key, mask := mergeKey(left, right), uint64(len(t.slots)-1)
	for i := t.slot(key); ; i = (i + 1) & mask {
		switch s := &t.slots[i]; s.key {
		case key:
			return s.rank
		case 0:
			return noMerge
		}
	}
}

// The cache of a scratch holds the ids of short pieces. Text repeats its words, so
// even a small one saves nearly all merging.
const (
	cacheSize      = 4096
	maxCachedBytes = 22
	maxCachedIDs   = 6
)

type cached struct {
	ids       [maxCachedIDs]int32
	key       [maxCachedBytes]byte
	keyLen, n uint8
}

// scratch is what one Encode needs at a time.
type scratch struct {
	seed    maphash.Seed
	cache   []cached
	symbols []int32 // what a long piece begins as
	nodes   []node
	heap    heap
	text    []byte // a piece in GPT-2's alphabet
}

func newScratch(seed maphash.Seed) *scratch {
	return &scratch{seed: seed, cache: make([]cached, cacheSize)}
}

// grow makes room for a piece of n bytes.
func (s *scratch) grow(n int) {
	if cap(s.nodes) < n {
		s.symbols = make([]int32, n)
		s.nodes = make([]node, n)
		s.heap = make(heap, 0, n)
	}
	s.nodes, s.symbols = s.nodes[:cap(s.nodes)], s.symbols[:cap(s.symbols)]
}

// trim lets go of what a very long piece needed.
func (s *scratch) trim() {
	const keep = 1 << 14
	if cap(s.nodes) > keep || cap(s.heap) > keep {
		s.nodes, s.symbols, s.heap = nil, nil, nil
	}
}

// node is a symbol of a long piece in its list; prev and next are -1 at the ends.
type node struct{ symbol, prev, next int32 }

// gone marks a node that was merged into the one before it.
const gone = math.MinInt32

// candidate is a merge of two neighbours that was possible when it was proposed.
type candidate struct {
	order       uint64 // rank<<32 | index of the left node: the lowest goes first
	left, right int32  // the symbols at that time
}

// heap is a binary min-heap by order. (container/heap would box every candidate.)
type heap []candidate

// push adds a candidate.
func (h heap) push(c candidate) heap {
	h = append(h, c)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h[up].order <= c.order {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = c
	return h
}

// pop drops the first candidate.
func (h heap) pop() heap {
	h[0] = h[len(h)-1]
	h = h[:len(h)-1]
	h.down(0)
	return h
}

// order makes a heap of candidates in any order.
func (h heap) order() {
	for i := len(h)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// down moves the candidate at i to where it belongs below.
func (h heap) down(i int) {
	if i >= len(h) {
		return
	}
	c := h[i]
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].order < h[down].order {
			down++
		}
		if c.order <= h[down].order {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = c
}
