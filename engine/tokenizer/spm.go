package tokenizer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync"
	"unicode/utf8"
)

const (
	keyScores      = "tokenizer.ggml.scores"
	keySpacePrefix = "tokenizer.ggml.add_space_prefix"
)

// spm is SentencePiece's byte pair encoding, the "llama" model: a text begins as
// its characters, spaces written U+2581, and the neighbours that make the token of
// the highest score become one symbol until none make a token. Equal scores go from
// left to right. A character that is no token falls apart into tokens of its bytes.
//
// The text is not split before: a merge may go over what other models call words.
type spm struct {
	v       *vocab
	ranks   []int32 // of each token by its score, the best first; noMerge for one that text never becomes
	bytes   [256]int32
	prefix  bool // a space is put in front
	scratch sync.Pool
}

func newSPM(v *vocab, meta Metadata) (model, bool, error) {
	scores, err := meta.Floats(keyScores)
	if err != nil {
		return nil, false, err
	}
	n := len(v.texts)
	if len(scores) < n {
		return nil, false, fmt.Errorf("%s has %d elements, but %s has %d", keyScores, len(scores), keyTokens, n)
	}
	m := &spm{v: v, ranks: make([]int32, n), prefix: true}
	m.scratch.New = func() any { return new(spmScratch) }
	if meta.Has(keySpacePrefix) {
		if m.prefix, err = meta.Bool(keySpacePrefix); err != nil {
			return nil, false, err
		}
	}
	order := make([]int32, n)
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	rank := int32(0)
	for i, id := range order {
		if i > 0 && scores[id] != scores[order[i-1]] {
			rank++
		}
		m.ranks[id] = rank
		// What a person writes never becomes a control token.
		if v.kinds[id].special() || math.IsNaN(scores[id]) {
			m.ranks[id] = noMerge
		}
	}
	for b := range m.bytes {
		if m.bytes[b] = v.byteToken(byte(b)); m.bytes[b] == None {
			m.bytes[b] = v.table.find(v.texts, string([]byte{byte(b)}))
		}
	}
	return m, true, nil
}

func (m *spm) appendRaw(dst []byte, text string) []byte { return appendEscaped(dst, text) }

func (m *spm) memory() int64 { return int64(len(m.ranks)) * 4 }

// part is a symbol: a range of the text, and its neighbours, -1 at the ends.
type part struct {
	start, end int32
	prev, next int32
}

type spmScratch struct {
	parts []part
	heap  heap
}

func (m *spm) encode(dst []int32, text string) []int32 {
	if text == "" {
		return dst
	}
	if m.prefix {
		text = " " + text
	}
	text = escape(text)
	s := m.scratch.Get().(*spmScratch)
	parts := s.parts[:0]
	for i := 0; i < len(text); {
		_, n := utf8.DecodeRuneInString(text[i:])
		k := int32(len(parts))
		parts = append(parts, part{start: int32(i), end: int32(i + n), prev: k - 1, next: k + 1})
		i += n
	}
	parts[len(parts)-1].next = -1
	h := s.heap[:0]
	propose := func(left int32) (c candidate, ok bool) {
		if left < 0 || parts[left].next < 0 {
			return c, false
		}
		end := parts[parts[left].next].end
		id := m.v.table.find(m.v.texts, text[parts[left].start:end])
		if id == None || m.ranks[id] == noMerge {
			return c, false
		}
		return candidate{order: uint64(m.ranks[id])<<32 | uint64(left), right: end}, true
	}
	for i := range len(parts) - 1 {
		if c, ok := propose(int32(i)); ok {
			h = append(h, c)
		}
	}
	h.order()
	for len(h) > 0 {
		c := h[0]
		h = h.pop()
		at := int32(uint32(c.order))
		// A candidate is stale when one of its halves was merged with another part.
		next := parts[at].next
		if parts[at].end < 0 || next < 0 || parts[next].end != c.right {
			continue
		}
		parts[at].end, parts[next].end = c.right, -1
		if parts[at].next = parts[next].next; parts[at].next >= 0 {
			parts[parts[at].next].prev = at
		}
		for _, left := range [2]int32{parts[at].prev, at} {
			if c, ok := propose(left); ok {
				h = h.push(c)
			}
		}
	}
	for i := int32(0); i >= 0; i = parts[i].next {
		dst = m.emit(dst, text[parts[i].start:parts[i].end])
	}
	const keep = 1 << 14
	if s.parts, s.heap = parts, h; cap(parts) > keep || cap(h) > keep {
		s.parts, s.heap = nil, nil
	}
	m.scratch.Put(s)
	return dst
}

// emit appends the id of a part, or those of its bytes.
func (m *spm) emit(dst []int32, text string) []int32 {
	if id := m.v.table.find(m.v.texts, text); id != None && m.ranks[id] != noMerge {
		return append(dst, id)
	}
	for i := range len(text) {
		if id := m.bytes[text[i]]; id != None {
			dst = append(dst, id)
		} else if m.v.unknown != None {
			dst = append(dst, m.v.unknown)
		}
	}
	return dst
}
