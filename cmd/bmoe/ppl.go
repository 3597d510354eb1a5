package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"bmoe/engine"
	"bmoe/engine/tokenizer"
	"bmoe/internal/cli"
	"bmoe/internal/stats"
	"bmoe/internal/units"
	"bmoe/profile"
)

// perplexity is how well a model foretells a text. Where the text is longer than the
// context, each window of it begins anew, and its first token is not scored.
type perplexity struct {
	Tokens  int                    `json:"n_tokens"`
	Scored  int                    `json:"n_scored"`
	NLL     float64                `json:"nll"`    // nats a token
	NLLErr  profile.Maybe[float64] `json:"nll_se"` // standard error of the mean; null for one token
	PPL     float64                `json:"ppl"`
	Step    bool                   `json:"step"`
	Context int                    `json:"n_ctx"`
	IDs     string                 `json:"ids_sha256"` // of the ids as little-endian 32-bit numbers
	Ref     *againstRef            `json:"ref"`        // null: none was given
	Top1    []int32                `json:"top1"`       // of each scored position the likeliest id
	Each    []float32              `json:"nll_each"`   // of each scored position
}

// againstRef is a run held against another of the same text.
type againstRef struct {
	NLLMore float64                `json:"nll_more"`    // nats a token more than there
	MoreErr profile.Maybe[float64] `json:"nll_more_se"` // of the paired difference
	Flips   int                    `json:"flips"`       // positions with another likeliest token
	FlipPct float64                `json:"flip_pct"`
}

// measurePPL runs a text through the model and says how well each token was foretold.
func measurePPL(ctx context.Context, o *options, out *cli.Output) error {
	text, err := readFile(ctx, o.ppl, "ppl", true)
	if err != nil {
		return err
	}
	var ref *perplexity
	if o.pplRef != "" {
		if ref, err = readRef(ctx, o.pplRef); err != nil {
			return err
		}
	}
	t, _, err := o.openText(ctx)
	if err != nil {
		return err
	}
	ids := t.Tokenizer.Encode(text, tokenizer.Options{AddSpecial: true})
	if len(ids) < 2 {
		return fmt.Errorf("ppl: %s: two tokens are needed, this is %s", o.ppl, units.Plural(int64(len(ids)), "token"))
	}
	c, err := o.config(ctx)
	if err != nil {
		return err
	}
	s, err := engine.Open(ctx, c, nil) // logits are of this program's own engine only
	if err != nil {
		return err
	}
	giveProcessors(s)
	p, err := score(ctx, s, ids, o.pplStep)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	if ref != nil {
		if p.Ref, err = p.against(ref); err != nil {
			return fmt.Errorf("ppl-ref: %s: %w", o.pplRef, err)
		}
	}
	if o.json {
		return out.Line("", p)
	}
	return out.Text(p.text())
}

// readRef reads what --ppl --json wrote.
func readRef(ctx context.Context, path string) (*perplexity, error) {
	text, err := readFile(ctx, path, "ppl-ref", false)
	if err != nil {
		return nil, err
	}
	p := &perplexity{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		return nil, fmt.Errorf("ppl-ref: %s: %w", path, err)
	}
	if p.Scored == 0 || len(p.Top1) != p.Scored || len(p.Each) != p.Scored {
		return nil, fmt.Errorf("ppl-ref: %s: not what --ppl --json writes", path)
	}
	return p, nil
}

// score sums up how well each id was foretold by those before it.
func score(ctx context.Context, s *engine.Session, ids []int32, step bool) (*perplexity, error) {
	window := s.Config().Ctx
	p := &perplexity{Tokens: len(ids), Step: step, Context: window}
	hash := sha256.New()
	if err := binary.Write(hash, binary.LittleEndian, ids); err != nil {
		return nil, err
	}
	p.IDs = hex.EncodeToString(hash.Sum(nil))
	for from := 0; from+1 < len(ids); from += window {
		part := ids[from:min(from+window, len(ids))]
		if len(part) < 2 {
			break
		}
		err := s.EvalEach(ctx, part, step, func(at int, row []float32) error {
			if at+1 == len(part) {
				return nil // what would follow is not known
			}
			nll, best := stats.Surprise(row, part[at+1])
			if math.IsNaN(nll) || math.IsInf(nll, 0) {
				return fmt.Errorf("position %d: a logit is not a number", from+at)
			}
			p.Each, p.Top1 = append(p.Each, float32(nll)), append(p.Top1, best)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	p.Scored = len(p.Each)
	p.NLL, p.NLLErr = meanError(p.Each)
	p.PPL = math.Exp(p.NLL)
	return p, nil
}

// meanError returns a mean and its standard error.
func meanError(values []float32) (mean float64, of profile.Maybe[float64]) {
	n := float64(len(values))
	for _, v := range values {
		mean += float64(v) / n
	}
	var squares float64
	for _, v := range values {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	if n > 1 {
		of = profile.Some(math.Sqrt(squares / (n - 1) / n))
	}
	return mean, of
}

// against holds a run against another of the same ids.
func (p *perplexity) against(ref *perplexity) (*againstRef, error) {
	if p.IDs != ref.IDs || p.Scored != ref.Scored {
		return nil, errors.New("it is of another text, or of another tokenizer or context")
	}
	a := &againstRef{}
	more := make([]float32, p.Scored)
	for i := range more {
		more[i] = p.Each[i] - ref.Each[i]
		if p.Top1[i] != ref.Top1[i] {
			a.Flips++
		}
	}
	a.NLLMore, a.MoreErr = meanError(more)
	a.FlipPct = 100 * float64(a.Flips) / float64(p.Scored)
	return a, nil
}

// text is the result in lines.
func (p *perplexity) text() string {
	var b strings.Builder
	how := "in batches; settings that act in answers only did not"
	if p.Step {
		how = "one at a time, as in an answer"
	}
	four := units.Fixed(4)
	fmt.Fprintf(&b, "%d tokens scored of %d, %s\n", p.Scored, p.Tokens, how)
	fmt.Fprintf(&b, "negative log-likelihood %.4f nats a token, standard error %s; perplexity %.3f\n", p.NLL, p.NLLErr.Text(four, ""), p.PPL)
	if r := p.Ref; r != nil {
		fmt.Fprintf(&b, "against the reference %+.4f nats a token, standard error %s; %d likeliest tokens differ, %.2f %%\n",
			r.NLLMore, r.MoreErr.Text(four, ""), r.Flips, r.FlipPct)
	}
	return b.String()
}
