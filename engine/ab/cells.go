package ab

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"bmoe/engine/backend"
	"bmoe/internal/stats"
)

// The rounds after which an experiment looks whether it knows enough, and by how
// much a difference may be unsure to be known.
var looks = []int{3, 5, 8, 12}

const knownHalf = 0.02

// Plan is an experiment: every variant answers the same prompt once a round, from
// the same start, with an empty cache.
type Plan struct {
	Variants []Variant
	// Live: the settings are changed in one session between runs. Otherwise every
	// run has a session of its own, so that loading is measured too.
	Live    bool
	Most    int  // rounds at most
	Forward bool // every round in the order of the variants; otherwise every second one backwards
	Request backend.Request
	// Open opens a session with the settings of a variant.
	Open func(ctx context.Context, values map[string]string) (backend.Backend, error)
	// Gate waits, before a run, until the machine is fit for it; nil: it always is.
	Gate func(ctx context.Context) error
	// Each hears of every cell as it ends.
	Each func(c *Cell)
}

// Cell is one run of an experiment.
type Cell struct {
	Round   int // from 1; 0 is the warm-up, which does not count
	Variant int
	Run     *backend.Run
	// Excluded says why the cell does not count; empty if it does.
	Excluded string
}

// Experiment is what came of a plan.
type Experiment struct {
	Variants []Variant
	Cells    []Cell
	Rounds   int    // begun
	Ended    string // why there were no more
	// Prices are what variants with losses cost, by variant; nil: none, or not known.
	Prices []*Price
}

// Run carries out a plan. A variant whose settings are not applied ends it with an
// error: nothing could be said of it. Whatever else ends it early, what was measured
// until then is returned beside the error.
func (p *Plan) Run(ctx context.Context) (*Experiment, error) {
	x := &Experiment{Variants: p.Variants}
	r := &runner{Plan: p, Experiment: x}
	err := r.all(ctx)
	if err == nil {
		err = r.price(ctx)
	}
	if r.session != nil {
		err = errors.Join(err, r.session.Close())
	}
	return x, err
}

type runner struct {
	*Plan
	*Experiment
	session backend.Backend // with live settings
}

func (r *runner) all(ctx context.Context) error {
	if err := r.cell(ctx, 0, 0); err != nil {
		return err
	}
	for r.Rounds < r.Most {
		r.Rounds++
		order := make([]int, len(r.Plan.Variants))
		for i := range order {
			order[i] = i
		}
		if r.Rounds%2 == 0 && !r.Forward {
			slices.Reverse(order)
		}
		for _, v := range order {
			if err := r.counted(ctx, r.Rounds, v); err != nil {
				return err
			}
		}
		if r.Excluded() == len(r.Cells)-1 && r.Rounds >= looks[0] {
			r.Ended = fmt.Sprintf("nothing counted in %d rounds: close other programs and try again", r.Rounds)
			return nil
		}
		if slices.Contains(looks, r.Rounds) && r.Rounds < r.Most && r.known() {
			r.Ended = fmt.Sprintf("every difference is known after %d rounds", r.Rounds)
			return nil
		}
	}
	r.Ended = fmt.Sprintf("%d rounds were asked for", r.Most)
	return nil
}

// counted runs a cell, and once more if something disturbed it.
func (r *runner) counted(ctx context.Context, round, variant int) error {
	for range 2 {
		if err := r.cell(ctx, round, variant); err != nil {
			return err
		}
		if c := r.Cells[len(r.Cells)-1]; c.Excluded == "" {
			return nil
		}
	}
	return nil
}

// cell makes one run.
func (r *runner) cell(ctx context.Context, round, variant int) error {
	if r.Gate != nil {
		if err := r.Gate(ctx); err != nil {
			return err
		}
	}
	run, err := r.once(ctx, r.Plan.Variants[variant])
	if err == nil {
		err = run.Err
	}
	if err != nil {
		return err
	}
	c := Cell{Round: round, Variant: variant, Run: run}
	switch {
	case round == 0:
		c.Excluded = "warm-up"
	case run.Disturbed.Any():
		c.Excluded = run.Disturbed.String()
	}
	r.Cells = append(r.Cells, c)
	if r.Each != nil {
		r.Each(&r.Cells[len(r.Cells)-1])
	}
	return nil
}

// once answers the prompt under a variant.
func (r *runner) once(ctx context.Context, v Variant) (*backend.Run, error) {
	if !r.Live {
		b, err := r.Open(ctx, v.Values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		run, err := b.Generate(ctx, r.Request)
		return run, errors.Join(err, b.Close())
	}
	if r.session == nil {
		b, err := r.Open(ctx, v.Values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.Name, err)
		}
		r.session = b
		return b.Generate(ctx, r.Request)
	}
	if err := r.set(v); err != nil {
		return nil, err
	}
	return r.session.Again(ctx, nil)
}

// set gives the session a variant's settings.
func (r *runner) set(v Variant) error {
	t, ok := r.session.(backend.Tunable)
	if !ok {
		return errors.New("this engine's settings cannot be changed between runs")
	}
	if o := firstRefused(t.Apply(v.Values)); o != nil {
		return fmt.Errorf("%s: {%s=%s} was %s: %s", v.Name, o.Setting, v.Values[o.Setting], o.Verdict, o.Reason)
	}
	return nil
}

// known reports whether every variant's difference to the first is clear, or so
// exactly known that more rounds would not tell anything new.
func (r *runner) known() bool {
	for v := 1; v < len(r.Plan.Variants); v++ {
		if d, half := r.Difference(v); half > knownHalf && d.Verdict != stats.Faster && d.Verdict != stats.Slower {
			return false
		}
	}
	return true
}

// Difference holds a variant against the first, over the rounds in which both
// count. half is half the interval's width.
func (x *Experiment) Difference(variant int) (d stats.Difference, half float64) {
	base, other := x.pairs(variant)
	return stats.Paired(base, other, len(looks))
}

// pairs returns the speeds of the first variant and of another, round by round.
func (x *Experiment) pairs(variant int) (base, other []float64) {
	for round := 1; round <= x.Rounds; round++ {
		a, b := x.speed(round, 0), x.speed(round, variant)
		if !math.IsNaN(a) && !math.IsNaN(b) {
			base, other = append(base, a), append(other, b)
		}
	}
	return base, other
}

// speed returns the tokens a second of the cell of a round that counts, else NaN.
func (x *Experiment) speed(round, variant int) float64 {
	for i := range x.Cells {
		c := &x.Cells[i]
		if c.Round == round && c.Variant == variant && c.Excluded == "" && c.Run.Result.DecodeTPS.OK {
			return c.Run.Result.DecodeTPS.Value
		}
	}
	return math.NaN()
}

// Excluded counts the cells that do not count because something disturbed them.
func (x *Experiment) Excluded() int {
	n := 0
	for i := range x.Cells {
		if x.Cells[i].Round > 0 && x.Cells[i].Excluded != "" {
			n++
		}
	}
	return n
}

// SameText reports whether every cell gave the same text, the warm-up too.
func (x *Experiment) SameText() bool {
	return !slices.ContainsFunc(x.Cells, func(c Cell) bool {
		return c.Run.Result.TextSHA256 != x.Cells[0].Run.Result.TextSHA256
	})
}
