package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// routeMark is how a route trace begins.
const routeMark = "# route_trace v1"

// RouteHead is what a route trace says of its model.
type RouteHead struct {
	Model, Arch string
	Experts     int     // of a layer
	Used        int     // of them, by a token
	Layers      []int   // numbers of the layers with routed experts, ascending
	ExpertBytes []int64 // logical bytes of an expert, by place in Layers
	SlotBytes   []int64 // what it took in the cache; 0 where that was not recorded
}

// RouteRow is one expert of one token in one layer.
type RouteRow struct {
	Turn, Phase, Step int   // phase 0 is the prompt, 1 the answer
	Place             int   // of the layer, in RouteHead.Layers
	Rank, Expert      int   // rank is the router's order
	Residency         int   // 0 missed, 1 hit, 2 first touch of what was read ahead; -1 not recorded
	TokenID           int32 // -1 where it was not recorded
	Predicted         int   // 0 no, 1 to 4 by a router so many layers early, 8 and 9 see the sink; -1 nothing was predicted
	Weight            float32
	Dropped           bool // it was routed to and left out: neither read nor looked up
}

// RouteRows reads a route trace row by row, in memory that does not grow with the
// file. Columns are found by name, so that a file may have more of them. An error
// names the line.
type RouteRows struct {
	RouteHead
	// Run is what the line before the rows of a run says of it, of the run read last;
	// nil where the file has no such lines. Passes counts the marks between passes that
	// begin in the layer in which the one before ended, Emptied how often the cache
	// was emptied.
	Run             map[string]string
	Passes, Emptied int

	lines
	column [columns]int
	place  map[int]int
}

// The columns that are needed, and those that are welcome.
const (
	colTurn = iota
	colPhase
	colStep
	colLayer
	colRank
	colExpert
	colWeight
	needed       // columns before it
	colResidency = needed + iota - 8
	colTokenID
	colPredicted
	colDropped
	columns
)

var columnNames = [columns]string{"turn", "phase", "step", "layer", "slot", "expert", "weight", "residency", "token_id", "predicted", "dropped"}

// maxRouteLine bounds a line of a route trace.
const maxRouteLine = 1 << 16

// mostCells bounds the columns of a trace.
const mostCells = 64

