//go:build unix

package main

import (
	"fmt"
	"html"
	"image/color"
	"strings"

	uv "github.com/charmbracelet/ultraviolet"
	"github.com/charmbracelet/x/vt"
)

// Sizes of a cell and of the text in it, and the colours of a dark terminal.
const (
	cellW, cellH = 8.4, 17.0
	fontSize     = 14
	ground, ink  = "#171717", "#c4c4c4"
)

// svg draws a screen. Runs of cells that look alike are one text each, as long as their
// cells, so that columns stand where they belong whatever the font.
func svg(screen *vt.SafeEmulator, w, h int) string {
	var b strings.Builder
	width, height := float64(w)*cellW+20, float64(h)*cellH+16
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="%d" fill="%s">`+"\n", width, height, fontSize, ink)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" rx="6" fill="%s"/>`+"\n", ground)
	for y := range h {
		for x := 0; x < w; {
			first := screen.CellAt(x, y)
			style := uv.Style{}
			if first != nil {
				style = first.Style
			}
			from, run := x, ""
			for x < w {
				c := screen.CellAt(x, y)
				text, wide, st := " ", 1, uv.Style{}
				if c != nil {
					st = c.Style
					if c.Content != "" {
						text, wide = c.Content, max(c.Width, 1)
					}
				}
				if !st.Equal(&style) {
					break
				}
				run += text
				x += wide
			}
			span(&b, from, y, x-from, run, style)
		}
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// span draws cells of one style.
func span(b *strings.Builder, x, y, cells int, text string, st uv.Style) {
	fg, bg := hex(st.Fg, ink), hex(st.Bg, "")
	if st.Attrs&uv.AttrReverse != 0 {
		fg, bg = ground, ink
	}
	left, top, wide := 10+float64(x)*cellW, 8+float64(y)*cellH, float64(cells)*cellW
	if bg != "" {
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", left, top, wide, cellH, bg)
	}
	if strings.TrimSpace(text) == "" {
		return
	}
	more := ""
	if fg != ink {
		more += fmt.Sprintf(` fill="%s"`, fg)
	}
	if st.Attrs&uv.AttrBold != 0 {
		more += ` font-weight="bold"`
	}
	if st.Attrs&uv.AttrItalic != 0 {
		more += ` font-style="italic"`
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" textLength="%.1f" xml:space="preserve"%s>%s</text>`+"\n", left, top+cellH-4, wide, more, html.EscapeString(text))
}

// hex writes a colour; none is other.
func hex(c color.Color, none string) string {
	if c == nil {
		return none
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
