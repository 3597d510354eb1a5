package tokenizer

import (
	"fmt"
	"hash/maphash"
	"strings"
	"sync"
	"unicode/utf8"
)

// bpe merges pieces: a piece begins as its bytes, or as its characters, and the
// neighbours whose merge has the lowest rank become one symbol until no merge is
// left. Equal ranks go from left to right.
//
// A symbol is a token's id. Symbols that are no token (a merge whose result the
// vocabulary lacks) get numbers above the vocabulary.
type bpe struct {
	v     *vocab
	pre   preTokenizer
	bytes [256]int32 // the symbol of each byte
	extra []string   // bytes of the symbols above the vocabulary
	// chars, if set, has the symbols above the vocabulary by text, and pieces begin as
	// their characters. A character that no merge and no token knows begins as bytes.
	chars   map[string]int32
	merges  mergeTable
	results []int32 // symbol that each merge makes, by rank
	scratch sync.Pool
}

// byteRunes is GPT-2's alphabet, in which a token's text is written: printable
// bytes stand for themselves, the others for U+0100 and up.
var byteRunes, runeBytes = func() (runes [256]rune, bytes map[rune]byte) {
	bytes = make(map[rune]byte, 256)
	next := rune(256)
	for b := range 256 {
		r := rune(b)
		if !(b >= 0x21 && b <= 0x7E || b >= 0xA1 && b <= 0xAC || b >= 0xAE) {
			r = next
			next++
		}
		runes[b], bytes[r] = r, byte(b)
	}
	return runes, bytes
}()

// runeTable is runeBytes as an array, for loading: byte+1, or 0.
var runeTable = func() (t [0x144]uint16) {
	for r, b := range runeBytes {
		t[r] = uint16(b) + 1
	}
	return t
}()

