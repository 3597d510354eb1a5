// Package term is what every part of the screen draws with: themes, lines that
// fit, wrapped and cleaned text, what the terminal can do.
package term

import "github.com/charmbracelet/x/ansi"

// Style is a ready SGR sequence. The screen is built from a few of them
// several times a second, so nothing is computed while drawing; the renderer
// turns the colours into what the terminal can show.
type Style string

// On returns the text in the style. The text must not hold styled parts.
func (s Style) On(text string) string {
	if s == "" || text == "" {
		return text
	}
	return string(s) + text + ansi.ResetStyle
}

// Theme is how the screen looks: colours, glyphs, and how wide the terminal
// draws a character.
type Theme struct {
	Compute, Mgmt, Stall, Other     Style // where a token's time goes
	Hit, Read, Evicted              Style // what the cache did
	Dim, Bold, Title, Accent, Alert Style
	User, Assistant, Note, Frame    Style
	Focused                         Style
	Selected                        Style
	// Of text: what Markdown marks, and what a search has found.
	Italic, Strike, Link, Code, Heading, Found Style

	// Of the cells of a map: what was used, read, given up, guessed, and what lies still.
	HeatHit, HeatRead, HeatEvicted, HeatGuessed, HeatStill Heat

	G glyphs
	// ASCIIText is set where the terminal's locale is not UTF-8: then the
	// model's text is spelled in ASCII too.
	ASCIIText bool
	NoColor   bool // everything has to be told by characters
	Method    ansi.Method
}

// glyphs are the characters that are not letters. Each has an ASCII twin of
// the same width, so that the two screens differ in nothing else.
type glyphs struct {
	Horizontal, Vertical            string // a frame's edges
	TopLeft, TopRight               string
	BottomLeft, BottomRight         string
	TeeLeft, TeeRight               string // where a line across meets the edges
	Compute, Mgmt, Stall, Other     string // the parts of a token's time
	Full, Empty, Rest, Mark         string // of a bar: what is taken, what may be, and the rest
	Line, Over, Focus, Bullet, Warn string
	Pick                            string // under what is picked
	ellipsis, Down, Up              string
	Levels                          [8]string // of a column's top, an eighth of a row each
	UpperHalf, LowerHalf            string    // of a cell of which two share a row; no ASCII
	// What happened in a cell of a map: now, and some tokens ago.
	CellHit, CellRead, CellEvicted, CellGuessed [2]string
	CellStill                                   string
}

var unicodeGlyphs = glyphs{
	Horizontal: "─", Vertical: "│", TopLeft: "╭", TopRight: "╮", BottomLeft: "╰", BottomRight: "╯", TeeLeft: "├", TeeRight: "┤",
	Compute: "█", Mgmt: "▓", Stall: "▒", Other: "░",
	Full: "█", Empty: "░", Rest: "·", Mark: "│",
	Line: "─", Over: "▲", Focus: "▶", Bullet: "•", Warn: "!",
	Levels: [8]string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"},
	Pick:   "▲", ellipsis: "…", Down: "↓", Up: "↑", UpperHalf: "▀", LowerHalf: "▄",
	CellHit: [2]string{"●", "○"}, CellRead: [2]string{"▼", "▽"}, CellEvicted: [2]string{"X", "x"}, CellGuessed: [2]string{"◆", "◇"}, CellStill: "·",
}

// ASCIIGlyphs are for terminals and readers that have no other characters.
var ASCIIGlyphs = glyphs{
	Horizontal: "-", Vertical: "|", TopLeft: "+", TopRight: "+", BottomLeft: "+", BottomRight: "+", TeeLeft: "+", TeeRight: "+",
	Compute: "#", Mgmt: "=", Stall: ":", Other: ".",
	Full: "#", Empty: "-", Rest: ".", Mark: "|",
	Line: "-", Over: "^", Focus: ">", Bullet: "*", Warn: "!",
	Levels: [8]string{"_", ".", ":", "-", "=", "+", "*", "#"},
	Pick:   "^", ellipsis: "~", Down: "v", Up: "^",
	CellHit: [2]string{"H", "h"}, CellRead: [2]string{"R", "r"}, CellEvicted: [2]string{"X", "x"}, CellGuessed: [2]string{"P", "p"}, CellStill: ".",
}

// Shown makes text from outside fit the terminal's character set.
func (t *Theme) Shown(s string) string {
	if t.ASCIIText {
		return toASCII(s)
	}
	return s
}

// Width returns how many columns a text takes. Styled parts count nothing.
func (t *Theme) Width(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			return t.Method.StringWidth(s)
		}
	}
	return len(s)
}

// Cut shortens a text to a number of columns, marking that something is gone.
func (t *Theme) Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if t.Width(s) <= w {
		return s
	}
	// The library looks by clusters whether anything has to go, whatever the method:
	// blanks that are then cut off too make sure that it does.
	return t.Method.Truncate(s+Blanks(w), w, t.G.ellipsis)
}

// Pad cuts or fills a text to exactly w columns.
func (t *Theme) Pad(s string, w int) string {
	n := t.Width(s)
	if n > w {
		s = t.Cut(s, w)
		n = t.Width(s)
	}
	return s + Blanks(w-n)
}

// PadLeft does the same with the text on the right.
func (t *Theme) PadLeft(s string, w int) string {
	n := t.Width(s)
	if n > w {
		return t.Cut(s, w)
	}
	return Blanks(w-n) + s
}
