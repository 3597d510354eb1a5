package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bmoe/engine/gguf"
	"bmoe/internal/cli"
	"bmoe/internal/clock"
)

// call runs the command and returns its exit code and what it printed.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(ctx, args, &out, &err, false)
	return code, out.String(), err.String()
}

func TestWritesWhatTheFlagsSay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	code, out, errs := call(t.Context(), "-o", path, "--layers", "3", "--embd=64", "--heads", "4", "--kv-heads", "1", "--head-dim", "16", "--experts", "5",
		"--used", "2", "--expert-ff", "32", "--vocab", "300", "--ctx", "128", "--type", "f16", "--tied", "--yarn", "4", "--split", "3", "--seed", "9", "--name", "Test")
	if code != cli.Done || errs != "" || !strings.Contains(out, "m-00001-of-00003.gguf") {
		t.Fatalf("exit %d: %q %q", code, out, errs)
	}
	f, err := gguf.Open(gguf.ShardPaths(path, 3)[0])
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int64{
		"block_count": 3, "embedding_length": 64, "attention.head_count": 4, "attention.head_count_kv": 1, "attention.key_length": 16, "expert_count": 5,
		"expert_used_count": 2, "expert_feed_forward_length": 32, "vocab_size": 300, "context_length": 128, "rope.scaling.original_context_length": 32,
	} {
		if got, err := f.Meta.Int("qwen3moe." + key); err != nil || got != want {
			t.Errorf("%s is %d (%v), want %d", key, got, err, want)
		}
	}
	if name, _ := f.Meta.String("general.name"); name != "Test" {
		t.Errorf("name %q", name)
	}
	if _, ok := f.Tensor("output.weight"); ok || len(f.Shards) != 3 {
		t.Errorf("tied: %v, %d shards", !ok, len(f.Shards))
	}
	if x, _ := f.Tensor("blk.2.ffn_down_exps.weight"); x == nil || x.Type.String() != "F16" || x.Dims[0] != 32 || x.Dims[1] != 64 || x.Dims[2] != 5 {
		t.Errorf("down projection: %+v", x)
	}
}

func TestPresetAndSeed(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{}
	for name, args := range map[string][]string{
		"a.gguf": {"--seed", "1"}, "b.gguf": {"--seed", "1"}, "c.gguf": {"--seed", "2"},
	} {
		path := filepath.Join(dir, name)
		code, out, errs := call(t.Context(), append(args, "--quiet", "--layers", "1", "--experts", "4", path)...)
		if code != cli.Done || out != "" || errs != "" {
			t.Fatalf("exit %d: %q %q", code, out, errs)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(b)
	}
	if files["a.gguf"] != files["b.gguf"] || files["a.gguf"] == files["c.gguf"] {
		t.Error("the bytes do not depend on the seed alone")
	}
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, c := range []struct {
		ctx  context.Context
		args []string
		code int
		text string
	}{
		{t.Context(), []string{"--help"}, cli.Done, ""},
		{t.Context(), nil, cli.Usage, "--out"},
		{t.Context(), []string{"-o", path, "more"}, cli.Usage, `"more"`},
		{t.Context(), []string{"-o", path, "--no-such-flag"}, cli.Usage, "no-such-flag"},
		{t.Context(), []string{"-o", path, "--layers", "many"}, cli.Usage, "layers"},
		{t.Context(), []string{"-o", path, "--layers", "0"}, cli.Usage, "layers is 0"},
		{t.Context(), []string{"-o", path, "--preset", "huge"}, cli.Usage, `preset "huge"`},
		{t.Context(), []string{"-o", path, "--type", "Q9"}, cli.Usage, `type "Q9"`},
		{t.Context(), []string{"-o", path, "--type", "Q4_K", "--expert-ff", "32"}, cli.Usage, "blocks of 256"},
		{t.Context(), []string{"-o", filepath.Join(dir, "none", "m.gguf")}, cli.Failed, filepath.Join(dir, "none", "m.gguf")},
		{t.Context(), []string{"-o", dir}, cli.Failed, "is a directory"},
		{stopped, []string{"-o", path}, cli.Interrupted, "interrupted"},
	} {
		code, out, errs := call(c.ctx, c.args...)
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args, code, errs, c.code, c.text)
		}
		if (code == cli.Done) == (out == "") || (errs != "") != (code != cli.Done) || strings.Count(errs, "\n") > 1 {
			t.Errorf("%q: printed %q and %q", c.args, out, errs)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := &progress{w: &b, total: 200 << 20, start: clock.Now()}
	p.report(1 << 20)
	if b.Len() != 0 {
		t.Errorf("shown at once: %q", b.String())
	}
	p.start -= int64(2 * time.Second)
	p.report(50 << 20)
	p.report(51 << 20) // too soon after the last
	p.end()
	if got := b.String(); !strings.HasPrefix(got, "\r50.0 MiB of 200 MiB, 25% ") || strings.Contains(got, "51") || !strings.HasSuffix(got, "\r") {
		t.Errorf("shown: %q", got)
	}
	var none *progress
	none.report(1)
	none.end()
}
