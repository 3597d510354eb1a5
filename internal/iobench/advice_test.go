package iobench

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/gguf/synth"
	"bmoe/internal/cli"
	"bmoe/internal/conform"
	"bmoe/internal/units"
)

// small writes a model with 8 experts in each of 2 layers, of which a token uses 2;
// an expert takes three matrices of 64 x 32 numbers of two bytes.
func small(t *testing.T) string {
	t.Helper()
	path := filepath.Join(conform.TempDir(t), "small.gguf")
	err := synth.Write(path, synth.Spec{Layers: 2, Embd: 64, Heads: 4, KVHeads: 2, HeadDim: 16, Experts: 8, Used: 2, ExpertFF: 32, Vocab: 4096, Ctx: 64, Type: "F16", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const smallToken = 2 * 2 * 3 * 64 * 32 * 2 // bytes: layers, experts, matrices, numbers

func TestWhatARateMeansForAModel(t *testing.T) {
	d := &demand{of: "m.gguf", bytes: 300 * units.MiB}
	if got, want := d.words(3000), "a token of m.gguf takes 300 MiB of experts: at most, in tok/s, 10 at 0 %, 20 at 50 %, 40 at 75 %, 100 at 90 % of hits"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (*demand)(nil).words(3000); !strings.HasPrefix(got, "--for ") {
		t.Errorf("without a model: %q", got)
	}
	model, other := small(t), testFile(t, 1<<20)
	for _, c := range []struct {
		opt  options
		want *demand
	}{
		{options{model: model}, &demand{"small.gguf", smallToken}},
		{options{model: other, reckonFor: model}, &demand{"small.gguf", smallToken}},
		{options{model: other}, nil},
		{options{model: model, tokenMiB: 1.5}, &demand{"", 1.5 * units.MiB}},
	} {
		got, err := demandOf(&c.opt)
		if err != nil || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%+v: %+v, %v; want %+v", c.opt, got, err, c.want)
		}
	}
}

// The advice names what bmoe has, and no number of lanes as enough.
func TestAdvice(t *testing.T) {
	m := newMade(false)
	m.c.demand = &demand{bytes: 300 * units.MiB}
	for lanes, rate := range map[int]float64{1: 900, 2: 2950, 4: 3000} {
		m.add(cell{lanes: lanes}, direct, rate)
	}
	s := m.c.summarise()
	tries := s.tries()
	if slices.Sort(tries); !slices.Equal(tries, []string{"--io-threads 1", "--io-threads 2", "--io-threads 4"}) {
		t.Errorf("%q", tries)
	}
	var text bytes.Buffer
	if err := newTextReport(cli.NewOutput(&text), &m.c).end(s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"peak 3000 MiB/s at 4 lanes", "a token takes 300 MiB of experts: at most, in tok/s, 10 at 0 %, ", "compare bmoe with --io-threads"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in %s", want, text.String())
		}
	}
	one := newMade(false)
	one.add(cell{lanes: 4}, direct, 900)
	if tries := one.c.summarise().tries(); tries != nil {
		t.Errorf("after one row: %q", tries)
	}
}
