package iobench

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"bmoe/flashio"
	"bmoe/internal/cli"
	"bmoe/internal/units"
)

// made builds a campaign's result from rates per cell, without measuring.
type made struct{ c campaign }

func newMade(table bool) *made {
	return &made{campaign{opt: &options{table: table, repeats: 3, duration: time.Second}, subject: &subject{name: "m.gguf", size: 1 << 30, align: 4096}}}
}

var direct = flashio.Mode{Direct: true}

// add adds a cell with one measurement per rate in MiB/s.
func (m *made) add(c cell, mode flashio.Mode, rates ...float64) []*measurement {
	c.engine, c.sliceKiB, c.scatter = "lanes", max(c.sliceKiB, 576), 1
	c.variable = c.label()
	m.c.cells = append(m.c.cells, &c)
	var own []*measurement
	for _, rate := range rates {
		one := &measurement{cell: &c, mode: mode, engine: "lanes", length: 576 << 10, seconds: 2, bytes: rate * 2 * (1 << 20)}
		own = append(own, one)
	}
	m.c.measurements = append(m.c.measurements, own...)
	return own
}

func TestVerdictAnswersYesOrNothing(t *testing.T) {
	mapped, reopened := cell{lanes: 4, mapping: mapAfter}, cell{lanes: 4, mapping: mapAfter, reopen: true}
	for _, c := range []struct {
		name                   string
		mode                   flashio.Mode
		base, mapped, reopened []float64
		verdict, silence       string
	}{
		{"the laptop of the mission", direct, []float64{2295, 2665, 2400}, []float64{895, 930, 910}, []float64{2402, 2390, 2410},
			"costs this host 2.6x at 4 lanes: run with --release-mmap", ""},
		{"a cost of a quarter", direct, []float64{1240, 1250, 1260}, []float64{1000, 1005, 995}, []float64{1230, 1220, 1250},
			"costs this host 1.2x at 4 lanes", ""},
		{"no cost", direct, []float64{1200, 1250, 1300}, []float64{1190, 1260, 1280}, []float64{1210, 1240, 1270},
			"", "cannot rule one out"},
		{"a mapping that is quicker", direct, []float64{1000, 1000, 1000}, []float64{2000, 2000, 2000}, []float64{1000, 1000, 1000},
			"", "cannot rule one out"},
		{"a quick first row alone, which the control gives away", direct, []float64{2000, 2000, 2000}, []float64{1000, 1000, 1000}, []float64{1010, 990, 1000},
			"", "cannot rule one out"},
		{"so much noise that the intervals overlap", direct, []float64{700, 1300, 2600}, []float64{500, 1000, 1500}, []float64{900, 1300, 2000},
			"", "cannot rule one out"},
		{"buffered reads", flashio.Mode{Reason: "refused"}, []float64{4000, 4000, 4000}, []float64{1000, 1000, 1000}, []float64{4000, 4000, 4000},
			"", "reads are not direct here"},
		{"simulated", flashio.Mode{Direct: true, Simulated: true}, []float64{2000, 2000, 2000}, []float64{900, 900, 900}, []float64{2000, 2000, 2000},
			"[SIMULATED host]", ""},
		{"the reopened row is missing", direct, []float64{2000, 2000, 2000}, []float64{900, 900, 900}, nil,
			"", "it takes the bare drive"},
	} {
		m := newMade(true)
		m.add(cell{lanes: 1}, c.mode, 900, 900, 900)
		m.add(cell{lanes: 4}, c.mode, c.base...)
		m.add(cell{lanes: 1, mapping: mapAfter}, c.mode, 100, 100, 100) // never compared with 4 lanes
		m.add(mapped, c.mode, c.mapped...)
		m.add(reopened, c.mode, c.reopened...)
		s := m.c.summarise()
		if (c.verdict == "") != (s.verdict == "") || !strings.Contains(s.verdict, c.verdict) {
			t.Errorf("%s: verdict %q, want %q", c.name, s.verdict, c.verdict)
		}
		if (c.silence == "") != (s.silence == "") || !strings.Contains(s.silence, c.silence) {
			t.Errorf("%s: silence %q, want %q", c.name, s.silence, c.silence)
		}
	}
}

func TestVerdictNeedsTwoLanes(t *testing.T) {
	m := newMade(true)
	m.add(cell{lanes: 1}, direct, 2000, 2000, 2000)
	m.add(cell{lanes: 1, mapping: mapAfter}, direct, 900, 900, 900)
	m.add(cell{lanes: 1, mapping: mapAfter, reopen: true}, direct, 2000, 2000, 2000)
	if s := m.c.summarise(); s.verdict != "" {
		t.Errorf("a verdict from one lane: %q", s.verdict)
	}
}

func TestPeakOverLanes(t *testing.T) {
	m := newMade(false)
	for lanes, rate := range map[int]float64{1: 900, 2: 1750, 4: 1810, 8: 1830} {
		m.add(cell{lanes: lanes}, direct, rate)
	}
	s := m.c.summarise()
	if len(s.peaks) != 1 || s.peaks[0].lanes != 8 || s.peaks[0].rate != 1830 {
		t.Fatalf("%+v", s.peaks)
	}
	if text := s.peaks[0].String(); !strings.HasPrefix(text, "peak 1830 MiB/s at 8 lanes  (") {
		t.Error(text)
	}
}

