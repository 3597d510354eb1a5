package term

import (
	"image/color"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// HeatLevels is through how many shades a cell of a map cools down, the first the
// brightest.
const HeatLevels = 3

// Heat is how a cell of a map is drawn by what happened in it, brightest first: as a
// character, and as the ground under one.
type Heat struct{ On, Under [HeatLevels]Style }

// heat makes the shades of a colour. As a character each can be read; the ground has no
// text in it, so that it may fade.
func (l Look) heat(t tint) (h Heat) {
	for i, share := range []float64{1, 0.7, 0.45} {
		on := l.style(t, share)
		under := ansi.Style{}.BackgroundColor(shade(lipgloss.Color(t.hex), l.Dark, share))
		switch {
		case l.Few && l.Dark:
			under = ansi.Style{}.BackgroundColor(t.dark)
		case l.Few && !t.plain:
			under = ansi.Style{}.BackgroundColor(t.light)
		case l.Few:
			under = ansi.Style{}
		}
		if i == 0 {
			on = on.Bold()
		}
		h.On[i], h.Under[i] = Style(on.String()), Style(under.String())
	}
	return h
}

// shade mixes a colour with the background, which is black or white.
func shade(c color.Color, dark bool, share float64) color.Color {
	r, g, b, _ := c.RGBA()
	mix := func(v uint32) uint8 {
		ground := 255.
		if dark {
			ground = 0
		}
		return uint8(ground + (float64(v>>8)-ground)*share)
	}
	return color.RGBA{R: mix(r), G: mix(g), B: mix(b), A: 255}
}
