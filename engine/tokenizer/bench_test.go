package tokenizer

import (
	"compress/gzip"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/internal/conform"
)

// english is about 1 MB of prose with few repetitions: words of a Zipf-like
// distribution, punctuation, numbers and line ends.
func english(n int) string {
	rng := rand.New(rand.NewPCG(1, 2))
	var words []string
	for range 20000 {
		var w strings.Builder
		for range 1 + rng.IntN(9) {
			w.WriteByte("eeeeetttaaooiinnsshhrrddllucmfwygpbvkqxjz"[rng.IntN(41)])
		}
		words = append(words, w.String())
	}
	var b strings.Builder
	for b.Len() < n {
		w := words[int(float64(len(words))*rng.Float64()*rng.Float64()*rng.Float64())]
		switch rng.IntN(20) {
		case 0:
			b.WriteString(", " + w)
		case 1:
			b.WriteString(".\n\n" + strings.ToUpper(w[:1]) + w[1:])
		case 2:
			b.WriteString(" 2026 isn't " + w)
		default:
			b.WriteString(" " + w)
		}
	}
	return b.String()
}

// source is this package's own code, repeated.
func source(tb testing.TB, n int) string {
	var b strings.Builder
	for b.Len() < n {
		for _, name := range []string{"bpe.go", "split.go", "vocab.go", "shared_test.go"} {
			text, err := os.ReadFile(name)
			if err != nil {
				tb.Fatal(err)
			}
			b.Write(text)
		}
	}
	return b.String()
}

func BenchmarkEncode(b *testing.B) {
	tok := openQwen3(b)
	rng := rand.New(rand.NewPCG(3, 4))
	random := make([]byte, 1<<20)
	for i := range random {
		random[i] = byte('a' + rng.IntN(26))
	}
	for _, c := range []struct{ name, text string }{
		{"prose", english(1 << 20)},
		{"code", source(b, 1<<20)},
		{"russian", strings.Repeat("Съешь же ещё этих мягких французских булок, да выпей чаю. ", 9000)},
		{"chinese", strings.Repeat("天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。寒来暑往，秋收冬藏。", 10000)},
		{"onepiece", string(random)},
		{"oneletter", strings.Repeat("a", 1<<20)},
		{"spaces", strings.Repeat(" ", 1<<20)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			b.ReportAllocs()
			for b.Loop() {
				tok.Encode(c.text, Options{ParseSpecial: true})
			}
		})
	}
}

func BenchmarkSplit(b *testing.B) {
	text, split := english(1<<20), preQwen2.stages[0]
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for i := 0; i < len(text); {
			i = split(text, i)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	tok := openQwen3(b)
	text := english(1 << 18)
	ids := tok.Encode(text, Options{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		d := tok.NewDecoder()
		for _, id := range ids {
			d.Push(id)
		}
	}
}

func qwen3File(b *testing.B) string {
	f, err := os.Open(conform.Shared(b, "tokenizers/vocab-qwen3.gguf.gz"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	return written(b, raw)
}

// BenchmarkLoad makes a tokenizer with the real 151,669 tokens; BenchmarkOpen
// reads the file too.
func BenchmarkLoad(b *testing.B) {
	g, err := gguf.Open(qwen3File(b))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		mustNew(b, g.Meta)
	}
}

func BenchmarkOpen(b *testing.B) {
	path := qwen3File(b)
	b.ReportAllocs()
	for b.Loop() {
		g, err := gguf.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		mustNew(b, g.Meta)
	}
}
