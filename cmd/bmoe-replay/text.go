package main

import (
	"fmt"
	"slices"
	"strings"

	"bmoe/internal/units"
	"bmoe/profile/replay"
	"bmoe/tui/term"
)

// text is the report for people.
func (r *report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d layers with %d experts, %d a token\none token needs %s MiB, all experts take %s\n", term.CleanLine(r.Model), r.Layers, r.Experts, r.Used,
		units.Mebibytes(r.TokenCycle*units.MiB), units.Mebibytes(r.AllExperts*units.MiB))
	switch {
	case r.Validation != nil:
		v := r.Validation
		word := "agrees"
		if !v.Agrees {
			word = "DIFFERS"
		}
		fmt.Fprintf(&b, "%s at %d MiB, prompt and answer: %.1f %% hits replayed, %.1f %% recorded: %s\n", v.Policy, v.BudgetMiB, v.Replayed, v.Recorded, word)
	case r.Analysis != nil:
		b.WriteString(analysisText(r.Analysis))
	default:
		r.table(&b)
		if len(r.budgets()) > 2 {
			b.WriteString("\n" + r.plot())
		}
	}
	return b.String()
}

func (r *report) budgets() []float64 {
	var out []float64
	for _, c := range r.Rows {
		if !slices.Contains(out, c.BudgetMiB) {
			out = append(out, c.BudgetMiB)
		}
	}
	return out
}

func (r *report) policies() []string {
	var out []string
	for _, c := range r.Rows {
		if !slices.Contains(out, c.Policy) {
			out = append(out, c.Policy)
		}
	}
	return out
}

// at returns the row of a policy at a budget.
func (r *report) at(policy string, budget float64) *row {
	for i := range r.Rows {
		if c := &r.Rows[i]; c.Policy == policy && c.BudgetMiB == budget {
			return c
		}
	}
	return nil
}

// table shows hit rates and bytes of the answers, a column a budget.
func (r *report) table(b *strings.Builder) {
	budgets := r.budgets()
	tokens := 0.0
	if n := len(r.Rows); n > 0 && r.Rows[0].Decode.Lookups > 0 {
		tokens = float64(r.Rows[0].Decode.Lookups) / float64(r.Layers*r.Used)
	}
	for _, part := range []struct {
		title string
		cell  func(*row) string
	}{
		{"hits of the answers' lookups, %", func(c *row) string { return units.Decimals(c.HitPct, 1) }},
		{"MiB read a decoded token", func(c *row) string {
			if tokens == 0 {
				return units.NotMeasured
			}
			return units.Decimals(c.ReadMiB/tokens, 1)
		}},
	} {
		fmt.Fprintf(b, "\n%-12s", "MiB")
		below := false
		for _, m := range budgets {
			mark := ""
			if m < r.TokenCycle {
				mark, below = "*", true
			}
			fmt.Fprintf(b, "%10s", units.Decimals(m, 0)+mark)
		}
		fmt.Fprintf(b, "   %s\n", part.title)
		for _, p := range r.policies() {
			fmt.Fprintf(b, "%-12s", p)
			for _, m := range budgets {
				fmt.Fprintf(b, "%10s", part.cell(r.at(p, m)))
			}
			b.WriteString("\n")
		}
		if below && part.title[0] == 'h' {
			b.WriteString("* below one token's experts: lru hardly ever hits there\n")
		}
	}
	if len(r.Rows) > 0 && r.Rows[0].Schedule != "" {
		fmt.Fprintf(b, "budgets: %s\n", r.Rows[0].Schedule)
	}
}

// The plot's size in characters.
const plotHeight, plotWidth = 16, 64

// plot draws the hit rates over the budgets, a letter a policy.
func (r *report) plot() string {
	budgets, policies := r.budgets(), r.policies()
	grid := make([][]byte, plotHeight)
	for i := range grid {
		grid[i] = []byte(strings.Repeat(" ", plotWidth))
	}
	most := slices.Max(budgets)
	column := func(m float64) int { return min(int(m/most*(plotWidth-1)), plotWidth-1) }
	if r.TokenCycle <= most {
		for y := range grid {
			grid[y][column(r.TokenCycle)] = ':'
		}
	}
	for i, p := range slices.Backward(policies) { // the first named lies on top
		letter := byte('a' + i)
		for j := range budgets {
			c := r.at(p, budgets[j])
			put(grid, column(c.BudgetMiB), c.HitPct, letter)
			if j == 0 {
				continue
			}
			from := r.at(p, budgets[j-1])
			for x := column(from.BudgetMiB) + 1; x < column(c.BudgetMiB); x++ {
				share := float64(x-column(from.BudgetMiB)) / float64(column(c.BudgetMiB)-column(from.BudgetMiB))
				put(grid, x, from.HitPct+share*(c.HitPct-from.HitPct), letter)
			}
		}
	}
	var b strings.Builder
	for y, line := range grid {
		label := "    "
		if y%5 == 0 {
			label = fmt.Sprintf("%3d ", 100-100*y/(plotHeight-1))
		}
		b.WriteString(label + "|" + strings.TrimRight(string(line), " ") + "\n")
	}
	b.WriteString("  % +" + strings.Repeat("-", plotWidth) + "\n")
	fmt.Fprintf(&b, "     0%*s MiB\n", plotWidth-2, units.Decimals(most, 0))
	var names []string
	for i, p := range policies {
		names = append(names, fmt.Sprintf("%c %s", 'a'+i, p))
	}
	b.WriteString("     " + strings.Join(names, "   ") + "   : one token's experts\n")
	return b.String()
}

func put(grid [][]byte, x int, pct float64, letter byte) {
	y := plotHeight - 1 - int(pct/100*float64(plotHeight-1)+0.5)
	grid[min(max(y, 0), plotHeight-1)][x] = letter
}

// analysisText words an analysis.
func analysisText(a *replay.Analysis) string {
	var b strings.Builder
	list := func(head string, names []string, values []float64, f func(float64) string) {
		fmt.Fprintf(&b, "%-44s", head)
		for i, n := range names {
			fmt.Fprintf(&b, "  %s: %s", n, f(values[i]))
		}
		b.WriteString("\n")
	}
	percent := func(v float64) string { return units.Decimals(100*v, 1) + " %" }
	fmt.Fprintf(&b, "%d decoded tokens\n", a.Tokens)
	list("experts also used so many tokens before", []string{"1", "2", "4", "8"}, a.Overlap[:], percent)
	list("an expert was used last so many tokens ago", replay.ReuseBounds[:], a.Reuse[:], percent)
	list("lookups of a layer's hottest experts", []string{"k", "2k", "4k"}, a.Hot[:], percent)
	list("experts of tokens in a row, in k", []string{"1", "2", "3", "4"}, a.Union[:], units.Fine)
	list("experts beside another of the token's", []string{"adjacent"}, []float64{a.Adjacent}, percent)
	least, most := slices.Min(a.Distinct), slices.Max(a.Distinct)
	fmt.Fprintf(&b, "%-44s  %d to %d a layer\n", "experts used at all", least, most)
	return b.String()
}
