package term

import (
	"image/color"
	"math"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Look is which colours a theme has.
type Look struct {
	Dark bool // the background
	High bool // more contrast than reading needs
	Few  bool // the terminal's own 16 colours, which the user may have chosen
}

// Themes are what --theme takes: the first follows the terminal's background.
var Themes = []string{"auto", "dark", "light", "high-contrast", "16"}

// LookOf returns the look of a theme of this name on a background, and whether the
// background matters to it.
func LookOf(name string, dark bool) (l Look, asks bool) {
	switch name {
	case "dark", "light":
		return Look{Dark: name == "dark"}, false
	case "high-contrast":
		return Look{Dark: dark, High: true}, true
	case "16":
		return Look{Dark: dark, Few: true}, true
	}
	return Look{Dark: dark}, true
}

// How far text stands out from a black or a white background at least, as WCAG 2
// reckons it, and with high contrast.
const (
	leastContrast = 4.5
	highContrast  = 7
)

// tint is a colour of the theme: of Okabe and Ito, which people with any of the usual
// kinds of colour blindness can tell apart, and its nearest of the 16 that can be read
// on black and on white; the default where there is none.
type tint struct {
	hex         string
	dark, light ansi.BasicColor
	plain       bool // on white: the default
}

var (
	blue     = tint{"#56B4E9", ansi.BrightCyan, ansi.Blue, false}
	yellow   = tint{"#F0E442", ansi.BrightYellow, 0, true}
	vermil   = tint{"#D55E00", ansi.BrightRed, ansi.Red, false}
	green    = tint{"#009E73", ansi.BrightGreen, 0, true}
	orange   = tint{"#E69F00", ansi.Yellow, 0, true}
	purple   = tint{"#CC79A7", ansi.BrightMagenta, ansi.Magenta, false}
	gray     = tint{"#8A8A8A", ansi.White, 0, true}
	strong   = tint{"#808080", ansi.BrightWhite, ansi.Black, false} // moved to where it is legible
	graySync = tint{"#999999", ansi.White, 0, true}
)

// NewTheme returns the colours of a look.
func NewTheme(l Look, ascii bool) *Theme {
	on := func(t tint) ansi.Style { return l.style(t, 1) }
	plain := ansi.Style{}
	frame := on(gray)
	if l.High {
		frame = on(strong)
	}
	code := plain.BackgroundColor(lipgloss.Color("#303030"))
	switch {
	case l.Few:
		code = plain.Reverse(true)
	case !l.Dark:
		code = plain.BackgroundColor(lipgloss.Color("#E4E4E4"))
	}
	t := &Theme{
		Compute: Style(on(blue).String()),
		Mgmt:    Style(on(yellow).String()),
		Stall:   Style(on(vermil).String()),
		Other:   Style(on(graySync).String()),
		Hit:     Style(on(green).String()),
		Read:    Style(on(orange).String()),
		Evicted: Style(on(purple).String()),

		Dim:       Style(on(gray).String()),
		Bold:      Style(plain.Bold().String()),
		Title:     Style(plain.Bold().String()),
		Accent:    Style(on(blue).Bold().String()),
		Alert:     Style(on(vermil).Bold().String()),
		User:      Style(on(green).Bold().String()),
		Assistant: Style(on(blue).Bold().String()),
		Note:      Style(on(gray).String()),
		Frame:     Style(frame.String()),
		Focused:   Style(on(blue).Bold().String()),
		Selected:  Style(plain.Reverse(true).String()),
		Italic:    Style(plain.Italic(true).String()),
		Strike:    Style(plain.Strikethrough(true).String()),
		Link:      Style(plain.Underline(true).String()),
		Code:      Style(code.String()),
		Heading:   Style(plain.Bold().Underline(true).String()),
		Found:     Style(plain.Bold().Underline(true).String()),
		G:         unicodeGlyphs,

		HeatHit: l.heat(green), HeatRead: l.heat(orange), HeatEvicted: l.heat(purple), HeatGuessed: l.heat(strong), HeatStill: l.heat(gray),
	}
	if ascii {
		t.G = ASCIIGlyphs
	}
	return t
}

// style is a colour of text: share of it, the rest of the background, as far as it can
// still be read.
func (l Look) style(t tint, share float64) ansi.Style {
	if !l.Few {
		return ansi.Style{}.ForegroundColor(l.legible(shade(lipgloss.Color(t.hex), l.Dark, share)))
	}
	switch {
	case l.Dark:
		return ansi.Style{}.ForegroundColor(t.dark)
	case t.plain:
		return ansi.Style{}
	}
	return ansi.Style{}.ForegroundColor(t.light)
}

// legible moves a colour away from the background until text in it can be read.
func (l Look) legible(c color.Color) color.Color {
	least := leastContrast
	if l.High {
		least = highContrast
	}
	const steps = 64
	for i := range steps {
		moved := shade(c, !l.Dark, 1-float64(i)/steps)
		if Contrast(moved, l.Dark) >= least {
			return moved
		}
	}
	return shade(c, !l.Dark, 0)
}

// Contrast is how far a colour stands out from black, or from white, as WCAG 2 reckons
// it: 1 not at all, 21 the most.
func Contrast(c color.Color, onBlack bool) float64 {
	r, g, b, _ := c.RGBA()
	linear := func(v uint32) float64 {
		s := float64(v>>8) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	light := 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
	if onBlack {
		return (light + 0.05) / 0.05
	}
	return 1.05 / (light + 0.05)
}
