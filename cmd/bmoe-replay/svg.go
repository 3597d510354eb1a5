package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"bmoe/internal/units"
)

// colours are Okabe and Ito's, which colour-blind people can tell apart.
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999", "#f0e442"}

// svg draws the hit rates over the budgets.
func (r *report) svg(w io.Writer) error {
	const width, height, left, bottom, top, right = 720, 420, 56, 48, 24, 120
	budgets := r.budgets()
	if len(budgets) == 0 {
		return fmt.Errorf("there are no budgets to draw")
	}
	most := slices.Max(budgets)
	x := func(m float64) float64 { return left + m/most*(width-left-right) }
	y := func(pct float64) float64 { return height - bottom - pct/100*(height-bottom-top) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="#fff"/>`+"\n", width, height)
	for pct := 0.0; pct <= 100; pct += 20 {
		fmt.Fprintf(&b, `<line x1="%d" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.0f %%</text>`+"\n",
			left, x(most), y(pct), y(pct), left-6, y(pct)+4, pct)
	}
	for i := range 5 {
		m := most * float64(i) / 4
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x(m), height-bottom+18, units.Decimals(m, 0))
	}
	fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">MiB of the cache</text>`+"\n", x(most/2), height-10)
	if r.TokenCycle <= most {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="#666" stroke-dasharray="4 4"/><text x="%.1f" y="%d">one token</text>`+"\n",
			x(r.TokenCycle), x(r.TokenCycle), y(0), y(100), x(r.TokenCycle)+4, top-8)
	}
	for i, p := range r.policies() {
		colour := colours[i%len(colours)]
		var points []string
		for _, m := range budgets {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(m), y(r.at(p, m).HitPct)))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%.1f" y="%d" fill="%s">%s</text>`+"\n",
			strings.Join(points, " "), colour, x(most)+10, top+16*(i+1), colour, p)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}
