package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"bmoe/internal/stats"
)

// Heard returns the ids that the model has seen, prompt and answer.
func (s *Session) Heard() []int32 { return slices.Clone(s.ids) }

// Score computes ids one at a time, as in an answer, from an empty state and an empty
// cache. It returns the nats that each id but the first was not foretold by, and the id
// that was the likeliest in its place. The conversation is forgotten.
func (s *Session) Score(ctx context.Context, ids []int32) (nll []float32, top1 []int32, err error) {
	s.NewChat()
	if s.streamer != nil {
		s.streamer.Empty()
	}
	err = s.EvalEach(ctx, ids, true, func(at int, row []float32) error {
		if at+1 == len(ids) {
			return nil // what would follow is not known
		}
		x, best := stats.Surprise(row, ids[at+1])
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("position %d: a logit is not a number", at)
		}
		nll, top1 = append(nll, float32(x)), append(top1, best)
		return nil
	})
	return nll, top1, err
}

// Eval returns the logits of every position, [len(ids) x vocab], for ids from
// an empty state: in batches, or one at a time.
func (s *Session) Eval(ctx context.Context, ids []int32, oneByOne bool) ([]float32, error) {
	logits := make([]float32, 0, len(ids)*s.arch.Info().Vocab)
	err := s.EvalEach(ctx, ids, oneByOne, func(_ int, row []float32) error {
		logits = append(logits, row...)
		return nil
	})
	return logits, err
}

// evalBytes bounds the logits that EvalEach holds at once.
const evalBytes = 64 << 20

// EvalEach is Eval for texts whose logits need not be held all at once: each gets
// the logits of one position, [vocab], good until it returns. One at a time is as in an
// answer, so that settings for answers alone act there.
func (s *Session) EvalEach(ctx context.Context, ids []int32, oneByOne bool, each func(at int, row []float32) error) error {
	vocab := s.arch.Info().Vocab
	switch {
	case len(ids) == 0:
		return usagef("no token ids to evaluate")
	case len(ids) > s.cfg.Ctx:
		return usagef("%d token ids exceed the context of %d: raise {ctx}", len(ids), s.cfg.Ctx)
	}
	for _, id := range ids {
		if id < 0 || int(id) >= vocab {
			return usagef("token id %d is outside the vocabulary of %d", id, vocab)
		}
	}
	if s.reader == nil {
		return errNoLanes
	}
	s.last = nil // what a repeat would start from goes
	if _, err := s.rewind(0); err != nil {
		return err
	}
	batch := min(s.cfg.UBatch, len(ids), max(1, evalBytes/4/vocab))
	if oneByOne {
		batch = 1
		s.decoding(true)
		defer s.decoding(false)
	}
	defer s.ask(ctx)()
	logits := make([]float32, batch*vocab)
	for i := 0; i < len(ids); i += batch {
		n := min(batch, len(ids)-i)
		if err := s.forward(ctx, ids[i:i+n], logits[:n*vocab]); err != nil {
			if ctx.Err() != nil {
				err = ctx.Err() // reads fail then that a signal interrupted
			}
			return err
		}
		for j := range n {
			if err := each(i+j, logits[j*vocab:][:vocab]); err != nil {
				return err
			}
		}
	}
	return nil
}
