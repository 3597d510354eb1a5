package engine

import (
	"fmt"

	"bmoe/engine/backend"
	"bmoe/profile/trace"
)

// forcedRoute gives tokens the experts that a trace recorded. The prompt's last
// token takes the route of the trace's last prompt token, and so on backwards, over
// and over where the prompt is longer; what is decoded takes the trace's answer from
// its beginning. So a run whose prompt has the trace's length looks up what was
// looked up when it was recorded, and others soon do.
//
// Nothing that predicts may see more of it than of a router: tokens are given their
// experts layer by layer, when the router has run.
type forcedRoute struct {
	experts, layers int // of the trace
	used            int
	place           []int // by layer: its place in the trace; -1: none
	prompt, decoded []trace.Token
	start           int // position of the first decoded token of the run
}

// openRoute reads the trace, which also says how many experts a token gets.
func (s *Session) openRoute() error {
	path := s.cfg.ForceRoute
	if path == "" {
		return nil
	}
	r, err := trace.OpenRoute(path)
	if err != nil {
		return fmt.Errorf("route: %w", err)
	}
	refuse := func(format string, args ...any) error {
		return &backend.SettingError{Setting: "force-route", Value: path, Problem: fmt.Sprintf(format, args...)}
	}
	if len(r.Turns) != 1 || len(r.Turns[0].Prompt) == 0 || len(r.Turns[0].Decoded) == 0 {
		return refuse("the trace has %d turns; one with a prompt and an answer is needed", len(r.Turns))
	}
	if n := s.cfg.ExpertsUsed; n != 0 && n != r.Used {
		return refuse("the trace gives a token %d experts and {experts-used} says %d: leave that out", r.Used, n)
	}
	s.cfg.ExpertsUsed = r.Used
	s.forced = &forcedRoute{experts: r.Experts, layers: len(r.Layers), used: r.Used, prompt: r.Turns[0].Prompt, decoded: r.Turns[0].Decoded}
	return nil
}

// fitRoute holds the trace against the model.
func (s *Session) fitRoute() error {
	f := s.forced
	if f == nil {
		return nil
	}
	layout := s.arch.Info().Experts
	refuse := func(format string, args ...any) error {
		return &backend.SettingError{Setting: "force-route", Value: s.cfg.ForceRoute, Problem: fmt.Sprintf(format, args...)}
	}
	if layout.Experts != f.experts {
		return refuse("the trace is of %d experts a layer, the model has %d", f.experts, layout.Experts)
	}
	next := 0
	for _, projections := range layout.Layers {
		place := -1
		if len(projections) > 0 {
			place = next
			next++
		}
		f.place = append(f.place, place)
	}
	if next > f.layers {
		return refuse("the trace is of %d layers with experts, the model has %d", f.layers, next)
	}
	s.warnings = append(s.warnings, fmt.Sprintf("{force-route=%s}: a trace of %d prompt and %d decoded tokens takes the routers' place; the text means nothing",
		s.cfg.ForceRoute, len(f.prompt), len(f.decoded)))
	return nil
}

// begin is told where a run's decoding starts, and returns how many tokens it may
// have: the first comes from the prompt's logits, and the last needs no route.
func (f *forcedRoute) begin(start, limit int) int {
	f.start = start
	return min(limit, len(f.decoded)+1)
}

// force is a model's Compute.Force.
func (f *forcedRoute) force(layer, pos int, ids []int32, weights []float32) {
	var t *trace.Token
	if at := pos - f.start; at >= 0 {
		t = &f.decoded[min(at, len(f.decoded)-1)]
	} else {
		n := len(f.prompt)
		t = &f.prompt[(at%n+n)%n]
	}
	from := f.place[layer] * f.used
	if t.Experts[from] < 0 {
		return // the last layer of a prompt is recorded for its last token only
	}
	copy(ids, t.Experts[from:][:f.used])
	copy(weights, t.Weights[from:][:f.used])
}
