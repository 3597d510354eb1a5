package trace

import (
	"context"
	"strconv"
	"strings"
)

// PredictedNot is what Predicted says of an expert that no guess named; others have the
// numbers of their kind of guess.
const PredictedNot = 0

// passMark stands between two passes that do not show otherwise: a prompt's pieces
// in a model with a single layer of experts.
const passMark = "# pass"

// chunk is how many bytes of rows are gathered before they are written in the
// middle of a pass.
const chunk = 1 << 16

// routeColumns are the columns as they are written.
var routeColumns = []string{"turn", "phase", "step", "layer", "slot", "expert", "weight", "residency", "expert_bytes", "dropped", "token_id", "predicted"}

// RouteSink writes which experts each token was given: the file that RouteRows
// reads. Whoever has a run written down calls Begin once, Run before each run, Pass
// before each pass, Row for each expert and Flush after each pass.
type RouteSink struct {
	s     *sink
	head  RouteHead
	last  int  // place of the row before in this run; -1: none
	fresh bool // no row of this pass yet
}

// CreateRoute makes the file; see CreateCSV.
func CreateRoute(ctx context.Context, path string, failed func(error)) (*RouteSink, error) {
	s, err := create(ctx, "route trace", path, failed)
	if err != nil {
		return nil, err
	}
	return &RouteSink{s: s}, nil
}

// Begin writes the preamble. dense is the bytes of each layer's other weights, by
// place in h.Layers; layers counts those without experts too.
func (r *RouteSink) Begin(h RouteHead, layers int, dense []int64) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	r.head = h
	s.text(routeMark + "\n")
	s.pairs("", []Pair{{"model", h.Model}, {"arch", h.Arch}, {"n_layer", strconv.Itoa(layers)}, {"n_expert", strconv.Itoa(h.Experts)}, {"n_expert_used", strconv.Itoa(h.Used)}})
	for i, layer := range h.Layers {
		s.pairs("", []Pair{{"layer", strconv.Itoa(layer)}, {"expert_bytes", strconv.FormatInt(h.ExpertBytes[i], 10)},
			{"dense_bytes", strconv.FormatInt(dense[i], 10)}, {"slot_bytes", strconv.FormatInt(h.SlotBytes[i], 10)}})
	}
	s.text(strings.Join(routeColumns, ",") + "\n")
	s.flush()
}

// Run writes down the settings of a run that begins. emptied says that the cache was
// emptied before, so that a replay begins anew too.
func (r *RouteSink) Run(run int, emptied bool, settings []Pair) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.last = -1
	r.s.pairs("", append([]Pair{{"run", strconv.Itoa(run)}, {"emptied", bit(emptied)}}, settings...))
	r.s.flush()
}

// Pass begins a pass over some tokens.
func (r *RouteSink) Pass() { r.fresh = true }

// Row writes one expert of one token. bytes is what was read for it.
func (r *RouteSink) Row(row *RouteRow, bytes int64) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.fresh && row.Phase == 0 && row.Place == r.last {
		s.text(passMark + "\n")
	}
	r.fresh, r.last = false, row.Place
	s.numbers(row.Turn, row.Phase, row.Step, r.head.Layers[row.Place], row.Rank, row.Expert)
	s.line = strconv.AppendFloat(s.line, float64(row.Weight), 'g', 6, 32)
	s.text(",")
	s.known(row.Residency)
	s.text(",")
	s.number(bytes)
	s.text("," + bit(row.Dropped) + ",")
	s.number(int64(row.TokenID))
	s.text(",")
	s.known(row.Predicted)
	s.text("\n")
	if len(s.line) >= chunk {
		s.flush()
	}
}

// Flush writes what has been gathered.
func (r *RouteSink) Flush() { r.s.flushNow() }

// Close ends the file.
func (r *RouteSink) Close() error { return r.s.end() }

func bit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
