package tui

import (
	"fmt"
	"strings"
)

// lanesPane shows what each reader gets from the drive.
type lanesPane struct{ paneBase }

func (p *lanesPane) Title(w int) string {
	th, l := p.th, &p.s.Lanes
	if l.Engine == "" && !p.blank() {
		return p.titled(w, "3 lanes", []part{th.p(0, th.dim, "nothing is streamed")}, nil)
	}
	st := style("")
	if l.Mode != "direct" {
		st = th.read
	}
	of := ""
	if p.of > 0 {
		of = fmt.Sprintf("run %d: ", p.of)
	}
	parts := func(mode string) []part {
		return []part{th.p(0, st, fmt.Sprintf(mode, l.N, cleanLine(l.Mode))), th.kv(1, of+"p50", maybe(l.P50, ms, "")), th.kv(1, "p99", maybe(l.P99, ms, " ms"))}
	}
	return p.titled(w, "3 lanes", parts("%d x %s"), parts("%dx %s"))
}

func (p *lanesPane) Rows() (want, most int) {
	if p.s == nil || p.s.Lanes.Engine == "" {
		return 1, 1
	}
	n := (p.s.Lanes.N + p.columns() - 1) / p.columns()
	if p.s.Lanes.Reason != "" {
		n++
	}
	return min(n, 4) + 1, n + 2 // the last of them only where there is plenty of room
}

// laneCell is the least width of a lane's cell: number, bar, rate.
const laneCell = 10

// columns returns how many lanes stand side by side, so that the rows are as
// few and as even as the width allows.
func (p *lanesPane) columns() int {
	n := max(p.s.Lanes.N, 1)
	most := min(max((p.w+2)/(laneCell+2), 1), 8)
	rows := (n + most - 1) / most
	return (n + rows - 1) / rows
}

func (p *lanesPane) Render() []string {
	if p.blank() {
		return p.fill(nil)
	}
	th, l := p.th, &p.s.Lanes
	if l.Engine == "" {
		return p.fill([]string{th.row(p.w, 2, th.p(0, "", "reads are page faults of the mapping, not lanes"))})
	}
	var rows []string
	wake, engine := th.kv(2, "wake p50", maybe(l.Wake50, ms, " ms")), th.kv(3, "engine", cleanLine(l.Engine))
	if p.of > 0 { // the bars would be of lanes that are gone
		rows = append(rows,
			th.row(p.w, 2, th.p(0, th.dim, fmt.Sprintf("settings changed after run %d, which had", p.of))),
			th.row(p.w, 2, th.kv(0, "run", maybe(l.RateRun, inMiBs, "")), wake, engine))
	} else {
		rows = p.bars()
		rows = rows[:min(len(rows), max(p.h-1, 1))] // with more lanes than room, the sum stays
		rows = append(rows, th.row(p.w, 2,
			th.kv(0, "now", maybe(l.Rate, inMiBs, "")),
			th.kv(0, "run", maybe(l.RateRun, inMiBs, "")),
			th.kv(1, "queue", fmt.Sprint(l.Queue)),
			wake,
			th.kv(1, "overlap", onOff(l.Overlap)),
			engine))
	}
	if l.Reason != "" {
		rows = append(rows, th.row(p.w, 2, th.p(0, th.read, cleanLine(l.Reason))))
	}
	busy := ""
	if l.Reads > 0 {
		busy = ms(l.BusyNanos/l.Reads) + " ms"
	} else {
		busy = notMeasured
	}
	rows = append(rows, th.row(p.w, 2,
		th.kv(0, "reads", fmt.Sprint(l.Reads)),
		th.kv(1, "windows", inMiB(float64(l.Bytes))+" MiB"),
		th.kv(1, "mean read", busy)))
	return p.fill(rows)
}

// bars draws the lanes side by side, as many in a row as fit; the bars share
// one scale.
func (p *lanesPane) bars() []string {
	th, l := p.th, &p.s.Lanes
	n := min(l.N, len(l.Lane))
	var most float64
	for i := range n {
		most = max(most, l.Lane[i].Rate.Value)
	}
	cols := p.columns()
	cell := (p.w+2)/cols - 2
	var rows []string
	digits := len(fmt.Sprint(n))
	for from := 0; from < n; from += cols {
		var b strings.Builder
		used := 0
		for i := from; i < min(from+cols, n); i++ {
			rate := l.Lane[i].Rate
			share := 0.0
			if most > 0 {
				share = rate.Value / most
			}
			text := fmt.Sprintf("%4s", maybe(rate, func(v float64) string { return fmt.Sprintf("%.0f", v/mib) }, ""))
			if cell >= 2*laneCell {
				text += " MiB/s"
			}
			bar := th.bar(share, cell-len(text)-digits-2, th.read)
			if i > from {
				b.WriteString("  ")
				used += 2
			}
			b.WriteString(th.dim.on(fmt.Sprintf("%*d", digits, i+1)) + " " + bar.s + " " + text)
			used += digits + 1 + bar.w + 1 + len(text)
		}
		rows = append(rows, b.String()+blanks(p.w-used))
	}
	return rows
}
