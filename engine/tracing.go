package engine

import (
	"strconv"
	"strings"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/model"
	"bmoe/engine/pool"
	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/host"
	"bmoe/profile"
	"bmoe/profile/trace"
)

// Traces are files in which a session's passes are written down in detail; nil: not
// asked for. Whoever made them closes them.
type Traces struct {
	Route   *trace.RouteSink
	IO      *trace.IOSink
	Compute *trace.ComputeSink
}

// tracing feeds the traces. It is a session's observer, and hears of passes, routes
// and reads beside. Its methods are for the goroutine that generates.
type tracing struct {
	Traces
	session *Session
	place   []int // by layer: among those with routed experts

	run       int // from 0
	promptEnd int // the position of the first token that is decoded
	decode    bool
	at        int // position of the pass's first token
	ids       []int32

	batches int64
	seen    []int64 // by expert: the batch that touched it last

	seq    int   // of the pass's next step
	since  int64 // when it began
	faults profile.Maybe[int64]
	times  pool.Times // then
	usage  host.Sample
}

// Trace has every run from now on written down. It is called once, between runs.
func (s *Session) Trace(t Traces) {
	if t == (Traces{}) {
		return
	}
	w := &tracing{Traces: t, session: s}
	s.tracing = w
	s.meter.rec.Update(func(live *profile.Snapshot) { live.Traced = true })
	s.Observe(w)
	h := s.routeHead()
	w.place = make([]int, s.arch.Info().Layers)
	for i, layer := range h.Layers {
		w.place[layer] = i
	}
	hears := &model.Observer{}
	if t.Route != nil {
		t.Route.Begin(h, s.arch.Info().Layers, s.denseBytes(h.Layers))
		hears.Route = w.route
		w.seen = make([]int64, h.Experts)
		if s.streamer != nil {
			s.streamer.Annotate(true)
		}
	}
	about := []trace.Pair{{Key: "model", Value: h.Model}, {Key: "arch", Value: h.Arch}, {Key: "n_layer", Value: strconv.Itoa(s.arch.Info().Layers)}}
	if t.IO != nil {
		t.IO.Begin(about)
		if s.streamer != nil {
			s.streamer.OnRead = w.read
		}
	}
	if t.Compute != nil {
		t.Compute.Begin(about)
		hears.Step = w.step
	}
	s.compute.Watch(hears)
}

// routeHead describes the model for a route trace.
func (s *Session) routeHead() trace.RouteHead {
	info := s.arch.Info()
	h := trace.RouteHead{Model: s.modelName(), Arch: info.Arch, Experts: info.Experts.Experts, Used: info.Experts.Used}
	for layer, b := range s.shape.Bytes {
		if b > 0 {
			h.Layers, h.ExpertBytes, h.SlotBytes = append(h.Layers, layer), append(h.ExpertBytes, b), append(h.SlotBytes, s.shape.Slots[layer])
		}
	}
	return h
}

// denseBytes returns the bytes of some layers' weights that are no routed experts.
func (s *Session) denseBytes(layers []int) []int64 {
	of := map[string]int64{}
	for _, w := range s.registry.Weights {
		if rest, ok := strings.CutPrefix(w.Name, "blk."); ok && !w.Streamed {
			layer, _, _ := strings.Cut(rest, ".")
			of[layer] += w.Range.Size
		}
	}
	out := make([]int64, len(layers))
	for i, layer := range layers {
		out[i] = of[strconv.Itoa(layer)]
	}
	return out
}

// Began implements profile.Observer.
func (t *tracing) Began(start *profile.Start, _ *profile.Snapshot) {
	t.run, t.promptEnd = start.Run-1, start.Base+start.Prompt
	if t.Route != nil {
		// Counters begin anew when the cache is emptied.
		emptied := t.session.streamer != nil && t.session.streamer.Stats().Lookups == 0
		t.Route.Run(start.Run, emptied, SettingPairs(t.session))
	}
}

// Token implements profile.Observer.
func (t *tracing) Token(*profile.Record) {}

// Ended implements profile.Observer.
func (t *tracing) Ended(*profile.Result) { t.flush() }

// begin is told of a pass over ids, of which the first is at a position.
func (t *tracing) begin(ids []int32, at int) {
	t.ids, t.at, t.decode = ids, at, at >= t.promptEnd
	if t.Route != nil {
		t.Route.Pass()
	}
	if t.IO != nil {
		t.IO.Pass(t.where())
	}
	if t.Compute != nil {
		t.session.compute.Pool.Times(&t.times)
		t.seq, t.faults, t.since = 0, t.majorFaults(), clock.Now()
	}
}

