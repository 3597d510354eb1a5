package tokenizer

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

var update = flag.Bool("update", false, "write testdata again, from the shared folder")

// cutVocabulary keeps of a real vocabulary what some texts can need: every byte,
// every special token, and every merge that two neighbours ask for on the way, by
// an implementation of its own that looks at texts only.
func cutVocabulary(t *testing.T, meta Metadata, cases []testCase) *file {
	tok := mustNew(t, meta)
	merges, err := meta.Strings(keyMerges)
	if err != nil {
		t.Fatal(err)
	}
	ranks := map[string]int{}
	for i, m := range merges {
		if _, ok := ranks[m]; !ok {
			ranks[m] = i
		}
	}
	used := map[int]bool{}
	for _, c := range cases {
		for _, piece := range pieces(tok.model.(*bpe).pre.stages, c.Text) {
			mergeTexts(ranks, piece, func(rank int) { used[rank] = true })
		}
	}
	keep := map[int32]bool{}
	need := func(text string) {
		if id, ok := tok.ID(text); ok {
			keep[id] = true
		}
	}
	f := &file{Cases: cases}
	for _, rank := range slices.Sorted(maps.Keys(used)) {
		f.Merges = append(f.Merges, merges[rank])
		left, right, _ := strings.Cut(merges[rank], " ")
		need(left)
		need(right)
		need(left + right)
	}
	for _, r := range byteRunes {
		need(string(r))
	}
	for id, k := range tok.kinds {
		if k != Normal {
			keep[int32(id)] = true
		}
	}
	f.IDs = slices.Sorted(maps.Keys(keep))
	types, err := meta.Ints(keyTokenType)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range f.IDs {
		f.Tokens = append(f.Tokens, tok.texts[id])
		f.Types = append(f.Types, types[id])
	}
	f.Model, err = meta.String(keyModel)
	if err != nil {
		t.Fatal(err)
	}
	if f.Pre, err = meta.String(keyPre); err != nil {
		t.Fatal(err)
	}
	at, ok := slices.BinarySearch(f.IDs, tok.EOS())
	if !ok {
		t.Fatal("EOS is no special token")
	}
	f.EOS = int64(at)
	return f
}

// mergeTexts is byte pair encoding as its definition says, on texts: as long as
// two neighbours have a rank, the leftmost pair of the lowest rank is joined.
func mergeTexts(ranks map[string]int, piece string, seen func(rank int)) []string {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, string(byteRunes[piece[i]]))
	}
	for {
		best, at := -1, 0
		for i := 0; i+1 < len(parts); i++ {
			rank, ok := ranks[parts[i]+" "+parts[i+1]]
			if !ok {
				continue
			}
			seen(rank)
			if best < 0 || rank < best {
				best, at = rank, i
			}
		}
		if best < 0 {
			return parts
		}
		parts = slices.Replace(parts, at, at+2, parts[at]+parts[at+1])
	}
}

// TestUpdate writes testdata; without -update it only checks that it is there.
func TestUpdate(t *testing.T) {
	if !*update {
		for _, name := range []string{"qwen3.json", "gptoss.json", "gpt-2.json"} {
			if _, err := os.Stat(filepath.Join("testdata", name)); err != nil {
				t.Error(err)
			}
		}
		return
	}
	var golden struct{ Cases []testCase }
	for _, name := range []string{"qwen3", "gptoss"} {
		golden.Cases = nil
		readJSON(t, conform.Shared(t, "tokenizers/vocab-"+name+".json"), &golden)
		write(t, name+".json", cutVocabulary(t, openGGUF(t, conform.Shared(t, "tokenizers/vocab-"+name+".gguf.gz")).Meta, golden.Cases))
	}
	golden.Cases = nil
	readJSON(t, conform.Shared(t, "conformance/tokenizers/pre/gpt-2.json"), &golden)
	write(t, "gpt-2.json", cutVocabulary(t, openGGUF(t, conform.Shared(t, "conformance/tokenizers/ggml-vocab-gpt-2.gguf.bz2")).Meta, golden.Cases))
}

func write(t *testing.T, name string, f *file) {
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", name), b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func openPart(tb testing.TB, name string) (*Tokenizer, *file) {
	tb.Helper()
	var f file
	readJSON(tb, filepath.Join("testdata", name), &f)
	return mustNew(tb, f.meta()), &f
}

// llama.cpp's ids, from parts of the real vocabularies.
func TestParts(t *testing.T) {
	for name, n := range map[string]int{"qwen3.json": 60, "gptoss.json": 60, "gpt-2.json": 64} {
		tok, f := openPart(t, name)
		if len(f.Cases) != n {
			t.Errorf("%s: %d cases", name, len(f.Cases))
		}
		for _, c := range f.Cases {
			ids := tok.Encode(c.Text, Options{})
			if got := f.real(ids); !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q: got %v, want %v", name, c.Text, got, c.IDs)
			}
			if text := tok.Decode(ids, false); text != c.Text {
				t.Errorf("%s: %q decodes to %q", name, c.Text, text)
			}
			if c.ParseSpecial == nil {
				continue
			}
			got := f.real(tok.Encode(c.Text, Options{ParseSpecial: true}))
			if !slices.Equal(got, c.ParseSpecial) {
				t.Errorf("%s: %q, special tokens parsed: got %v, want %v", name, c.Text, got, c.ParseSpecial)
			}
		}
	}
}

// The heap, the scan and the definition agree, also on pieces where many merges
// of the same rank touch each other.
func TestMergeLong(t *testing.T) {
	tok, f := openPart(t, "qwen3.json")
	b := tok.model.(*bpe)
	ranks := map[string]int{}
	for i, m := range f.Merges {
		ranks[m] = i
	}
	s := newScratch(tok.table.seed)
	var pieces []string
	for _, c := range f.Cases {
		if len(c.Text) > 1 {
			pieces = append(pieces, c.Text)
		}
	}
	for n := 2; n < 120; n += 7 {
		pieces = append(pieces, strings.Repeat("a", n), strings.Repeat(" ", n), strings.Repeat("the", n), strings.Repeat("\n ", n))
	}
	for _, p := range pieces {
		var want []int32
		for _, text := range mergeTexts(ranks, p, func(int) {}) {
			want = append(want, tok.table.find(tok.texts, text))
		}
		if got := b.mergeLong(nil, p, s); !slices.Equal(got, want) {
			t.Errorf("%q: heap gives %v, want %v", p, got, want)
		}
		if got := b.merge(nil, p, s); len(p) <= shortPiece && !slices.Equal(got, want) {
			t.Errorf("%q: scan gives %v, want %v", p, got, want)
		}
	}
	if len(pieces) < 100 {
		t.Errorf("only %d pieces", len(pieces))
	}
}
