package tokenizer

import (
	"cmp"
	"slices"
)

// trie finds special tokens in a text: a tree of bytes, so that a vocabulary
// with a thousand reserved tokens costs no more than one with three.
type trie struct {
	vocab *vocab
	first [256]bool
	next  map[uint64]int32 // node<<8|byte -> node; node 0 is the root
	ids   []int32          // the token that ends at a node, or None
}

// newTrie enters every token that can be cut out of a text.
func newTrie(v *vocab) trie {
	t := trie{vocab: v, next: map[uint64]int32{}, ids: []int32{None}}
	for id, k := range v.kinds {
		text := v.texts[id]
		if !k.parsed() || text == "" {
			continue
		}
		t.first[text[0]] = true
		node := int32(0)
		for i := range len(text) {
			key := uint64(node)<<8 | uint64(text[i])
			child, ok := t.next[key]
			if !ok {
				child = int32(len(t.ids))
				t.ids = append(t.ids, None)
				t.next[key] = child
			}
			node = child
		}
		t.ids[node] = int32(id)
	}
	return t
}

// match is a special token in a text.
type match struct {
	start, end int
	id         int32
}

// every returns the special tokens of a text by their beginning, overlapping ones
// included. Control and unknown tokens count only if all is set.
func (t *trie) every(text string, all bool) []match {
	var found []match
	for i := 0; i < len(text); i++ {
		if !t.first[text[i]] {
			continue
		}
		node := int32(0)
		for j := i; j < len(text); j++ {
			child, ok := t.next[uint64(node)<<8|uint64(text[j])]
			if !ok {
				break
			}
			node = child
			if id := t.ids[node]; id != None && (all || !t.vocab.kinds[id].special()) {
				found = append(found, match{i, j + 1, id})
			}
		}
	}
	return found
}

// find returns the special tokens of a text, in order and without overlap.
// Control and unknown tokens count only if all is set, and not over one of the
// places in plain, which ascend.
//
// As in llama.cpp, the longest token wins wherever it lies, even if a shorter one
// that overlaps it begins earlier.
func (t *trie) find(text string, all bool, plain []int) []match {
	found := t.every(text, all)
	if len(plain) > 0 {
		found = slices.DeleteFunc(found, func(m match) bool {
			i, _ := slices.BinarySearch(plain, m.start)
			return i < len(plain) && plain[i] < m.end && t.vocab.kinds[m.id].special()
		})
	}
	if len(found) < 2 {
		return found
	}
	slices.SortFunc(found, func(a, b match) int {
		return cmp.Or((b.end-b.start)-(a.end-a.start), cmp.Compare(a.id, b.id), a.start-b.start)
	})
	taken := make([]bool, len(text))
	kept := found[:0]
	for _, m := range found {
		// No match that is longer than this one was taken inside it, so a look at
		// its two ends is enough.
		if taken[m.start] || taken[m.end-1] {
			continue
		}
		for i := m.start; i < m.end; i++ {
			taken[i] = true
		}
		kept = append(kept, m)
	}
	slices.SortFunc(kept, func(a, b match) int { return a.start - b.start })
	return kept
}
