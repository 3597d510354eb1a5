// Package chat is the conversation on the screen: the transcript of turns and notes,
// and the prompt with its history. It knows no engine and no keys but the prompt's own.
package chat

import (
	"fmt"
	"slices"
	"strings"
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
	Hint   string // shown while nobody has said anything
}

// NewTranscript returns an empty one, which follows its end.
func NewTranscript(th *term.Theme) *Transcript { return &Transcript{th: th, follow: true} }

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
	b.open = t.unfold
	t.blocks = append(t.blocks, b)
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
	n := &Block{Kind: FromUs, When: when, Warn: true}
	n.AddText(text)
	t.blocks = slices.Insert(t.blocks, i, n)
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
	if !t.follow && t.topBlk > i {
		t.topBlk--
	}
	t.clamp()
}

// Rewrap forgets all lines, after the terminal's way to measure text changed.
func (t *Transcript) Rewrap() {
	for _, b := range t.blocks {
		b.textLines, b.reasonLines = term.Wrapped{}, term.Wrapped{}
	}
	t.clamp()
}

// Clear forgets all.
func (t *Transcript) Clear() {
	t.blocks = nil
	t.ToEnd()
}

// SetSize sets the room for text. The line at the top stays at the top.
func (t *Transcript) SetSize(w, h int) {
	if w == t.w && h == t.h {
		return
	}
	if w == t.w || t.follow || len(t.blocks) == 0 {
		t.w, t.h = w, h
		t.clamp()
		return
	}
	offset := t.offsetOf(t.topBlk, t.topRow)
	t.w, t.h = w, h
	t.topRow = t.rowOf(t.topBlk, offset)
	t.clamp()
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
	if b.open && b.reasoning.Len() > 0 {
		n += len(b.reasonLines.Lines)
	}
	if b.text.Len() > 0 {
		n += len(b.textLines.Lines)
	}
	if t.gapAfter(i) {
		n++
	}
	return n
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
	b.textLines.Update(b.text.String(), w, t.th.Method)
	if b.open {
		b.reasonLines.Update(b.reasoning.String(), t.w-2, t.th.Method)
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
	if b.open && b.reasoning.Len() > 0 {
		if row < len(b.reasonLines.Lines) {
			return b.reasonLines.Lines[row].Start
		}
		row -= len(b.reasonLines.Lines)
		n = b.reasoning.Len()
	}
	if row < len(b.textLines.Lines) {
		return n + b.textLines.Lines[row].Start
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
func (t *Transcript) total() int {
	n := 0
	for i := range t.blocks {
		n += t.rows(i)
	}
	return n
}

// top returns the index of the first row on the screen, counted from the start.
func (t *Transcript) top() int {
	end := max(t.total()-t.h, 0)
	if t.follow {
		return end
	}
	n := t.topRow
	for i := range min(t.topBlk, len(t.blocks)) {
		n += t.rows(i)
	}
	return min(n, end)
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
	for i := range t.blocks {
		n := t.rows(i)
		if row < n {
			t.topBlk, t.topRow = i, row
			return
		}
		row -= n
	}
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
			b.reasonLines.Update(b.reasoning.String(), t.w-2, t.th.Method)
			n := len(b.reasonLines.Lines)
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
	for _, b := range t.blocks {
		if only == nil || b == only {
			b.open = open
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
	row := t.top() + screenRow
	if pad := t.h - t.total(); pad > 0 {
		row = screenRow
	}
	for i, b := range t.blocks {
		n := t.rows(i)
		if row < n {
			if row == 0 && b.Kind == FromModel {
				return b
			}
			return nil
		}
		row -= n
	}
	return nil
}

// Render returns exactly h rows of w columns.
func (t *Transcript) Render() []string {
	out := make([]string, 0, t.h)
	skip := t.top()
	for i := range t.blocks {
		n := t.rows(i)
		if skip >= n {
			skip -= n
			continue
		}
		out = t.appendBlock(out, i, skip)
		skip = 0
		if len(out) >= t.h {
			out = out[:t.h]
			break
		}
	}
	if t.silent() {
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

// silent reports that there are no turns, only notes of ours if anything.
func (t *Transcript) silent() bool {
	return !slices.ContainsFunc(t.blocks, func(b *Block) bool { return b.Kind != FromUs })
}

// appendBlock adds a block's rows from one on, as many as the screen has room for.
func (t *Transcript) appendBlock(out []string, i, from int) []string {
	b := t.blocks[i]
	th := t.th
	row := 0
	emit := func(s func() string) bool {
		if row >= from {
			out = append(out, s())
		}
		row++
		return len(out) < t.h
	}
	if b.Kind != FromUs && !emit(func() string { return t.header(b) }) {
		return out
	}
	src := b.reasoning.String()
	if b.open && len(src) > 0 {
		for _, l := range b.reasonLines.Lines {
			if !emit(func() string {
				return th.Dim.On(th.G.Vertical) + " " + th.Pad(th.Note.On(th.Shown(strings.TrimRight(src[l.Start:l.End], " "))), t.w-2)
			}) {
				return out
			}
		}
	}
	src = b.text.String()
	if len(src) > 0 {
		for n, l := range b.textLines.Lines {
			if !emit(func() string {
				s := th.Shown(strings.TrimRight(src[l.Start:l.End], " "))
				if b.Kind != FromUs {
					return th.Pad(s, t.w)
				}
				mark, st := th.G.Bullet, th.Note
				if b.Warn {
					mark, st = th.G.Warn, th.Read
				}
				if n > 0 {
					mark = " "
				}
				return th.Pad(st.On(mark+" "+s), t.w)
			}) {
				return out
			}
		}
	}
	if t.gapAfter(i) {
		emit(func() string { return term.Blanks(t.w) })
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
		parts = append(parts, th.Text(1, th.Dim, fmt.Sprintf("%s %s %s", verb, units.Seconds(b.thought), fold)))
	}
	if b.Kind == FromModel && b.live && b.text.Len() == 0 && b.reasoning.Len() == 0 {
		parts = append(parts, th.Text(1, th.Dim, "reading the prompt"))
	}
	return th.Row(t.w, 2, parts...)
}