// flush writes down what the pass has left to write.
func (t *tracing) flush() {
	if t.Route != nil {
		t.Route.Flush()
	}
	if t.IO != nil {
		t.IO.Flush()
	}
	if t.Compute != nil {
		t.Compute.Flush()
	}
}

// where is what the rows of the pass have in common.
func (t *tracing) where() trace.At { return trace.At{Turn: t.run, Phase: t.phase(), Step: t.at} }

// phase is 0 in a prompt and 1 in an answer.
func (t *tracing) phase() int {
	if t.decode {
		return 1
	}
	return 0
}

// route writes down a layer's routes; see model.Compute.
func (t *tracing) route(layer, tokens int, ids []int32, weights []float32) {
	s := t.session
	t.batches++
	k := len(ids) / tokens
	kept := len(ids)
	if c := s.compute; tokens == 1 && c.Thrift != nil {
		kept = c.Thrift.Kept
	}
	row := trace.RouteRow{Turn: t.run, Phase: t.phase(), Place: t.place[layer]}
	for i, id := range ids {
		row.Step, row.Rank, row.Expert = t.at+i/k, i%k, int(id)
		row.TokenID, row.Weight = t.ids[i/k], weights[i]
		row.Residency, row.Predicted, row.Dropped = -1, -1, i >= kept
		bytes := int64(0)
		if row.Dropped {
			row.Residency = 0
		} else if s.streamer != nil {
			n := s.streamer.Note(id)
			row.Residency, row.Predicted = int(n.Found), predicted(n)
			if n.Found != expert.Hit {
				bytes = s.shape.Bytes[layer]
			}
		}
		if t.seen[id] == t.batches {
			bytes = 0 // they were read for the batch's first touch
		}
		t.seen[id] = t.batches
		t.Route.Row(&row, bytes)
	}
}

// read writes down a read; see expert.Streamer.OnRead.
func (t *tracing) read(layer, ex, projection int, guessed bool, r *flashio.Request) {
	t.IO.Row(&trace.IORow{Layer: layer, Expert: ex, Projection: projection, Lane: r.Lane, Guessed: guessed,
		Offset: r.Offset, Requested: int64(len(r.Buf)), Read: int64(r.N), Latency: r.Ended - r.Started, Start: r.Started})
}

// step writes down a step; see model.Compute. What it costs itself counts for none.
func (t *tracing) step(layer int, op string) {
	now, faults := clock.Now(), t.majorFaults()
	row := trace.ComputeRow{At: t.where(), Seq: t.seq, Layer: layer, Op: op, Wall: now - t.since, MajorFaults: -1, Start: t.since}
	var times pool.Times
	t.session.compute.Pool.Times(&times)
	share := func(s pool.State) int64 { return (times.State[s] - t.times.State[s]) / int64(times.Workers) }
	row.Compute, row.Mgmt, row.Stall, row.Other = share(pool.Compute), share(pool.Mgmt), share(pool.Stall), share(pool.Other)
	if faults.OK && t.faults.OK {
		row.MajorFaults = faults.Value - t.faults.Value
	}
	t.Compute.Row(&row)
	t.seq++
	t.session.compute.Pool.Times(&t.times)
	t.faults, t.since = faults, clock.Now()
}

func (t *tracing) majorFaults() profile.Maybe[int64] {
	t.session.meter.process.Counters(&t.usage)
	return maybe(t.usage.MajorFaults, t.usage.Has.All(host.HasMajorFaults))
}

// predicted is a note in the numbers of a route trace.
func predicted(n expert.Note) int {
	switch {
	case !n.Guessed:
		return -1
	case !n.Predicted:
		return trace.PredictedNot
	}
	return expert.Kinds[n.Origin].Traced
}

// SettingPairs are the settings in force as a file of figures has them: by their
// flags, with underscores, switches as 0 and 1. A backend without settings has none.
func SettingPairs(b backend.Backend) []trace.Pair {
	t, ok := b.(backend.Tunable)
	if !ok {
		return nil
	}
	var out []trace.Pair
	for _, r := range t.Settings() {
		if r.Kind == backend.Text || r.Flag == "" {
			continue // paths are nobody else's business
		}
		v := r.Value
		if r.Kind == backend.Switch {
			v = "0"
			if r.Value == backend.On {
				v = "1"
			}
		}
		out = append(out, trace.Pair{Key: strings.ReplaceAll(r.Flag, "-", "_"), Value: v})
	}
	return out
}
