// Cells draws the cells of an experiment: a row for each variant with a dot for every
// run, hollow where it does not count, and a line at the median.
//
//	bmoe --ab 'io-threads=1,4' -p "..." --csv cells.csv
//	go run ./scripts/cells "Lanes" cells.csv > cells.svg
package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"bmoe/internal/stats"
	"bmoe/internal/units"
)

func main() {
	if err := draw(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cells:", err)
		os.Exit(1)
	}
}

func draw(args []string, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("want a title and a file of --ab --csv")
	}
	f, err := os.Open(args[1])
	if err != nil {
		return err
	}
	defer f.Close()
	variants, err := read(f)
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	_, err = io.WriteString(out, svg(args[0], variants))
	return err
}

// variant is a combination of settings and its runs' speeds, tokens a second.
type variant struct {
	name           string
	counted, other []float64
	simulated      bool
}

// read takes the cells of an experiment, by the names of their columns.
func read(r io.Reader) ([]*variant, error) {
	rows, err := csv.NewReader(r).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(rows) < 2 {
		return nil, errors.New("it has no cells")
	}
	at := map[string]int{}
	for _, name := range []string{"variant", "excluded", "decode_tps", "flags"} {
		if at[name] = slices.Index(rows[0], name); at[name] < 0 {
			return nil, fmt.Errorf("it has no column %s", name)
		}
	}
	var all []*variant
	for _, row := range rows[1:] {
		name, excluded := row[at["variant"]], row[at["excluded"]]
		speed, err := strconv.ParseFloat(row[at["decode_tps"]], 64)
		if excluded == "warm-up" || err != nil { // empty: not measured
			continue
		}
		i := slices.IndexFunc(all, func(v *variant) bool { return v.name == name })
		if i < 0 {
			i, all = len(all), append(all, &variant{name: name})
		}
		v := all[i]
		v.simulated = v.simulated || strings.Contains(row[at["flags"]], "simulated")
		if excluded == "" {
			v.counted = append(v.counted, speed)
		} else {
			v.other = append(v.other, speed)
		}
	}
	return all, nil
}

// Sizes of the picture.
const (
	rowH, left, wide, right = 26, 300, 460, 110
	ink, pale, accent       = "#333333", "#bbbbbb", "#0072B2"
)

func svg(title string, variants []*variant) string {
	most, simulated := 1e-9, false
	for _, v := range variants {
		simulated = simulated || v.simulated
		for _, x := range append(slices.Clone(v.counted), v.other...) {
			most = max(most, x)
		}
	}
	if simulated {
		title += " (SIMULATED)"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="13" fill="%s">`+"\n", left+wide+right, 44+rowH*len(variants), ink)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n"+`<text x="10" y="20" font-weight="bold">%s</text>`+"\n", html.EscapeString(title))
	x := func(v float64) float64 { return left + v/most*wide }
	for i, v := range variants {
		y := float64(44 + rowH*i)
		fmt.Fprintf(&b, `<text x="%d" y="%.0f" text-anchor="end">%s</text>`+"\n"+`<line x1="%d" y1="%.0f" x2="%d" y2="%.0f" stroke="%s"/>`+"\n", left-12, y+4, html.EscapeString(v.name), left, y, left+wide, y, pale)
		for _, s := range v.other {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.0f" r="4" fill="none" stroke="%s"/>`+"\n", x(s), y, pale)
		}
		for _, s := range v.counted {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.0f" r="4" fill="%s" fill-opacity="0.6"/>`+"\n", x(s), y, accent)
		}
		told := units.NotMeasured
		if len(v.counted) > 0 {
			m := stats.Median(v.counted)
			told = units.Sig(m) + " tok/s"
			fmt.Fprintf(&b, `<line x1="%.1f" y1="%.0f" x2="%.1f" y2="%.0f" stroke="%s" stroke-width="2"/>`+"\n", x(m), y-9, x(m), y+9, accent)
		}
		fmt.Fprintf(&b, `<text x="%d" y="%.0f">%s</text>`+"\n", left+wide+12, y+4, told)
	}
	b.WriteString("</svg>\n")
	return b.String()
}