func TestPeaksAreKeptApartBySize(t *testing.T) {
	m := newMade(false)
	m.add(cell{lanes: 2}, direct, 500)
	for _, one := range m.add(cell{lanes: 1, sliceKiB: 4096}, direct, 900) {
		one.length = 4096 << 10
	}
	if s := m.c.summarise(); len(s.peaks) != 2 || s.peaks[0].rate != 500 || s.peaks[1].rate != 900 {
		t.Errorf("%+v", s.peaks)
	}
}

func TestRowsCarryTheirCaveats(t *testing.T) {
	m := newMade(false)
	bytesOf := func(v int64) *int64 { return &v }
	contended := m.add(cell{lanes: 2}, direct, 500)
	contended[0].foreign = bytesOf(100 << 20) // 50 MiB/s
	quiet := m.add(cell{lanes: 1}, direct, 500)
	quiet[0].foreign = bytesOf(6 << 20) // 3 MiB/s
	slow := m.add(cell{lanes: 8}, direct, 10)
	slow[0].foreign = bytesOf(7 << 20) // 3.5 MiB/s, a third of what was read, and yet only a log
	holes := m.add(cell{lanes: 4}, direct, 500)
	holes[0].fromDrive = bytesOf(100 << 20)
	m.add(cell{lanes: 4, buffered: true}, flashio.Mode{Reason: "turned off"}, 3000)
	m.add(cell{lanes: 4, buffered: true, mapping: mapAfter}, flashio.Mode{Reason: "turned off"}, 3000)
	m.add(cell{lanes: 16}, flashio.Mode{Reason: "tmpfs keeps the file in memory"}, 9000)
	wants := []string{"CONTENDED: others used the drive", "", "", "the drive served only 10% of it", "the page cache serves", "prices neither", "fell back to BUFFERED: tmpfs"}
	s := m.c.summarise()
	for i, want := range wants {
		if got := strings.Join(s.rows[i].notes, "; "); (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("row %d: %q, want %q", i, got, want)
		}
	}
	if !s.contended || s.foreignMiBs != 50 || !s.rows[0].contended || s.rows[1].contended {
		t.Error("contention is not where it was")
	}
}

// TestUnknownIsNeverZero writes a row of which the host told nothing.
func TestUnknownIsNeverZero(t *testing.T) {
	m := newMade(true)
	gone := m.add(cell{lanes: 4, mapping: mapSectionOnly}, flashio.Mode{}, 1)
	gone[0].unavailable, gone[0].bytes, gone[0].seconds, gone[0].length = "not available: no section", 0, 0, 0
	m.add(cell{lanes: 4}, direct, 1000)
	s := m.c.summarise()
	var text bytes.Buffer
	r := newTextReport(cli.NewOutput(&text), &m.c)
	if err := r.end(s); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(text.String(), "\n")
	if strings.Count(line, units.NotMeasured) < 7 || strings.Contains(line, " 0") || !strings.HasSuffix(line, "[1]") {
		t.Errorf("%q", line)
	}
	text.Reset()
	if err := (&jsonReport{to: cli.NewOutput(&text)}).end(s); err != nil {
		t.Fatal(err)
	}
	var result struct {
		Rows []map[string]any
		Peak map[string]any
	}
	if err := json.Unmarshal(text.Bytes(), &result); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"mib_s", "mean_ms", "p50_ms", "p99_ms", "reads", "mode", "read_kb", "cpu_ms_per_gib", "foreign_mib_s", "from_drive_pct"} {
		if v, there := result.Rows[0][key]; v != nil || !there {
			t.Errorf("%s of a row that was not measured is %v (there: %v)", key, v, there)
		}
	}
	if result.Rows[1]["mib_s"] != 1000.0 || result.Peak["mib_s"] != 1000.0 {
		t.Errorf("%v, peak %v", result.Rows[1]["mib_s"], result.Peak)
	}
	if v := result.Rows[1]["foreign_mib_s"]; v != nil {
		t.Errorf("foreign I/O is %v where the drive was not watched", v)
	}
}

func TestMediansAndRatios(t *testing.T) {
	m := newMade(true)
	m.add(cell{lanes: 4}, direct, 1000, 3000, 2000)
	m.add(cell{lanes: 4, fresh: true}, direct, 500, 1000, 1500)
	m.add(cell{lanes: 4, sliceKiB: 572, noRound: true}, direct, 4000)
	s := m.c.summarise()
	if s.rows[0].rate != 2000 || !math.IsNaN(s.rows[0].ratio) || s.rows[1].ratio != 0.5 || s.rows[2].ratio != 2 {
		t.Errorf("%v %v %v %v", s.rows[0].rate, s.rows[0].ratio, s.rows[1].ratio, s.rows[2].ratio)
	}
	sweep := newMade(false)
	sweep.add(cell{lanes: 4}, direct, 1000)
	if r := sweep.c.summarise(); r.silence != "" || r.verdict != "" {
		t.Error("a sweep has no verdict")
	}
}

func TestOrderSpreadsCellsOverTheRun(t *testing.T) {
	c := campaign{opt: &options{repeats: 1, seed: 1}, cells: make([]*cell, 10)}
	for i, at := range c.order(0) {
		if i != at {
			t.Fatal("a single pass is not in the listed order")
		}
	}
	c.opt.repeats = 3
	first, second := c.order(0), c.order(1)
	same := 0
	for i := range first {
		if first[i] == second[i] {
			same++
		}
	}
	if same == len(first) {
		t.Error("two repeats run in the same order")
	}
}
