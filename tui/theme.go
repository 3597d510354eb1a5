package tui

import (
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// style is a ready SGR sequence. The screen is built from a few of them
// several times a second, so nothing is computed while drawing; the renderer
// turns the colours into what the terminal can show.
type style string

// on returns the text in the style. The text must not hold styled parts.
func (s style) on(text string) string {
	if s == "" || text == "" {
		return text
	}
	return string(s) + text + ansi.ResetStyle
}

// theme is how the screen looks: colours, glyphs, and how wide the terminal
// draws a character.
type theme struct {
	compute, mgmt, stall, other     style // where a token's time goes
	hit, read, evicted              style // what the cache did
	dim, bold, title, accent, alert style
	user, assistant, note, frame    style
	focused                         style
	selected                        style

	g glyphs
	// asciiText is set where the terminal's locale is not UTF-8: then the
	// model's text is spelled in ASCII too.
	asciiText bool
	method    ansi.Method
}

// glyphs are the characters that are not letters. Each has an ASCII twin of
// the same width, so that the two screens differ in nothing else.
type glyphs struct {
	h, v, tl, tr, bl, br, teeL, teeR string
	compute, mgmt, stall, other      string
	full, empty, mark                string
	line, over, focus, bullet, warn  string
	ellipsis, down                   string
}

var unicodeGlyphs = glyphs{
	h: "─", v: "│", tl: "╭", tr: "╮", bl: "╰", br: "╯", teeL: "├", teeR: "┤",
	compute: "█", mgmt: "▓", stall: "▒", other: "░",
	full: "█", empty: "░", mark: "│",
	line: "─", over: "▲", focus: "▶", bullet: "•", warn: "!",
	ellipsis: "…", down: "↓",
}

var asciiGlyphs = glyphs{
	h: "-", v: "|", tl: "+", tr: "+", bl: "+", br: "+", teeL: "+", teeR: "+",
	compute: "#", mgmt: "=", stall: ":", other: ".",
	full: "#", empty: ".", mark: "|",
	line: "-", over: "^", focus: ">", bullet: "*", warn: "!",
	ellipsis: "~", down: "v",
}

// newTheme returns the colours for a dark or a light background. They are
// those of Okabe and Ito, which people with any of the usual kinds of colour
// blindness can tell apart; blue and yellow are shaded to stand out from the
// background.
func newTheme(dark, ascii bool) *theme {
	fg := func(hex string) ansi.Style { return ansi.Style{}.ForegroundColor(lipgloss.Color(hex)) }
	pick := func(onDark, onLight string) string {
		if dark {
			return onDark
		}
		return onLight
	}
	t := &theme{
		compute: style(fg(pick("#56B4E9", "#0072B2")).String()),
		mgmt:    style(fg(pick("#F0E442", "#B59F00")).String()),
		stall:   style(fg("#D55E00").String()),
		other:   style(fg(pick("#999999", "#777777")).String()),
		hit:     style(fg("#009E73").String()),
		read:    style(fg("#E69F00").String()),
		evicted: style(fg("#CC79A7").String()),

		dim:       style(fg(pick("#8A8A8A", "#6A6A6A")).String()),
		bold:      style(ansi.Style{}.Bold().String()),
		title:     style(ansi.Style{}.Bold().String()),
		accent:    style(fg(pick("#56B4E9", "#0072B2")).Bold().String()),
		alert:     style(fg("#D55E00").Bold().String()),
		user:      style(fg("#009E73").Bold().String()),
		assistant: style(fg(pick("#56B4E9", "#0072B2")).Bold().String()),
		note:      style(fg(pick("#8A8A8A", "#6A6A6A")).String()),
		frame:     style(fg(pick("#6A6A6A", "#9A9A9A")).String()),
		focused:   style(fg(pick("#56B4E9", "#0072B2")).Bold().String()),
		selected:  style(ansi.Style{}.Reverse(true).String()),
		g:         unicodeGlyphs,
	}
	if ascii {
		t.g = asciiGlyphs
	}
	return t
}

// shown makes text from outside fit the terminal's character set.
func (t *theme) shown(s string) string {
	if t.asciiText {
		return toASCII(s)
	}
	return s
}

// width returns how many columns a text takes. Styled parts count nothing.
func (t *theme) width(s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			return t.method.StringWidth(s)
		}
	}
	return len(s)
}

// cut shortens a text to a number of columns, marking that something is gone.
func (t *theme) cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if t.width(s) <= w {
		return s
	}
	return t.method.Truncate(s, w, t.g.ellipsis)
}

// pad cuts or fills a text to exactly w columns.
func (t *theme) pad(s string, w int) string {
	n := t.width(s)
	if n > w {
		s = t.cut(s, w)
		n = t.width(s)
	}
	return s + blanks(w-n)
}

// padLeft does the same with the text on the right.
func (t *theme) padLeft(s string, w int) string {
	n := t.width(s)
	if n > w {
		return t.cut(s, w)
	}
	return blanks(w-n) + s
}
