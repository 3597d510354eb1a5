// Package chat is the conversation on the screen: the transcript of turns and notes,
// and the prompt with its history. It knows no engine and no keys but the prompt's own.
package chat

import (
	"fmt"
	"slices"
	"time"

	"bmoe/internal/units"
	"bmoe/tui/term"
)

// Transcript is the chat so far and what part of it is on the screen. While it
// follows, its end is shown; once the reader scrolls up, the line at the top
// stays where it is, whatever is added below or rewrapped.
type Transcript struct {
	th     *term.Theme
	w, h   int
	blocks []*Block
	follow bool
	topBlk int // the line at the top, when not following: block and line of it
	topRow int
	unfold bool   // all reasoning is shown
	plain  bool   // answers are shown as they were written
	Hint   string // shown while nobody has said anything

	// starts are the first rows of the blocks, counted from the start, and of what
	// follows the last: of the first known of them, those that are up to date.
	starts []int
	known  int

	find   find
	pick   pick
	silent bool // there are no turns, only notes of ours if anything
}

// NewTranscript returns an empty one, which follows its end.
func NewTranscript(th *term.Theme) *Transcript {
	return &Transcript{th: th, follow: true, starts: []int{0}, silent: true}
}

// Ask appends what the user says, and follows.
func (t *Transcript) Ask(when time.Time, text string) {
	t.ToEnd()
	t.add(&Block{Kind: FromUser, When: when}).AddText(text)
}

// Answer appends an answer that goes on until it is finished.
func (t *Transcript) Answer(when time.Time, tag string) *Block {
	return t.add(&Block{Kind: FromModel, When: when, Tag: tag, live: true})
}

// Blocks are the turns and notes so far, the oldest first.
func (t *Transcript) Blocks() []*Block { return t.blocks }

func (t *Transcript) add(b *Block) *Block {
	b.open, b.in = t.unfold, t
	t.blocks = append(t.blocks, b)
	t.silent = t.silent && b.Kind == FromUs
	t.stale(len(t.blocks) - 2) // the gap after the one before
	return b
}

// Note appends a line of our own.
func (t *Transcript) Note(when time.Time, warn bool, text string) {
	b := &Block{Kind: FromUs, When: when, Warn: warn}
	b.AddText(text)
	t.add(b)
}

// NoteBefore puts a line of our own in front of a block.
func (t *Transcript) NoteBefore(b *Block, when time.Time, text string) {
	i := slices.Index(t.blocks, b)
	if i < 0 {
		return
	}
	n := &Block{Kind: FromUs, When: when, Warn: true, in: t}
	n.AddText(text)
	t.blocks = slices.Insert(t.blocks, i, n)
	t.stale(i - 1)
	if !t.follow && t.topBlk >= i {
		t.topBlk++
	}
}

// DropEmpty removes a turn in which nothing was said.
func (t *Transcript) DropEmpty(b *Block) {
	i := slices.Index(t.blocks, b)
	if i < 0 || b.text.Len() > 0 || b.reasoning.Len() > 0 {
		return
	}
	t.blocks = slices.Delete(t.blocks, i, i+1)
	t.silent = !slices.ContainsFunc(t.blocks, func(b *Block) bool { return b.Kind != FromUs })
	t.stale(i - 1)
	if !t.follow && t.topBlk > i {
		t.topBlk--
	}
	t.clamp()
}

// Rewrap forgets all lines, after the terminal's way to measure text changed.
func (t *Transcript) Rewrap() {
	for _, b := range t.blocks {
		b.textDoc, b.reasonDoc = doc{}, doc{}
	}
	t.stale(0)
	t.clamp()
}

// Clear forgets all.
func (t *Transcript) Clear() {
	t.blocks, t.silent, t.pick = nil, true, pick{}
	t.stale(0)
	t.ToEnd()
}

// SetSize sets the room for text. The line at the top stays at the top.
func (t *Transcript) SetSize(w, h int) {
	if w == t.w && h == t.h {
		return
	}
	if w == t.w {
		t.h = h
		t.clamp()
		return
	}
	t.relaid(func() { t.w, t.h = w, h })
}

// relaid changes how all blocks are laid out. The line at the top stays at the top.
func (t *Transcript) relaid(change func()) {
	if t.follow || len(t.blocks) == 0 {
		change()
		t.stale(0)
		return
	}
	offset := t.offsetOf(t.topBlk, t.topRow)
	change()
	t.stale(0)
	t.topRow = t.rowOf(t.topBlk, offset)
	t.clamp()
}

// SetMarkdown says whether the marks of Markdown are shown as what they mean.
func (t *Transcript) SetMarkdown(on bool) {
	if t.plain == on {
		t.relaid(func() { t.plain = !on })
	}
}

// Markdown reports whether they are.
func (t *Transcript) Markdown() bool { return !t.plain }

// stale says that the rows of a block and of those after it are others now.
func (t *Transcript) stale(i int) { t.known = min(t.known, max(i, 0)) }

func (t *Transcript) changed(b *Block) {
	for i := len(t.blocks) - 1; i >= 0; i-- { // it is most likely the last
		if t.blocks[i] == b {
			t.stale(i)
			return
		}
	}
}