// NewRouteRows reads a trace up to its first row.
func NewRouteRows(from io.Reader) (*RouteRows, error) {
	r := &RouteRows{lines: lines{in: bufio.NewReaderSize(from, maxRouteLine)}, place: map[int]int{}}
	for {
		line, err := r.lines.next()
		if err == io.EOF && r.n == 0 {
			return nil, errors.New("it is empty")
		}
		if err == io.EOF {
			return nil, errors.New("it ends before the first route")
		}
		if err == nil {
			var done bool
			if done, err = r.preamble(string(line)); done && err == nil {
				return r, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", r.n, err)
		}
	}
}

// preamble takes a line before the rows; done is the line that names the columns.
func (r *RouteRows) preamble(s string) (done bool, err error) {
	switch {
	case r.n == 1:
		if !strings.HasPrefix(s, routeMark) {
			return false, errors.New("not a route trace: it should begin with " + routeMark)
		}
	case s == "":
	case strings.HasPrefix(s, "#"):
		return false, r.comment(s)
	default:
		return true, r.header(strings.Split(s, ","))
	}
	return false, nil
}

// comment reads the model's line and the layers'.
func (r *RouteRows) comment(s string) error {
	fields := keyValues(s)
	number := func(key string, most int64) (int64, error) {
		n, err := strconv.ParseInt(fields[key], 10, 64)
		if err != nil || n < 0 || n > most {
			return 0, fmt.Errorf("%s is %q, not a number up to %d", key, fields[key], most)
		}
		return n, nil
	}
	switch {
	case fields["n_expert"] != "":
		experts, err := number("n_expert", 1<<14)
		if err != nil {
			return err
		}
		used, err := number("n_expert_used", experts)
		if err != nil || used == 0 {
			return fmt.Errorf("n_expert_used is %q of %d", fields["n_expert_used"], experts)
		}
		r.Model, r.Arch, r.Experts, r.Used = fields["model"], fields["arch"], int(experts), int(used)
	case fields["layer"] != "":
		layer, err := number("layer", 1<<12)
		if err != nil {
			return err
		}
		if fields["expert_bytes"] == "" {
			return fmt.Errorf("layer %d has no expert_bytes: without them its experts would count for nothing", layer)
		}
		size, err := number("expert_bytes", 1<<40)
		if err != nil {
			return err
		}
		slot := int64(0)
		if fields["slot_bytes"] != "" {
			if slot, err = number("slot_bytes", 1<<40); err != nil {
				return err
			}
		}
		if n := len(r.Layers); n > 0 && r.Layers[n-1] >= int(layer) {
			return fmt.Errorf("layer %d after layer %d", layer, r.Layers[n-1])
		}
		r.place[int(layer)] = len(r.Layers)
		r.Layers, r.ExpertBytes, r.SlotBytes = append(r.Layers, int(layer)), append(r.ExpertBytes, size), append(r.SlotBytes, slot)
	}
	return nil
}

// keyValues returns what a comment says as key=value.
func keyValues(s string) map[string]string {
	fields := map[string]string{}
	for _, f := range strings.Fields(s) {
		if k, v, ok := strings.Cut(f, "="); ok {
			fields[k] = v
		}
	}
	return fields
}

func (r *RouteRows) header(names []string) error {
	if r.Used == 0 || len(r.Layers) == 0 {
		return errors.New("the lines that describe the model and its layers are missing")
	}
	if len(names) > mostCells {
		return fmt.Errorf("%d columns, at most %d are read", len(names), mostCells)
	}
	if err := once(names); err != nil {
		return err
	}
	for i, name := range columnNames {
		if r.column[i] = slices.Index(names, name); r.column[i] < 0 && i < needed {
			return fmt.Errorf("the column %s is missing", name)
		}
	}
	return nil
}

// Line returns the number of the line that was read last.
func (r *RouteRows) Line() int { return r.n }

// Next reads the next row; io.EOF is the end. A last line without an end, as a killed
// program leaves it, is the end too: its last number may lack digits.
func (r *RouteRows) Next(row *RouteRow) error {
	for {
		line, err := r.lines.next()
		if err == io.EOF {
			return io.EOF
		}
		if err == nil && len(line) == 0 {
			continue
		}
		if err == nil && line[0] == '#' {
			r.mark(string(line))
			continue
		}
		if err == nil {
			if r.cut {
				return io.EOF
			}
			err = r.row(line, row)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", r.n, err)
		}
		return nil
	}
}

// mark takes a comment between rows.
func (r *RouteRows) mark(s string) {
	switch f := keyValues(s); {
	case f["run"] != "":
		r.Run = f
		if f["emptied"] == "1" {
			r.Emptied++
		}
	case strings.HasPrefix(s, passMark):
		r.Passes++
	}
}

// row parses one line.
func (r *RouteRows) row(line []byte, row *RouteRow) error {
	var cells [mostCells][]byte
	n, from := 0, 0
	for i := 0; i <= len(line); i++ {
		if i == len(line) || line[i] == ',' {
			if n == len(cells) {
				return fmt.Errorf("more than %d cells", mostCells)
			}
			cells[n] = line[from:i]
			n++
			from = i + 1
		}
	}
	var v [columns]int
	for i, at := range r.column {
		if v[i] = -1; at < 0 || i == colWeight {
			continue
		}
		if at >= n {
			if i >= needed {
				continue
			}
			return fmt.Errorf("%d cells, the column %s is missing", n, columnNames[i])
		}
		if i >= needed && len(cells[at]) == 0 {
			continue
		}
		var ok bool
		if v[i], ok = parseInt(cells[at]); !ok {
			return fmt.Errorf("%s is %q", columnNames[i], cells[at])
		}
	}
	place, known := r.place[v[colLayer]]
	switch {
	case !known:
		return fmt.Errorf("layer %d was not described", v[colLayer])
	case v[colRank] < 0 || v[colRank] >= r.Used:
		return fmt.Errorf("slot %d of %d", v[colRank], r.Used)
	case v[colExpert] < 0 || v[colExpert] >= r.Experts:
		return fmt.Errorf("expert %d of %d", v[colExpert], r.Experts)
	case v[colPhase] != 0 && v[colPhase] != 1:
		return fmt.Errorf("phase %d", v[colPhase])
	case v[colTurn] < 0 || v[colStep] < 0:
		return fmt.Errorf("turn %d, step %d", v[colTurn], v[colStep])
	}
	at := r.column[colWeight]
	if at >= n {
		return fmt.Errorf("%d cells, the column weight is missing", n)
	}
	weight, ok := parseWeight(cells[at])
	if !ok {
		return fmt.Errorf("weight is %q", cells[at])
	}
	*row = RouteRow{Turn: v[colTurn], Phase: v[colPhase], Step: v[colStep], Place: place, Rank: v[colRank], Expert: v[colExpert],
		Residency: v[colResidency], TokenID: int32(v[colTokenID]), Predicted: v[colPredicted], Weight: weight, Dropped: v[colDropped] == 1}
	return nil
}

// parseInt reads a number of at most nine digits, which a route has no more of.
func parseInt(b []byte) (int, bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

// parseWeight reads a number such as 0.221297 without making a string of it, and
// others by the library.
func parseWeight(b []byte) (float32, bool) {
	whole, part, digits, point := 0, 0, 0, false
	for _, c := range b {
		switch {
		case c == '.' && !point:
			point = true
		case c < '0' || c > '9' || digits == 15:
			f, err := strconv.ParseFloat(string(b), 32)
			return float32(f), err == nil || math.IsNaN(f)
		case point:
			part = 10*part + int(c-'0')
			digits++
		default:
			whole = 10*whole + int(c-'0')
			digits++
		}
	}
	if digits == 0 {
		return 0, false
	}
	scale := 1.0
	for i := len(b) - 1; i >= 0 && b[i] != '.' && point; i-- {
		scale *= 10
	}
	return float32((float64(whole)*scale + float64(part)) / scale), true
}
