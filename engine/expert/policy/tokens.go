package policy

import "slices"

// tableTokens bounds the token ids that a table remembers.
const tableTokens = 2048

// tokenDecay is what a use counts for when the token has come once more.
const tokenDecay = 0.8

// TokenTable remembers, for the token ids that came last, which experts the layers
// gave them. A token's id is known before its first layer is computed.
type TokenTable struct {
	shape  Shape
	layers int
	place  []int   // by layer: its number among those with experts
	width  int     // experts remembered of a token in a layer
	at     []int32 // by token id: its entry, -1 if there is none
	ids    []int32 // by entry: its token id
	next   int     // the entry that is taken next, the oldest

	experts []int16   // [entry][layers][width]; -1: none
	counts  []float32 // likewise
}

// NewTokenTable returns an empty table for a vocabulary. Its memory is taken as
// token ids come.
func NewTokenTable(s Shape, vocab int) *TokenTable {
	t := &TokenTable{shape: s, width: 2 * s.Used, at: make([]int32, vocab)}
	for _, b := range s.Bytes {
		t.place = append(t.place, t.layers)
		if b > 0 {
			t.layers++
		}
	}
	n := min(vocab, tableTokens)
	t.ids = make([]int32, n)
	t.experts, t.counts = make([]int16, n*t.layers*t.width), make([]float32, n*t.layers*t.width)
	t.Reset()
	return t
}

// Reset forgets everything.
func (t *TokenTable) Reset() {
	for i := range t.at {
		t.at[i] = -1
	}
	for i := range t.ids {
		t.ids[i] = -1
	}
	t.next = 0
}

// row returns where an entry's layer begins.
func (t *TokenTable) row(entry int32, layer int) int {
	return (int(entry)*t.layers + t.place[layer]) * t.width
}

// Learn notes what a layer gave a token.
func (t *TokenTable) Learn(id int32, layer int, experts []int32) {
	entry := t.at[id]
	if entry < 0 {
		entry = int32(t.next)
		t.next = (t.next + 1) % len(t.ids)
		if old := t.ids[entry]; old >= 0 {
			t.at[old] = -1
		}
		t.ids[entry], t.at[id] = id, entry
		from := t.row(entry, 0) - t.place[0]*t.width
		for i := from; i < from+t.layers*t.width; i++ {
			t.experts[i], t.counts[i] = -1, 0
		}
	}
	from := t.row(entry, layer)
	known, counts := t.experts[from:][:t.width], t.counts[from:][:t.width]
	for i := range counts {
		counts[i] *= tokenDecay
	}
	for _, e := range experts {
		i := slices.Index(known, int16(e))
		if i < 0 {
			i = 0
			for j, c := range counts {
				if c < counts[i] {
					i = j
				}
			}
			known[i], counts[i] = int16(e), 0
		}
		counts[i]++
	}
}

// Guess writes the used experts that a layer most likely gives a token to dst, the
// likeliest first, and returns how many it knows.
func (t *TokenTable) Guess(id int32, layer int, dst []int32) int {
	entry := t.at[id]
	if entry < 0 {
		return 0
	}
	from := t.row(entry, layer)
	known, counts := t.experts[from:][:t.width], t.counts[from:][:t.width]
	n := 0
	for n < min(len(dst), t.width) {
		best := -1
		for i, e := range known {
			if e < 0 || slices.Contains(dst[:n], int32(e)) {
				continue
			}
			if best < 0 || counts[i] > counts[best] {
				best = i
			}
		}
		if best < 0 {
			break
		}
		dst[n] = int32(known[best])
		n++
	}
	return n
}
