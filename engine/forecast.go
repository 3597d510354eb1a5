package engine

import (
	"context"

	"bmoe/internal/host"
)

// Forecast is what a model would take if it were opened now, in bytes.
type Forecast struct {
	Streams bool  // it has experts to stream
	Experts int64 // what all of them take in the cache
	Cycle   int64 // what the experts of a token take there
	Budget  int64 // of the cache, were it automatic; 0: nothing is streamed, or the host cannot tell
	Context int64 // of the conversation, when it is full
	Length  int   // positions of it
	Trained int   // positions that the model was made for
}

// Foresee reads a model's header and reckons what it would take. freed is memory that
// is in use now and will not be then, in bytes.
func Foresee(ctx context.Context, cfg Config, freed int64) (f Forecast, err error) {
	o, err := Begin(ctx, cfg)
	if err != nil {
		return f, err
	}
	s := o.s
	defer s.Close() // nothing was read or written
	if err := s.openState(ctx, nil); err != nil {
		return f, err
	}
	f = Forecast{Streams: s.cfg.Stream, Context: s.state.Bytes(), Length: s.cfg.Ctx, Trained: s.arch.Info().Context}
	if m := host.ReadMemory(); s.cfg.Stream {
		f.Experts, f.Cycle = s.shape.Total(), s.shape.TokenCycle()
		if m.Available += freed; m.Has.All(host.HasAvailable) {
			f.Budget = min(s.automatic(s.cfg.Cache.Share, m), f.Experts)
		}
	}
	return f, nil
}