// index brings the first rows of all blocks up to date.
func (t *Transcript) index() []int {
	for n := len(t.blocks); t.known < n; t.known++ {
		t.starts = append(t.starts[:t.known+1], t.starts[t.known]+t.rows(t.known))
	}
	t.starts = t.starts[:len(t.blocks)+1]
	return t.starts
}

// blockAt returns which block a row is of, and which of its rows it is.
func (t *Transcript) blockAt(row int) (block, of int) {
	starts := t.index()
	i, found := slices.BinarySearch(starts, row)
	if !found {
		i--
	}
	for i+1 < len(starts) && starts[i+1] == row { // blocks without rows
		i++
	}
	return i, row - starts[i]
}

// A block's rows are a header, the reasoning if unfolded, the text, and a
// blank line; a note has no header.

// rows returns how many rows a block takes.
func (t *Transcript) rows(i int) int {
	b := t.blocks[i]
	t.wrap(b)
	n := 0
	if b.Kind != FromUs {
		n++
	}
	n += len(t.thoughts(b)) + len(t.said(b))
	if t.gapAfter(i) {
		n++
	}
	return n
}

// thoughts and said are the lines of both that show.
func (t *Transcript) thoughts(b *Block) []row {
	if !b.open || b.reasoning.Len() == 0 {
		return nil
	}
	return b.reasonDoc.rows
}

func (t *Transcript) said(b *Block) []row {
	if b.text.Len() == 0 {
		return nil
	}
	return b.textDoc.rows
}

// gapAfter reports whether a blank line follows: notes in a row stand together.
func (t *Transcript) gapAfter(i int) bool {
	return t.blocks[i].Kind != FromUs || i+1 == len(t.blocks) || t.blocks[i+1].Kind != FromUs
}

func (t *Transcript) wrap(b *Block) {
	w := t.w
	if b.Kind == FromUs {
		w -= 2
	}
	b.textDoc.layout(b.text.String(), w, b.Kind == FromModel && !t.plain, t.th)
	if b.open {
		b.reasonDoc.layout(b.reasoning.String(), t.w-2, false, t.th)
	}
}

// offsetOf and rowOf turn a row into a place in the block's text and back;
// the place survives a change of width.
func (t *Transcript) offsetOf(i, row int) int {
	b := t.blocks[i]
	t.wrap(b)
	if b.Kind != FromUs {
		row--
	}
	if row < 0 {
		return -1
	}
	n := 0
	if rows := t.thoughts(b); rows != nil {
		if row < len(rows) {
			return rows[row].start
		}
		row -= len(rows)
		n = b.reasoning.Len()
	}
	if row < len(b.textDoc.rows) {
		return n + b.textDoc.rows[row].start
	}
	return n + b.text.Len() + 1
}

func (t *Transcript) rowOf(i, offset int) int {
	last := 0
	for row := range t.rows(i) {
		if t.offsetOf(i, row) > offset {
			break
		}
		last = row
	}
	return last
}

// total returns the rows of the whole transcript.
func (t *Transcript) total() int { return t.index()[len(t.blocks)] }

// top returns the index of the first row on the screen, counted from the start.
func (t *Transcript) top() int {
	end := max(t.total()-t.h, 0)
	if t.follow {
		return end
	}
	return min(t.starts[min(t.topBlk, len(t.blocks))]+t.topRow, end)
}

// clamp keeps the first row on the screen inside the transcript.
func (t *Transcript) clamp() {
	if !t.follow {
		t.scrollTo(t.top())
	}
}

// scrollTo puts a row at the top of the screen. At the end the transcript
// follows again.
func (t *Transcript) scrollTo(row int) {
	end := max(t.total()-t.h, 0)
	if row >= end {
		t.ToEnd()
		return
	}
	row = max(row, 0)
	t.follow = false
	t.topBlk, t.topRow = t.blockAt(row)
}

// ToStart and ToEnd show the first rows and the last; at the end the transcript
// follows.
func (t *Transcript) ToStart() { t.scrollTo(0) }
func (t *Transcript) ToEnd()   { t.follow, t.topBlk, t.topRow = true, 0, 0 }

// Scroll moves by rows, up if they are negative.
func (t *Transcript) Scroll(rows int) { t.scrollTo(t.top() + rows) }

// Page moves by a screenful, up (-1) or down (+1).
func (t *Transcript) Page(dir int) { t.Scroll(dir * max(t.h-2, 1)) }

// Height is how many rows are on the screen.
func (t *Transcript) Height() int { return t.h }

// Below returns how many rows are under the screen.
func (t *Transcript) Below() int { return max(t.total()-t.h, 0) - t.top() }

