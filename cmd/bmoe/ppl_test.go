package main

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bmoe/engine"
	"bmoe/internal/conform"
)

const foretold = "Once upon a time there was a little dog. He ran to the park and saw a big red ball. The dog was very happy."

// The likelihood is that of llama.cpp's logits of the same ids, within what these
// logits may be apart.
func TestPerplexityIsThatOfTheGoldenLogits(t *testing.T) {
	g, want := conform.Load(t, "qwen3moe"), conform.Floats(t, "qwen3moe.exact.f32")
	c := engine.DefaultConfig()
	c.Model = conform.File(t, "models/qwen3moe.gguf")
	c.Numerics, c.KVType = "exact", "f32"
	s, err := engine.Open(context.Background(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := score(context.Background(), s, g.Tokens, false)
	if err != nil {
		t.Fatal(err)
	}
	vocab, sum := len(want)/len(g.Tokens), 0.0
	for i, next := range g.Tokens[1:] {
		row, total := want[i*vocab:][:vocab], 0.0
		for _, v := range row {
			total += math.Exp(float64(v))
		}
		sum -= math.Log(math.Exp(float64(row[next])) / total)
	}
	if mean := sum / float64(len(g.Tokens)-1); p.Scored != len(g.Tokens)-1 || math.Abs(p.NLL-mean) > 4e-4 {
		t.Errorf("%d scored, %g nats a token; the golden logits give %g", p.Scored, p.NLL, mean)
	}
}

// Batches and single steps give the same bits; what is lossy in answers alone has its
// price in steps alone.
func TestPerplexityOnTheCommandLine(t *testing.T) {
	dir := conform.TempDir(t)
	text, ref := filepath.Join(dir, "text.txt"), filepath.Join(dir, "ref.json")
	if err := os.WriteFile(text, []byte(foretold), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(more ...string) (p perplexity) {
		t.Helper()
		r := succeeds(t, append([]string{"--ppl", text, "--json"}, more...)...)
		parseJSON(t, r.stdout, &p)
		if p.Ref == nil {
			if err := os.WriteFile(ref, []byte(r.stdout), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return p
	}
	batched := run()
	if batched.Scored < 20 || batched.Scored != batched.Tokens-1 || batched.NLL <= 0 || !batched.NLLErr.OK || batched.PPL != math.Exp(batched.NLL) {
		t.Fatalf("%+v", batched)
	}
	step := run("--ppl-step", "--ppl-ref", ref)
	if !slices.Equal(step.Each, batched.Each) || !slices.Equal(step.Top1, batched.Top1) || step.Ref.Flips != 0 || step.Ref.NLLMore != 0 {
		t.Errorf("single steps differ from batches: %+v", step.Ref)
	}
	lossy := []string{"--cache-mb", "1", "--force-cache", "--drop-cold-experts", "0.9", "--ppl-ref", ref}
	if p := run(lossy...); !slices.Equal(p.Each, batched.Each) {
		t.Error("a setting for answers alone acted in batches")
	}
	if p := run(append(lossy, "--ppl-step")...); slices.Equal(p.Each, batched.Each) || p.Ref.NLLMore == 0 || !p.Ref.MoreErr.OK {
		t.Errorf("experts were left out and it cost nothing: %+v", p.Ref)
	}
	if p := run("-c", "16", "--ppl-step"); p.Scored >= batched.Scored || p.Each[0] != batched.Each[0] {
		t.Errorf("windows of 16: %d scored", p.Scored)
	}
	refused(t, 1, []string{"ppl-ref: ", "another text"}, "--ppl", text, "--ppl-ref", ref) // of the windows
	refused(t, 1, []string{"ppl-ref: ", "not what --ppl --json writes"}, "--ppl", text, "--ppl-ref", filepath.Join("testdata", "demo-greedy.json"))
	refused(t, 2, []string{"--ppl-step does nothing without --ppl"}, "--ppl-step")
}
