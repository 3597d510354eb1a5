package chat

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"bmoe/tui/term"
)

// mostFound bounds what a search finds.
const mostFound = 10000

// find is a search that is open.
type find struct {
	query []rune  // folded; empty: none
	all   []place // in order
	in    []int32 // the blocks that they are in
	at    int     // the one that is shown; below 0: none
	where place   // of it, so that it stays the same as the text grows
	from  int     // the row at the top when the search began, or went on to another place
}

// place is a place in the transcript: a block, and where in what it says or thought.
type place struct {
	block      *Block
	thought    bool
	start, end int
}

// hits is what a search has found in a block.
type hits struct {
	query string
	known bool
	at    []place
}

// Find looks for a text, without regard to capital letters and to the marks of
// emphasis, and shows the first place from the top of the screen on that has it. An
// empty text ends the search.
func (t *Transcript) Find(query string) {
	from := t.top()
	if t.Finding() {
		from = t.find.from
	}
	t.find = find{query: fold(query), at: -1, from: from}
	t.search()
	if len(t.find.all) == 0 {
		return
	}
	for i, f := range t.find.all {
		if t.rowIn(int(t.find.in[i]), f) >= from {
			t.showFound(i)
			return
		}
	}
	t.showFound(0)
}

// FindNext goes on to the next place (+1) or back to the one before (-1), round the
// ends.
func (t *Transcript) FindNext(dir int) {
	t.search()
	n, at := len(t.find.all), t.find.at
	if n == 0 {
		return
	}
	if at < 0 && dir < 0 { // what was shown is gone
		at = 0
	}
	t.showFound((at + dir + n) % n)
	t.find.from = t.rowIn(int(t.find.in[t.find.at]), t.find.where)
}

// Found tells which place is shown, from 1, and how many there are; more says that
// these are not all.
func (t *Transcript) Found() (at, of int, more bool) {
	return t.find.at + 1, len(t.find.all), len(t.find.all) == mostFound
}

// Finding reports that a search is open.
func (t *Transcript) Finding() bool { return len(t.find.query) > 0 }

// FoundToken returns the token that said what is shown of a search.
func (t *Transcript) FoundToken() (run, step int, ok bool) {
	if t.find.at < 0 {
		return 0, 0, false
	}
	return t.find.where.token()
}

func (t *Transcript) showFound(i int) {
	t.find.at, t.find.where = i, t.find.all[i]
	t.reveal(int(t.find.in[i]), t.find.where)
}

// search brings what was found up to date: only blocks that have changed are looked
// through.
func (t *Transcript) search() {
	f := &t.find
	if len(f.query) == 0 {
		return
	}
	f.all, f.in, f.at = f.all[:0], f.in[:0], -1
	query := string(f.query)
	for i, b := range t.blocks {
		if !b.hits.known || b.hits.query != query {
			b.hits = hits{query: query, known: true}
			for _, thought := range []bool{true, false} {
				if b.hits.at = appendFound(b.hits.at, b, thought, f.query); len(b.hits.at) > mostFound {
					b.hits.at = b.hits.at[:mostFound]
				}
			}
		}
		for _, h := range b.hits.at[:min(len(b.hits.at), mostFound-len(f.all))] {
			if h == f.where {
				f.at = len(f.all)
			}
			f.all, f.in = append(f.all, h), append(f.in, int32(i))
		}
	}
}

func appendFound(out []place, b *Block, thought bool, query []rune) []place {
	src := b.source(thought)
	for i := 0; i < len(src); {
		if n := matches(src[i:], query); n > 0 {
			out = append(out, place{b, thought, i, i + n})
			i += n
			continue
		}
		_, n := utf8.DecodeRuneInString(src[i:])
		i += n
	}
	return out
}

// source is what a block says, or what it thought.
func (b *Block) source(thought bool) string {
	if thought {
		return b.reasoning.String()
	}
	return b.text.String()
}

// fold makes text comparable.
func fold(s string) (out []rune) {
	for _, r := range term.CleanLine(s) {
		out = append(out, foldRune(r))
	}
	return out
}

func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	return unicode.ToLower(r)
}

// matches returns how many bytes at the start of a text say what is looked for: marks
// of emphasis between do not count, and a space stands for any number.
func matches(s string, query []rune) int {
	at := 0
	for n, q := range query {
		for {
			if at == len(s) {
				return 0
			}
			r, size := rune(s[at]), 1
			if r >= utf8.RuneSelf {
				r, size = utf8.DecodeRuneInString(s[at:])
			}
			if q == ' ' && (r == ' ' || r == '\n') {
				for at < len(s) && (s[at] == ' ' || s[at] == '\n') {
					at++
				}
				break
			}
			if foldRune(r) == q {
				at += size
				break
			}
			if n == 0 || r != '*' && r != '_' && r != '`' && r != '~' {
				return 0
			}
			at += size
		}
	}
	return at
}

// rowIn returns the row of a place in a block, counted from the start of the
// transcript; of a thought that is folded the header's.
func (t *Transcript) rowIn(i int, p place) int {
	row, b := t.index()[i], p.block
	if p.thought && !b.open {
		return row
	}
	if b.Kind != FromUs {
		row++
	}
	if p.thought {
		return row + b.reasonDoc.rowOf(p.start)
	}
	return row + len(t.thoughts(b)) + b.textDoc.rowOf(p.start)
}

// reveal scrolls until a place in a block is on the screen.
func (t *Transcript) reveal(i int, p place) {
	row, top := t.rowIn(i, p), t.top()
	if row < top || row >= top+t.h {
		t.scrollTo(row - t.h/3)
	}
}

// marks are the parts of a block that are drawn apart, the first first.
func (t *Transcript) marks(b *Block, thought bool) (out []mark) {
	if t.Finding() {
		for _, h := range b.hits.at {
			if h.thought != thought {
				continue
			}
			st := t.th.Found
			if t.find.at >= 0 && h == t.find.where {
				st = t.th.Selected
			}
			out = append(out, mark{h.start, h.end, st})
		}
	}
	if p := t.pick.place; p.block == b && p.thought == thought && p.start < p.end {
		out = append(out, mark{p.start, p.end, t.th.Selected})
		slices.SortStableFunc(out, func(a, b mark) int { return a.start - b.start })
	}
	return out
}
