package trace

import (
	"bufio"
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"

	"bmoe/internal/stats"
	"bmoe/profile"
)

// Kind says what kind of trace a file is, by its first line: route, io or compute;
// empty if it is none of them.
func Kind(in *bufio.Reader) string {
	head, _ := in.Peek(len(computeMark)) // what is shorter is none
	for kind, mark := range map[string]string{"route": routeMark, "io": ioMark, "compute": computeMark} {
		if strings.HasPrefix(string(head), mark) {
			return kind
		}
	}
	return ""
}

// Reads is what an I/O trace tells of some of its reads.
type Reads struct {
	Lane    int                    `json:"lane"` // -1: all
	Reads   int64                  `json:"reads"`
	Bytes   int64                  `json:"bytes"` // that arrived
	Guessed int64                  `json:"guessed"`
	P50     profile.Maybe[float64] `json:"p50_ms"`
	P99     profile.Maybe[float64] `json:"p99_ms"`

	latency stats.Histogram
}

func (s *Reads) add(r *IORow) {
	s.Reads++
	s.Bytes += r.Read
	if r.Guessed {
		s.Guessed++
	}
	s.latency.Record(r.Latency)
}

// SumIO adds up an I/O trace: all reads, then those of each lane.
func SumIO(from io.Reader) ([]*Reads, error) {
	all, lanes := &Reads{Lane: -1}, map[int]*Reads{}
	err := ReadIO(from, func(r *IORow) error {
		all.add(r)
		lane := lanes[r.Lane]
		if lane == nil {
			lane = &Reads{Lane: r.Lane}
			lanes[r.Lane] = lane
		}
		lane.add(r)
		return nil
	})
	out := []*Reads{all}
	for _, lane := range slices.Sorted(maps.Keys(lanes)) {
		out = append(out, lanes[lane])
	}
	for _, s := range out {
		s.P50, s.P99 = quantile(&s.latency, 0.5), quantile(&s.latency, 0.99)
	}
	return out, err
}

// quantile is a latency in ms.
func quantile(h *stats.Histogram, q float64) profile.Maybe[float64] {
	v, ok := h.Quantile(q)
	return profile.Maybe[float64]{Value: float64(v) / 1e6, OK: ok}
}

// Step is what a compute trace tells of one kind of step, answers only.
type Step struct {
	Op          string  `json:"op"`
	Count       int64   `json:"count"`
	Ms          float64 `json:"ms"`    // of all of them
	Share       float64 `json:"share"` // of the time of all steps
	MajorFaults int64   `json:"majflt"`
}

// SumCompute adds up a compute trace's answers by what was done, most time first, and
// counts their tokens.
func SumCompute(from io.Reader) (steps []Step, tokens int64, err error) {
	ops, total := map[string]*Step{}, 0.0
	err = ReadCompute(from, func(r *ComputeRow) error {
		if r.Phase != 1 {
			return nil
		}
		s := ops[r.Op]
		if s == nil {
			s = &Step{Op: r.Op}
			ops[r.Op] = s
		}
		if r.Seq == 0 {
			tokens++
		}
		ms := float64(r.Wall) / 1e6
		s.Count, s.Ms, total = s.Count+1, s.Ms+ms, total+ms
		s.MajorFaults += max(r.MajorFaults, 0)
		return nil
	})
	for _, s := range ops {
		s.Share = s.Ms / max(total, 1e-9)
		steps = append(steps, *s)
	}
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Or(cmp.Compare(b.Ms, a.Ms), cmp.Compare(a.Op, b.Op)) })
	return steps, tokens, err
}
