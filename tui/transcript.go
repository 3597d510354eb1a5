package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bmoe/internal/units"
	"bmoe/tui/term"
)

// blockKind says who speaks in a block of the transcript.
type blockKind uint8

const (
	fromUser blockKind = iota
	fromModel
	fromUs // notes: what was applied, what a run cost, warnings
)

// block is one turn, or one note between turns. Its wrapped lines are kept, so
// that drawing a frame touches only the block that grows.
type block struct {
	kind blockKind
	when time.Time
	tag  string // beside the speaker: "again", "run 2"
	warn bool   // a note that should be noticed

	text      strings.Builder // clean; of the answer, without the reasoning
	reasoning strings.Builder
	thought   int64 // ns spent reasoning
	thinking  bool  // the reasoning goes on
	open      bool  // the reasoning is unfolded
	live      bool  // the answer goes on

	textClean, reasonClean term.Cleaner
	textLines, reasonLines term.Wrapped
}

// transcript is the chat so far and what part of it is on the screen. While it
// follows, its end is shown; once the reader scrolls up, the line at the top
// stays where it is, whatever is added below or rewrapped.
type transcript struct {
	th     *term.Theme
	w, h   int
	blocks []*block
	follow bool
	topBlk int // the line at the top, when not following: block and line of it
	topRow int
	unfold bool   // all reasoning is shown
	hint   string // shown while nobody has said anything
}

func newTranscript(th *term.Theme) transcript { return transcript{th: th, follow: true} }

// add appends a block and returns it.
func (t *transcript) add(b *block) *block {
	b.open = t.unfold
	t.blocks = append(t.blocks, b)
	return b
}

// addNote appends a line of our own.
func (t *transcript) addNote(when time.Time, warn bool, text string) {
	b := &block{kind: fromUs, when: when, warn: warn}
	b.addText(text)
	t.add(b)
}

// noteBefore puts a line of our own in front of a block.
func (t *transcript) noteBefore(b *block, when time.Time, text string) {
	i := slices.Index(t.blocks, b)
	if i < 0 {
		return
	}
	n := &block{kind: fromUs, when: when, warn: true}
	n.addText(text)
	t.blocks = slices.Insert(t.blocks, i, n)
	if !t.follow && t.topBlk >= i {
		t.topBlk++
	}
}

// dropEmpty removes a turn in which nothing was said.
func (t *transcript) dropEmpty(b *block) {
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

// rewrap forgets all lines, after the terminal's way to measure text changed.
func (t *transcript) rewrap() {
	for _, b := range t.blocks {
		b.textLines, b.reasonLines = term.Wrapped{}, term.Wrapped{}
	}
	t.clamp()
}

func (t *transcript) clear() {
	t.blocks, t.follow, t.topBlk, t.topRow = nil, true, 0, 0
}

func (b *block) addText(s string)      { b.textClean.Write(&b.text, s) }
func (b *block) addReasoning(s string) { b.reasonClean.Write(&b.reasoning, s) }

// setSize sets the room for text. The line at the top stays at the top.
func (t *transcript) setSize(w, h int) {
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
func (t *transcript) rows(i int) int {
	b := t.blocks[i]
	t.wrap(b)
	n := 0
	if b.kind != fromUs {
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
func (t *transcript) gapAfter(i int) bool {
	return t.blocks[i].kind != fromUs || i+1 == len(t.blocks) || t.blocks[i+1].kind != fromUs
}

func (t *transcript) wrap(b *block) {
	w := t.w
	if b.kind == fromUs {
		w -= 2
	}
	b.textLines.Update(b.text.String(), w, t.th.Method)
	if b.open {
		b.reasonLines.Update(b.reasoning.String(), t.w-2, t.th.Method)
	}
}

// offsetOf and rowOf turn a row into a place in the block's text and back;
// the place survives a change of width.
func (t *transcript) offsetOf(i, row int) int {
	b := t.blocks[i]
	t.wrap(b)
	if b.kind != fromUs {
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

func (t *transcript) rowOf(i, offset int) int {
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
func (t *transcript) total() int {
	n := 0
	for i := range t.blocks {
		n += t.rows(i)
	}
	return n
}

// top returns the index of the first row on the screen, counted from the start.
func (t *transcript) top() int {
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
func (t *transcript) clamp() {
	if !t.follow {
		t.scrollTo(t.top())
	}
}

// scrollTo puts a row at the top of the screen. At the end the transcript
// follows again.
func (t *transcript) scrollTo(row int) {
	end := max(t.total()-t.h, 0)
	if row >= end {
		t.follow, t.topBlk, t.topRow = true, 0, 0
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

func (t *transcript) scroll(rows int) { t.scrollTo(t.top() + rows) }

// below returns how many rows are under the screen.
func (t *transcript) below() int { return max(t.total()-t.h, 0) - t.top() }

// setFold shows or hides one block's reasoning, or all blocks' when only is
// nil. A row that stays visible stays where it is.
func (t *transcript) setFold(only *block, open bool) {
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

// hasThoughts reports whether there is reasoning to unfold.
func (t *transcript) hasThoughts() bool {
	return slices.ContainsFunc(t.blocks, func(b *block) bool { return b.reasoning.Len() > 0 })
}

// headerAt returns the block whose header is drawn on a row of the screen.
func (t *transcript) headerAt(screenRow int) *block {
	row := t.top() + screenRow
	if pad := t.h - t.total(); pad > 0 {
		row = screenRow
	}
	for i, b := range t.blocks {
		n := t.rows(i)
		if row < n {
			if row == 0 && b.kind == fromModel {
				return b
			}
			return nil
		}
		row -= n
	}
	return nil
}

// render returns exactly h rows of w columns.
func (t *transcript) render() []string {
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
		for _, l := range term.Wrap(nil, t.hint, 0, t.w, t.th.Method) {
			if len(out) < t.h {
				out = append(out, t.th.Pad(t.th.Note.On(t.hint[l.Start:l.End]), t.w))
			}
		}
	}
	for len(out) < t.h {
		out = append(out, term.Blanks(t.w))
	}
	return out
}

// silent reports that there are no turns, only notes of ours if anything.
func (t *transcript) silent() bool {
	return !slices.ContainsFunc(t.blocks, func(b *block) bool { return b.kind != fromUs })
}

// appendBlock adds a block's rows from one on, as many as the screen has room for.
func (t *transcript) appendBlock(out []string, i, from int) []string {
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
	if b.kind != fromUs && !emit(func() string { return t.header(b) }) {
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
				if b.kind != fromUs {
					return th.Pad(s, t.w)
				}
				mark, st := th.G.Bullet, th.Note
				if b.warn {
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
func (t *transcript) header(b *block) string {
	th := t.th
	who, st := "you", th.User
	if b.kind == fromModel {
		who, st = "bmoe", th.Assistant
	}
	parts := []term.Part{th.Text(0, st, who), th.Text(3, th.Dim, b.when.Format("15:04"))}
	if b.tag != "" {
		parts = append(parts, th.Text(2, th.Dim, b.tag))
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
	if b.kind == fromModel && b.live && b.text.Len() == 0 && b.reasoning.Len() == 0 {
		parts = append(parts, th.Text(1, th.Dim, "reading the prompt"))
	}
	return th.Row(t.w, 2, parts...)
}