// appendRaw translates from GPT-2's alphabet. A character outside it stands for
// itself.
func (b *bpe) appendRaw(dst []byte, text string) []byte {
	if b.chars != nil {
		return appendEscaped(dst, text)
	}
	for _, r := range text {
		if int(r) < len(runeTable) && runeTable[r] != 0 {
			dst = append(dst, byte(runeTable[r]-1))
		} else {
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

// newBPE reads merges and the pre-tokenizer of a "gpt2" model.
func newBPE(v *vocab, meta Metadata) (model, bool, error) {
	name, err := meta.StringOr(keyPre, "")
	if err != nil {
		return nil, false, err
	}
	return newMerges(v, meta, name, false)
}

// newGemma4 reads a "gemma4" model, whose merges join characters, and whose words
// begin with U+2581 in place of a space.
func newGemma4(v *vocab, meta Metadata) (model, bool, error) {
	m, _, err := newMerges(v, meta, "gemma4", true)
	return m, true, err
}

func newMerges(v *vocab, meta Metadata, name string, chars bool) (model, bool, error) {
	pre, warning := nearestPre(name)
	if warning != "" {
		v.warnings = append(v.warnings, warning)
	}
	merges, err := meta.Strings(keyMerges)
	if err != nil {
		return nil, false, err
	}
	b := &bpe{v: v, pre: pre}
	if chars {
		b.chars = map[string]int32{}
	}
	b.scratch.New = func() any { return newScratch(v.table.seed) }
	if err := b.load(merges); err != nil {
		return nil, false, err
	}
	return b, pre.addBOS, nil
}

// load enters the merges by the symbols of their halves.
func (b *bpe) load(merges []string) error {
	extra := map[string]int32{}
	if b.chars != nil {
		extra = b.chars
	}
	symbol := func(text string) int32 {
		if id := b.v.table.find(b.v.texts, text); id != None {
			return id
		}
		id, ok := extra[text]
		if !ok {
			id = int32(len(b.v.texts) + len(b.extra))
			extra[strings.Clone(text)] = id
			raw := text // of characters, the bytes of their tokens are meant
			if b.chars == nil {
				raw = string(b.appendRaw(nil, text))
			}
			b.extra = append(b.extra, raw)
		}
		return id
	}
	for i, r := range byteRunes {
		if b.chars != nil {
			b.bytes[i] = b.v.byteToken(byte(i))
		} else {
			b.bytes[i] = symbol(string(r))
		}
	}
	b.merges = newMergeTable(len(merges))
	b.results = make([]int32, len(merges))
	var joined []byte
	for rank, m := range merges {
		// A half may begin with a space, so the search begins behind the first byte.
		cut := 0
		if len(m) > 1 {
			cut = strings.IndexByte(m[1:], ' ') + 1
		}
		if cut == 0 || cut == len(m)-1 {
			return fmt.Errorf("%s: element %d: %q is not two texts with a space between them", keyMerges, rank, m)
		}
		left, right := symbol(m[:cut]), symbol(m[cut+1:])
		joined = append(append(joined[:0], m[:cut]...), m[cut+1:]...)
		id := b.v.table.findBytes(b.v.texts, joined)
		if id == None {
			id = symbol(string(joined))
		}
		b.results[rank] = id
		b.merges.add(left, right, int32(rank))
	}
	return nil
}

func (b *bpe) memory() int64 { return int64(len(b.merges.slots)*16 + len(b.results)*4) }

// encode splits a text and merges its pieces.
func (b *bpe) encode(dst []int32, text string) []int32 {
	if text == "" {
		return dst
	}
	if b.chars != nil {
		text = escape(text)
	}
	s := b.scratch.Get().(*scratch)
	dst = b.pieces(dst, text, b.pre.stages, s)
	s.trim()
	b.scratch.Put(s)
	return dst
}

// pieces appends the ids of a text that is still to go through stages.
func (b *bpe) pieces(dst []int32, text string, stages []splitter, s *scratch) []int32 {
	for i := 0; i < len(text); {
		end := stages[0](text, i)
		if len(stages) > 1 {
			dst = b.pieces(dst, text[i:end], stages[1:], s)
		} else {
			dst = b.piece(dst, text[i:end], s)
		}
		i = end
	}
	return dst
}

// piece appends the ids of one piece, out of the cache if it is there.
func (b *bpe) piece(dst []int32, piece string, s *scratch) []int32 {
	if len(piece) == 1 && b.chars == nil {
		return b.emit(dst, b.bytes[piece[0]])
	}
	if len(piece) > maxCachedBytes {
		return b.merge(dst, piece, s)
	}
	e := &s.cache[maphash.String(s.seed, piece)%cacheSize]
	if string(e.key[:e.keyLen]) == piece {
		return append(dst, e.ids[:e.n]...)
	}
	at := len(dst)
	dst = b.merge(dst, piece, s)
	if ids := dst[at:]; len(ids) <= maxCachedIDs {
		e.keyLen = uint8(copy(e.key[:], piece))
		e.n = uint8(copy(e.ids[:], ids))
	}
	return dst
}

// emit appends a symbol's id. A symbol that is no token falls apart into its
// bytes; a byte without a token becomes the unknown token, if there is one, and
// is lost otherwise, as in llama.cpp.
func (b *bpe) emit(dst []int32, symbol int32) []int32 {
	n := int32(len(b.v.texts))
	if symbol >= 0 && symbol < n {
		return append(dst, symbol)
	}
	if symbol < 0 { // a byte of a character without a symbol
		return b.emitByte(dst, byte(-symbol-2))
	}
	raw := b.extra[symbol-n]
	for i := range len(raw) {
		dst = b.emitByte(dst, raw[i])
	}
	return dst
}

func (b *bpe) emitByte(dst []int32, c byte) []int32 {
	if id := b.bytes[c]; id >= 0 && id < int32(len(b.v.texts)) {
		return append(dst, id)
	}
	if b.v.unknown != None {
		return append(dst, b.v.unknown)
	}
	return dst
}

// begin writes the symbols that a piece begins as to dst, which has room for one a
// byte, and returns their number.
func (b *bpe) begin(dst []int32, piece string) int {
	if b.chars != nil {
		return b.beginChars(dst, piece)
	}
	for i := range len(piece) {
		dst[i] = b.bytes[piece[i]]
	}
	return len(piece)
}

func (b *bpe) beginChars(dst []int32, piece string) int {
	n := 0
	for i := 0; i < len(piece); {
		_, w := utf8.DecodeRuneInString(piece[i:])
		char := piece[i : i+w]
		i += w
		symbol, ok := b.v.table.find(b.v.texts, char), true
		if symbol == None {
			symbol, ok = b.chars[char]
		}
		if ok {
			dst[n] = symbol
			n++
			continue
		}
		for k := range w { // numbers below None: they are in no merge
			dst[n] = -2 - int32(char[k])
			n++
		}
	}
	return n
}

// shortPiece is the length in bytes up to which looking through all neighbours
// for each merge beats keeping them in a heap.
const shortPiece = 48

// merge appends the ids of a piece.
func (b *bpe) merge(dst []int32, piece string, s *scratch) []int32 {
	if b.pre.whole {
		s.text = s.text[:0]
		for i := range len(piece) {
			s.text = utf8.AppendRune(s.text, byteRunes[piece[i]])
		}
		if id := b.v.table.findBytes(b.v.texts, s.text); id != None {
			return append(dst, id)
		}
	}
	if b.chars != nil && piece[0] == '\n' { // Gemma 4 has tokens of several line feeds, and no merges for them
		if id := b.v.table.find(b.v.texts, piece); id != None {
			return append(dst, id)
		}
	}
	if len(piece) > shortPiece {
		return b.mergeLong(dst, piece, s)
	}
	var symbols, ranks [shortPiece]int32
	n := b.begin(symbols[:len(piece)], piece)
	for i := range n - 1 {
		ranks[i] = b.merges.find(symbols[i], symbols[i+1])
	}
	for n > 1 {
		at := 0
		for i := 1; i < n-1; i++ {
			if ranks[i] < ranks[at] {
				at = i
			}
		}
		if ranks[at] == noMerge {
			break
		}
		symbols[at] = b.results[ranks[at]]
		copy(symbols[at+1:n-1], symbols[at+2:n])
		copy(ranks[at:n-2], ranks[at+1:n-1])
		n--
		if at > 0 {
			ranks[at-1] = b.merges.find(symbols[at-1], symbols[at])
		}
		if at < n-1 {
			ranks[at] = b.merges.find(symbols[at], symbols[at+1])
		}
	}
	for _, symbol := range symbols[:n] {
		dst = b.emit(dst, symbol)
	}
	return dst
}

// mergeLong is merge in n log n: the symbols in a list, the possible merges in a
// heap by rank and place.
func (b *bpe) mergeLong(dst []int32, piece string, s *scratch) []int32 {
	s.grow(len(piece))
	n := b.begin(s.symbols[:len(piece)], piece)
	nodes, h := s.nodes[:n], s.heap[:0]
	for i := range nodes {
		nodes[i] = node{symbol: s.symbols[i], prev: int32(i - 1), next: int32(i + 1)}
	}
	nodes[n-1].next = -1
	propose := func(left int32) (c candidate, ok bool) {
		if left < 0 || nodes[left].next < 0 {
			return c, false
		}
		l, r := nodes[left].symbol, nodes[nodes[left].next].symbol
		rank := b.merges.find(l, r)
		return candidate{order: uint64(rank)<<32 | uint64(left), left: l, right: r}, rank != noMerge
	}
	for i := range n - 1 {
		if c, ok := propose(int32(i)); ok {
			h = append(h, c)
		}
	}
	h.order()
	for len(h) > 0 {
		c := h[0]
		at, rank := int32(uint32(c.order)), c.order>>32
		// A candidate is stale when one of its halves was merged with another symbol.
		next := nodes[at].next
		if nodes[at].symbol != c.left || next < 0 || nodes[next].symbol != c.right {
			h = h.pop()
			continue
		}
		nodes[at].symbol = b.results[rank]
		nodes[at].next = nodes[next].next
		if nodes[at].next >= 0 {
			nodes[nodes[at].next].prev = at
		}
		nodes[next].symbol = gone
		if c, ok := propose(at); ok {
			h[0] = c
			h.down(0)
		} else {
			h = h.pop()
		}
		if c, ok := propose(nodes[at].prev); ok {
			h = h.push(c)
		}
	}
	for i := int32(0); i >= 0; i = nodes[i].next {
		dst = b.emit(dst, nodes[i].symbol)
	}
	s.heap = h
	return dst
}
