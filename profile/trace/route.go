package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Route is a recorded route: which experts each token was given in each layer
// with routed experts.
type Route struct {
	RouteHead
	Turns []Turn
}

// Turn is a prompt and its answer.
type Turn struct{ Prompt, Decoded []Token }

// Token is the route of one token.
type Token struct {
	ID      int32     // -1 where it was not recorded
	Experts []int32   // [layers x used], in rank order; -1 for a prompt's token in a layer that was not computed for it
	Weights []float32 // likewise
}

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

// ReadRoute reads a route trace whole. An error names the line.
func ReadRoute(from io.Reader) (*Route, error) {
	rows, err := NewRouteRows(from)
	if err != nil {
		return nil, err
	}
	b := routeBuilder{route: &Route{RouteHead: rows.RouteHead}}
	for n := 0; ; n++ {
		var row RouteRow
		if err := rows.Next(&row); err == io.EOF {
			if n == 0 {
				return nil, errors.New("it ends before the first route")
			}
			return b.end()
		} else if err != nil {
			return nil, err
		}
		if err := b.row(&row); err != nil {
			return nil, fmt.Errorf("line %d: %w", rows.n, err)
		}
	}
}

// routeBuilder gathers rows into tokens.
type routeBuilder struct {
	route *Route
	turn  int            // that the last row was of
	step  map[[2]int]int // of that turn: index of a phase's step
}

// row takes one expert of one token.
func (b *routeBuilder) row(row *RouteRow) error {
	r := b.route
	if len(r.Turns) > 0 && row.Turn < b.turn {
		return fmt.Errorf("turn %d comes after turn %d: rows are missing their order", row.Turn, b.turn)
	}
	if len(r.Turns) == 0 || row.Turn != b.turn {
		r.Turns = append(r.Turns, Turn{})
		b.turn, b.step = row.Turn, map[[2]int]int{}
	}
	turn := &r.Turns[len(r.Turns)-1]
	tokens := &turn.Prompt
	if row.Phase == 1 {
		tokens = &turn.Decoded
	}
	key := [2]int{row.Phase, row.Step}
	at, seen := b.step[key]
	if !seen {
		if at = len(*tokens); at == maxSteps {
			return fmt.Errorf("more than %d tokens in a turn", maxSteps)
		}
		b.step[key] = at
		*tokens = append(*tokens, newToken(len(r.Layers)*r.Used, row.TokenID))
	}
	t := &(*tokens)[at]
	i := row.Place*r.Used + row.Rank
	if t.Experts[i] >= 0 {
		return fmt.Errorf("turn %d, step %d, layer %d, slot %d comes twice", row.Turn, row.Step, r.Layers[row.Place], row.Rank)
	}
	t.Experts[i], t.Weights[i] = int32(row.Expert), row.Weight
	return nil
}

func newToken(n int, id int32) Token {
	t := Token{ID: id, Experts: make([]int32, n), Weights: make([]float32, n)}
	for i := range t.Experts {
		t.Experts[i] = -1
	}
	return t
}

// end drops an answer's last token if it is unfinished, as a run that was stopped
// leaves it, and refuses other holes. In a prompt a layer may have been computed for
// some of the tokens only: llama.cpp does without what the last layer makes of all
// but the last.
func (b *routeBuilder) end() (*Route, error) {
	r := b.route
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
