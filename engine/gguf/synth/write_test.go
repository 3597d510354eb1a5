package synth

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/engine/quant"
	"bmoe/internal/conform"
)

// small is a shape that all types allow.
func small(t testing.TB) Spec {
	s, err := Preset("tiny")
	must(t, err)
	s.Layers, s.Experts, s.Vocab = 2, 6, 400
	return s
}

func TestEveryTypeOpens(t *testing.T) {
	for _, name := range Types() {
		for _, tied := range []bool{false, true} {
			s := small(t)
			s.Type, s.Tied = name, tied
			path := filepath.Join(conform.TempDir(t), "m.gguf")
			must(t, Write(path, s))
			f, err := gguf.Open(path)
			must(t, err)
			want := 2 + 12*s.Layers
			if !tied {
				want++
			}
			if _, ok := f.Tensor("output.weight"); ok == tied || len(f.Tensors) != want {
				t.Errorf("%s, tied %v: %d tensors, output.weight %v", name, tied, len(f.Tensors), ok)
			}
			for _, key := range []string{"block_count", "expert_count", "expert_used_count", "embedding_length", "vocab_size"} {
				if n, err := f.Meta.Int("qwen3moe." + key); err != nil || n < 1 {
					t.Errorf("%s: %d, %v", key, n, err)
				}
			}
		}
	}
}

// The types of llama.cpp's own Q4_K_M files: of one layer (where the shared
// file was quantised by it), and of Qwen3-30B-A3B's 48.
func TestQ4KMMix(t *testing.T) {
	kinds := func(layers int, tied bool) map[string]quant.Type {
		s := small(t)
		s.Layers, s.Tied, s.Type = layers, tied, "Q4_K_M"
		list, err := s.weights()
		must(t, err)
		m := map[string]quant.Type{}
		for _, w := range list {
			m[w.name] = w.kind
		}
		return m
	}
	one := kinds(1, true)
	for name, want := range map[string]quant.Type{
		"token_embd.weight": quant.Q6_K, "blk.0.attn_q.weight": quant.Q4_K, "blk.0.attn_k.weight": quant.Q4_K, "blk.0.attn_v.weight": quant.Q6_K,
		"blk.0.attn_output.weight": quant.Q4_K, "blk.0.ffn_gate_exps.weight": quant.Q4_K, "blk.0.ffn_up_exps.weight": quant.Q4_K,
		"blk.0.ffn_down_exps.weight": quant.Q6_K, "blk.0.ffn_gate_inp.weight": quant.F32, "blk.0.attn_norm.weight": quant.F32,
	} {
		if one[name] != want {
			t.Errorf("one layer: %s is %v, want %v", name, one[name], want)
		}
	}
	all := kinds(48, false)
	if all["token_embd.weight"] != quant.Q4_K || all["output.weight"] != quant.Q6_K {
		t.Errorf("embedding %v, head %v", all["token_embd.weight"], all["output.weight"])
	}
	var better []string
	for i := range 48 {
		name := "blk." + strconv.Itoa(i)
		if all[name+".attn_v.weight"] != all[name+".ffn_down_exps.weight"] {
			t.Errorf("layer %d: values and down projections differ", i)
		}
		if all[name+".attn_v.weight"] == quant.Q6_K {
			better = append(better, strconv.Itoa(i))
		}
	}
	if got := strings.Join(better, " "); got != "0 1 2 3 4 5 8 11 14 17 20 23 26 29 32 35 38 41 42 43 44 45 46 47" {
		t.Errorf("better layers: %s", got)
	}
}

// The same spec gives the same bytes on any number of cores, and split; another
// seed gives others.
func TestBytesDependOnSpecAlone(t *testing.T) {
	s := small(t)
	s.Type = "Q4_K_M"
	dir := conform.TempDir(t)
	data := func(name string, s Spec) map[string]string {
		path := filepath.Join(dir, name)
		must(t, Write(path, s))
		f, err := gguf.Open(gguf.ShardPaths(path, max(1, s.Shards))[0])
		must(t, err)
		out := map[string]string{}
		for _, x := range f.Tensors {
			b, err := os.ReadFile(f.Shards[x.Shard].Path)
			must(t, err)
			out[x.Name] = string(b[x.Offset : x.Offset+x.Size])
		}
		return out
	}
	a := data("a.gguf", s)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(7))
	b := data("b.gguf", s)
	fileA, err := os.ReadFile(filepath.Join(dir, "a.gguf"))
	must(t, err)
	fileB, err := os.ReadFile(filepath.Join(dir, "b.gguf"))
	must(t, err)
	if !bytes.Equal(fileA, fileB) {
		t.Error("the bytes depend on the number of cores")
	}
	s.Shards = 3
	c := data("c.gguf", s)
	s.Seed = 1
	d := data("d.gguf", s)
	for name := range a {
		if a[name] != b[name] || a[name] != c[name] {
			t.Errorf("%s depends on cores or shards", name)
		}
		if a[name] == d[name] {
			t.Errorf("%s does not depend on the seed", name)
		}
		for other := range a {
			if name != other && a[name] == a[other] {
				t.Errorf("%s equals %s", name, other)
			}
		}
	}
}

func TestSpecsRefused(t *testing.T) {
	for words, change := range map[string]func(*Spec){
		"layers is 0":       func(s *Spec) { s.Layers = 0 },
		"used is 7":         func(s *Spec) { s.Used = 7 },
		"experts is 1":      func(s *Spec) { s.Experts = 1 },
		"kv-heads is 9":     func(s *Spec) { s.KVHeads = 9 },
		"heads (8)":         func(s *Spec) { s.KVHeads = 3 },
		"head-dim is 33":    func(s *Spec) { s.HeadDim = 33 },
		"vocab is 259":      func(s *Spec) { s.Vocab = 259 },
		"yarn is":           func(s *Spec) { s.Yarn = 0.5 },
		`unknown type "Q9"`: func(s *Spec) { s.Type = "Q9" },
		"blocks of 256":     func(s *Spec) { s.Type, s.ExpertFF = "Q4_K", 128 },
		"over 40 files":     func(s *Spec) { s.Shards = 40 },
		"shards is -1":      func(s *Spec) { s.Shards = -1 },
	} {
		s := small(t)
		change(&s)
		dir := conform.TempDir(t)
		err := Write(filepath.Join(dir, "m.gguf"), s)
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("want %q, got %v", words, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: left behind %v", words, left)
		}
	}
	if _, err := Preset("huge"); err == nil || !strings.Contains(err.Error(), "qwen3-30b-a3b, ") {
		t.Errorf("unknown preset: %v", err)
	}
}

func TestInterruptedLeavesNothing(t *testing.T) {
	dir := conform.TempDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	m, err := New(small(t))
	must(t, err)
	err = m.Write(ctx, filepath.Join(dir, "m.gguf"), func(done int64) {
		if done < 1 || done > m.Bytes() {
			t.Errorf("%d of %d bytes done", done, m.Bytes())
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind %v", left)
	}
}
