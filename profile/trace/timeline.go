package trace

import (
	"errors"
	"fmt"
	"io"
	"slices"
)

// Timeline is what the steps of a decoded token and the reads beside them did when.
type Timeline struct {
	Token    int // of the trace, from 1
	Tokens   int // that it has
	From, To int64
	Steps    []ComputeRow
	Reads    []IORow // that were in flight between From and To, by start
}

// ReadTimeline takes a token out of two traces of one session: the n-th that was
// decoded, or the one of middle length where n is 0. open opens a trace from its
// beginning, as often as it is called.
func ReadTimeline(steps, reads func() (io.ReadCloser, error), n int) (*Timeline, error) {
	t := &Timeline{Token: n}
	walls, err := tokenWalls(steps)
	if err != nil {
		return nil, fmt.Errorf("compute trace: %w", err)
	}
	if t.Tokens = len(walls); t.Tokens == 0 {
		return nil, errors.New("compute trace: no token of an answer was traced")
	}
	if n > t.Tokens {
		return nil, fmt.Errorf("compute trace: there are %d tokens, and no %d", t.Tokens, n)
	}
	if n == 0 {
		sorted := slices.Clone(walls)
		slices.Sort(sorted)
		t.Token = 1 + slices.Index(walls, sorted[len(sorted)/2])
	}
	if err := t.takeSteps(steps); err != nil {
		return nil, fmt.Errorf("compute trace: %w", err)
	}
	if err := t.takeReads(reads); err != nil {
		return nil, fmt.Errorf("I/O trace: %w", err)
	}
	return t, nil
}

// errNoStart is of traces that an earlier version wrote.
var errNoStart = errors.New("it does not tell when what it tells of began (start_ns): record it again")

// eachDecoded tells of the rows of decoded tokens, with the token's number from 1.
func eachDecoded(open func() (io.ReadCloser, error), tell func(token int, r *ComputeRow) error) error {
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	token, at := 0, At{}
	return ReadCompute(in, func(r *ComputeRow) error {
		if r.Phase != 1 {
			return nil
		}
		if r.Start < 0 || r.Stall < 0 {
			return errNoStart
		}
		if token == 0 || r.At != at {
			token, at = token+1, r.At
		}
		return tell(token, r)
	})
}

// tokenWalls returns how long the steps of each decoded token took together.
func tokenWalls(open func() (io.ReadCloser, error)) (walls []int64, err error) {
	err = eachDecoded(open, func(token int, r *ComputeRow) error {
		if token > len(walls) {
			walls = append(walls, 0)
		}
		walls[token-1] += r.Wall
		return nil
	})
	return walls, err
}

func (t *Timeline) takeSteps(open func() (io.ReadCloser, error)) error {
	err := eachDecoded(open, func(token int, r *ComputeRow) error {
		if token == t.Token {
			t.Steps = append(t.Steps, *r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	last := t.Steps[len(t.Steps)-1]
	t.From, t.To = t.Steps[0].Start, last.Start+last.Wall
	return nil
}

func (t *Timeline) takeReads(open func() (io.ReadCloser, error)) error {
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	err = ReadIO(in, func(r *IORow) error {
		if r.Start < 0 {
			return errNoStart
		}
		if r.Start < t.To && r.Start+r.Latency > t.From {
			t.Reads = append(t.Reads, *r)
		}
		return nil
	})
	slices.SortStableFunc(t.Reads, func(a, b IORow) int { return int(a.Start - b.Start) })
	return err
}