// setFold shows or hides one block's reasoning, or all blocks' when only is
// nil. A row that stays visible stays where it is.
func (t *Transcript) setFold(only *Block, open bool) {
	if only == nil {
		t.unfold = open
	}
	row, blk := 0, -1
	if !t.follow && len(t.blocks) > 0 {
		blk = t.topBlk
		row = t.topRow
		if b := t.blocks[blk]; (only == nil || only == b) && b.open != open && b.reasoning.Len() > 0 {
			b.reasonDoc.layout(b.reasoning.String(), t.w-2, false, t.th)
			n := len(b.reasonDoc.rows)
			switch {
			case open && row > 0:
				row += n
			case !open && row > n:
				row -= n
			case !open && row > 0:
				row = 0
			}
		}
	}
	for i, b := range t.blocks {
		if only == nil || b == only {
			b.open = open
			t.stale(i)
		}
	}
	if blk >= 0 {
		t.topBlk, t.topRow = blk, row
		t.clamp()
	}
}

// Fold shows or hides all reasoning.
func (t *Transcript) Fold() { t.setFold(nil, !t.unfold) }

// Click shows or hides the reasoning of the turn whose header is on a row of the
// screen.
func (t *Transcript) Click(screenRow int) {
	if screenRow < 0 || screenRow >= t.h {
		return
	}
	if b := t.headerAt(screenRow); b != nil && b.reasoning.Len() > 0 {
		t.setFold(b, !b.open)
	}
}

// HasThoughts reports whether there is reasoning to unfold.
func (t *Transcript) HasThoughts() bool {
	return slices.ContainsFunc(t.blocks, func(b *Block) bool { return b.reasoning.Len() > 0 })
}

// headerAt returns the block whose header is drawn on a row of the screen.
func (t *Transcript) headerAt(screenRow int) *Block {
	i, row := t.blockAt(t.top() + screenRow)
	if row != 0 || i == len(t.blocks) || t.blocks[i].Kind != FromModel {
		return nil
	}
	return t.blocks[i]
}

// Render returns exactly h rows of w columns.
func (t *Transcript) Render() []string {
	out := make([]string, 0, t.h)
	t.search()
	first, skip := t.blockAt(t.top())
	for i := first; i < len(t.blocks) && len(out) < t.h; i++ {
		out = t.appendBlock(out, i, skip)
		skip = 0
	}
	if t.silent {
		for _, l := range term.Wrap(nil, t.Hint, 0, t.w, t.th.Method) {
			if len(out) < t.h {
				out = append(out, t.th.Pad(t.th.Note.On(t.Hint[l.Start:l.End]), t.w))
			}
		}
	}
	for len(out) < t.h {
		out = append(out, term.Blanks(t.w))
	}
	return out
}

// appendBlock adds a block's rows from one on, as many as the screen has room for.
func (t *Transcript) appendBlock(out []string, i, from int) []string {
	b := t.blocks[i]
	th := t.th
	if b.Kind != FromUs {
		if from == 0 && len(out) < t.h {
			out = append(out, t.header(b))
		}
		from--
	}
	n := len(t.thoughts(b))
	marks := t.marks(b, true)
	for y := max(from, 0); y < n && len(out) < t.h; y++ {
		line := b.reasonDoc.draw(b.reasoning.String(), y, th.Note, marks, th)
		out = append(out, th.Dim.On(th.G.Vertical)+" "+th.Pad(line, t.w-2))
	}
	from -= n
	n = len(t.said(b))
	marks = t.marks(b, false)
	for y := max(from, 0); y < n && len(out) < t.h; y++ {
		if b.Kind != FromUs {
			out = append(out, th.Pad(b.textDoc.draw(b.text.String(), y, "", marks, th), t.w))
			continue
		}
		sign, st := th.G.Bullet, th.Note
		if b.Warn {
			sign, st = th.G.Warn, th.Read
		}
		if y > 0 {
			sign = " "
		}
		out = append(out, th.Pad(st.On(sign+" ")+b.textDoc.draw(b.text.String(), y, st, marks, th), t.w))
	}
	from -= n
	if from <= 0 && t.gapAfter(i) && len(out) < t.h {
		out = append(out, term.Blanks(t.w))
	}
	return out
}

// header is the line above a turn: who, when, and the folded reasoning.
func (t *Transcript) header(b *Block) string {
	th := t.th
	who, st := "you", th.User
	if b.Kind == FromModel {
		who, st = "bmoe", th.Assistant
	}
	parts := []term.Part{th.Text(0, st, who), th.Text(3, th.Dim, b.When.Format("15:04"))}
	if b.Tag != "" {
		parts = append(parts, th.Text(2, th.Dim, b.Tag))
	}
	if b.reasoning.Len() > 0 {
		verb, fold := "thought for", "[+]"
		if b.thinking {
			verb = "thinking"
		}
		if b.open {
			fold = "[-]"
		}
		st := th.Dim
		if !b.open && len(t.marks(b, true)) > 0 { // what is picked or found lies within
			st = th.Selected
		}
		parts = append(parts, th.Text(1, st, fmt.Sprintf("%s %s %s", verb, units.Seconds(b.thought), fold)))
	}
	if b.Kind == FromModel && b.live && b.text.Len() == 0 && b.reasoning.Len() == 0 {
		parts = append(parts, th.Text(1, th.Dim, "reading the prompt"))
	}
	return th.Row(t.w, 2, parts...)
}
