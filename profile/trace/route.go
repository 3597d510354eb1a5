package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Route is a recorded route: which experts each token was given in each layer
// with routed experts.
type Route struct {
	Model, Arch string
	Experts     int     // of a layer
	Used        int     // of them, by a token
	Layers      []int   // numbers of the layers with routed experts, ascending
	ExpertBytes []int64 // logical bytes of an expert, by place in Layers
	SlotBytes   []int64 // what it took in the cache; 0 where that was not recorded
	Turns       []Turn
}

// Turn is a prompt and its answer.
type Turn struct{ Prompt, Decoded []Token }

// Token is the route of one token.
type Token struct {
	ID      int32     // -1 where it was not recorded
	Experts []int32   // [layers x used], in rank order; -1 for a prompt's token in a layer that was not computed for it
	Weights []float32 // likewise
}

// maxRouteLine bounds a line of a route trace.
const maxRouteLine = 1 << 16

// maxSteps bounds the tokens of a turn.
const maxSteps = 1 << 20

// OpenRoute reads a route trace.
func OpenRoute(path string) (*Route, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := ReadRoute(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// ReadRoute reads a route trace. Columns are found by name, so that a file may
// have more of them. An error names the line.
func ReadRoute(from io.Reader) (*Route, error) {
	p := routeParser{route: &Route{}, place: map[int]int{}}
	in := bufio.NewScanner(from)
	in.Buffer(nil, maxRouteLine)
	n := 0
	for in.Scan() {
		n++
		if err := p.line(strings.TrimRight(in.Text(), "\r")); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	return p.end()
}

// The columns that are needed, and one that is welcome.
const (
	colTurn = iota
	colPhase
	colStep
	colLayer
	colRank
	colExpert
	colWeight
	colTokenID
	columns
)

var columnNames = [columns]string{"turn", "phase", "step", "layer", "slot", "expert", "weight", "token_id"}

type routeParser struct {
	route  *Route
	began  bool
	column [columns]int
	place  map[int]int // by layer: its place in Layers
	header bool
	turn   int            // that the last row was of
	step   map[[2]int]int // of that turn: index of a phase's step
}

func (p *routeParser) line(s string) error {
	switch {
	case !p.began:
		if !strings.HasPrefix(s, "# route_trace v1") {
			return errors.New("not a route trace: it should begin with # route_trace v1")
		}
		p.began = true
	case s == "":
	case strings.HasPrefix(s, "#"):
		return p.comment(s)
	case !p.header:
		return p.columns(strings.Split(s, ","))
	default:
		return p.row(strings.Split(s, ","))
	}
	return nil
}

// comment reads the model's line and the layers'.
func (p *routeParser) comment(s string) error {
	fields := map[string]string{}
	for _, f := range strings.Fields(s) {
		if k, v, ok := strings.Cut(f, "="); ok {
			fields[k] = v
		}
	}
	number := func(key string, most int64) (int64, error) {
		n, err := strconv.ParseInt(fields[key], 10, 64)
		if err != nil || n < 0 || n > most {
			return 0, fmt.Errorf("%s is %q, not a number up to %d", key, fields[key], most)
		}
		return n, nil
	}
	r := p.route
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
		bytes, err := number("expert_bytes", 1<<40)
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
		p.place[int(layer)] = len(r.Layers)
		r.Layers, r.ExpertBytes, r.SlotBytes = append(r.Layers, int(layer)), append(r.ExpertBytes, bytes), append(r.SlotBytes, slot)
	}
	return nil
}

func (p *routeParser) columns(names []string) error {
	if p.route.Used == 0 || len(p.route.Layers) == 0 {
		return errors.New("the lines that describe the model and its layers are missing")
	}
	for i, name := range columnNames {
		if p.column[i] = slices.Index(names, name); p.column[i] < 0 && i != colTokenID {
			return fmt.Errorf("the column %s is missing", name)
		}
	}
	p.header = true
	return nil
}

// row reads one expert of one token.
func (p *routeParser) row(cells []string) error {
	var v [columns]int
	for i, at := range p.column {
		if v[i] = -1; at < 0 || i == colWeight {
			continue
		}
		if at >= len(cells) {
			return fmt.Errorf("%d cells, the column %s is missing", len(cells), columnNames[i])
		}
		if i == colTokenID && cells[at] == "" {
			continue
		}
		n, err := strconv.ParseInt(cells[at], 10, 32)
		if err != nil {
			return fmt.Errorf("%s is %q", columnNames[i], cells[at])
		}
		v[i] = int(n)
	}
	r := p.route
	place, known := p.place[v[colLayer]]
	switch {
	case !known:
		return fmt.Errorf("layer %d was not described", v[colLayer])
	case v[colRank] < 0 || v[colRank] >= r.Used:
		return fmt.Errorf("slot %d of %d", v[colRank], r.Used)
	case v[colExpert] < 0 || v[colExpert] >= r.Experts:
		return fmt.Errorf("expert %d of %d", v[colExpert], r.Experts)
	case v[colPhase] != 0 && v[colPhase] != 1:
		return fmt.Errorf("phase %d", v[colPhase])
	}
	weight, err := strconv.ParseFloat(cells[p.column[colWeight]], 32)
	if err != nil {
		return fmt.Errorf("weight is %q", cells[p.column[colWeight]])
	}
	if len(r.Turns) == 0 || v[colTurn] != p.turn {
		r.Turns = append(r.Turns, Turn{})
		p.turn, p.step = v[colTurn], map[[2]int]int{}
	}
	turn := &r.Turns[len(r.Turns)-1]
	tokens := &turn.Prompt
	if v[colPhase] == 1 {
		tokens = &turn.Decoded
	}
	key := [2]int{v[colPhase], v[colStep]}
	at, seen := p.step[key]
	if !seen {
		if at = len(*tokens); at == maxSteps {
			return fmt.Errorf("more than %d tokens in a turn", maxSteps)
		}
		p.step[key] = at
		*tokens = append(*tokens, newToken(len(r.Layers)*r.Used, v[colTokenID]))
	}
	t := &(*tokens)[at]
	i := place*r.Used + v[colRank]
	if t.Experts[i] >= 0 {
		return fmt.Errorf("turn %d, step %d, layer %d, slot %d comes twice", v[colTurn], v[colStep], v[colLayer], v[colRank])
	}
	t.Experts[i], t.Weights[i] = int32(v[colExpert]), float32(weight)
	return nil
}

func newToken(n, id int) Token {
	t := Token{ID: int32(id), Experts: make([]int32, n), Weights: make([]float32, n)}
	for i := range t.Experts {
		t.Experts[i] = -1
	}
	return t
}

// end drops an answer's last token if it is unfinished, as a run that was stopped
// leaves it, and refuses other holes. In a prompt a layer may have been computed for
// some of the tokens only: llama.cpp does without what the last layer makes of all
// but the last.
func (p *routeParser) end() (*Route, error) {
	if !p.header {
		return nil, errors.New("it ends before the first route")
	}
	r := p.route
	for i := range r.Turns {
		t := &r.Turns[i]
		if n := len(t.Decoded); n > 0 && slices.Contains(t.Decoded[n-1].Experts, -1) {
			t.Decoded = t.Decoded[:n-1]
		}
		for j := range t.Decoded {
			if slices.Contains(t.Decoded[j].Experts, -1) {
				return nil, fmt.Errorf("turn %d: decoded token %d has no expert in some layer", i, j)
			}
		}
		for j := range t.Prompt {
			for layer := range r.Layers {
				ranks := t.Prompt[j].Experts[layer*r.Used:][:r.Used]
				if ranks[0] >= 0 == slices.Contains(ranks, -1) {
					return nil, fmt.Errorf("turn %d: prompt token %d has only some of its experts in layer %d", i, j, r.Layers[layer])
				}
			}
		}
	}
	return r, nil
}
