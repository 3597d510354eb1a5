package ab

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"bmoe/engine/backend"
)

// scorer is a fake that can score: with the release on, every nats more.
type scorer struct {
	*fake
	more   float32
	others int // of ten likeliest tokens
	err    error
}

func (s *scorer) Heard() []int32 { return make([]int32, 11) }

func (s *scorer) Score(_ context.Context, ids []int32) (nll []float32, top1 []int32, err error) {
	nll, top1 = make([]float32, len(ids)-1), make([]int32, len(ids)-1)
	if s.values["release-mmap"] == "on" {
		for i := range nll {
			nll[i] = s.more
			if i < s.others {
				top1[i] = 1
			}
		}
	}
	return nll, top1, s.err
}

// A variant with losses is called an improvement only at a price that is known and low.
func TestLossesHaveAPrice(t *testing.T) {
	for _, c := range []struct {
		name string
		b    func(f *fake) backend.Backend
		want string
	}{
		{"cheap", func(f *fake) backend.Backend { return &scorer{fake: f, more: 0.01} }, "faster +50..+50 %, at +0.010 nats a token and 0.0 % other likeliest tokens"},
		{"nats", func(f *fake) backend.Backend { return &scorer{fake: f, more: 0.06} }, "no improvement: faster +50..+50 %, but it costs +0.060 nats a token and 0.0 % other"},
		{"flips", func(f *fake) backend.Backend { return &scorer{fake: f, others: 1} }, "no improvement: faster +50..+50 %, but it costs +0.000 nats a token and 10.0 % other"},
		{"unknown", func(f *fake) backend.Backend { return f }, "lossy and not priced, so no improvement is claimed: faster"},
	} {
		f := newFake()
		p := planOf(f, "release-mmap=off,on")
		p.Open = func(context.Context, map[string]string) (backend.Backend, error) { return c.b(f), nil }
		p.Each = func(cell *Cell) {
			if cell.Variant == 1 {
				cell.Run.Result.Flags = []string{"lossy"}
			}
		}
		x, err := p.Run(context.Background())
		if err != nil {
			t.Fatal(c.name, err)
		}
		var md bytes.Buffer
		r := x.Report(true, "bmoe test")
		if err := r.Markdown(&md); err != nil {
			t.Fatal(err)
		}
		if got := r.Variants[1].Change.Verdict; !strings.HasPrefix(got, c.want) || !strings.Contains(md.String(), c.want) {
			t.Errorf("%s: %q, want %q in\n%s", c.name, got, c.want, md.String())
		}
		if (r.Variants[1].Price == nil) != (c.name == "unknown") || r.Variants[0].Price != nil {
			t.Errorf("%s: prices %v and %v", c.name, r.Variants[0].Price, r.Variants[1].Price)
		}
	}
	f := newFake()
	p := planOf(f, "release-mmap=off,on")
	broken := errors.New("a logit is not a number")
	p.Open = func(context.Context, map[string]string) (backend.Backend, error) {
		return &scorer{fake: f, err: broken}, nil
	}
	p.Each = func(cell *Cell) { cell.Run.Result.Flags = []string{"lossy"}[:cell.Variant] }
	if x, err := p.Run(context.Background()); !errors.Is(err, broken) || len(x.Cells) == 0 {
		t.Errorf("%v, %d cells", err, len(x.Cells))
	}
}
