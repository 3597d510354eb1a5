package tokenizer

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

// llama.cpp's ids for 60 texts, with special tokens as text and parsed.
func TestQwen3(t *testing.T) {
	tok := openQwen3(t)
	if tok.Len() != 151669 {
		t.Fatalf("vocabulary of %d", tok.Len())
	}
	var golden struct{ Cases []testCase }
	readJSON(t, conform.Shared(t, "tokenizers/vocab-qwen3.json"), &golden)
	if len(golden.Cases) != 60 {
		t.Fatalf("%d cases", len(golden.Cases))
	}
	for _, c := range golden.Cases {
		if got := tok.Encode(c.Text, Options{}); !slices.Equal(got, c.IDs) {
			t.Errorf("%q: got %v, want %v", c.Text, got, c.IDs)
		}
		got := tok.Encode(c.Text, Options{ParseSpecial: true})
		if !slices.Equal(got, c.ParseSpecial) {
			t.Errorf("%q, special tokens parsed: got %v, want %v", c.Text, got, c.ParseSpecial)
		}
		if text := tok.Decode(got, true); text != c.Text {
			t.Errorf("%q decodes to %q", c.Text, text)
		}
	}
	if mb := tok.Bytes() >> 20; mb < 8 || mb > 20 {
		t.Errorf("the vocabulary takes %d MiB", mb)
	}
	for text, want := range map[string]bool{"<|im_end|>": true, "<|endoftext|>": true, "<|file_sep|>": true, "<|im_start|>": false, "<think>": false} {
		if id, ok := tok.ID(text); !ok || tok.IsEOG(id) != want {
			t.Errorf("%s: id %d, ends a generation: %v", text, id, !want)
		}
	}
	if tok.EOS() != 151645 || tok.eot != 151645 || tok.BOS() != None {
		t.Errorf("EOS %d, EOT %d, BOS %d", tok.EOS(), tok.eot, tok.BOS())
	}
}

// gpt-oss ends a generation with <|return|> and <|call|>; <|end|> ends one of
// several messages, and is for the reader of channels.
func TestGPTOSS(t *testing.T) {
	tok := mustNew(t, openGGUF(t, conform.Shared(t, "tokenizers/vocab-gptoss.gguf.gz")).Meta)
	var golden struct{ Cases []testCase }
	readJSON(t, conform.Shared(t, "tokenizers/vocab-gptoss.json"), &golden)
	if tok.Len() != 200019 || len(golden.Cases) != 60 {
		t.Fatalf("vocabulary of %d, %d cases", tok.Len(), len(golden.Cases))
	}
	for _, c := range golden.Cases {
		if got := tok.Encode(c.Text, Options{}); !slices.Equal(got, c.IDs) {
			t.Errorf("%q: got %v, want %v", c.Text, got, c.IDs)
		}
		got := tok.Encode(c.Text, Options{ParseSpecial: true})
		if !slices.Equal(got, c.ParseSpecial) {
			t.Errorf("%q, special tokens parsed: got %v, want %v", c.Text, got, c.ParseSpecial)
		}
		if text := tok.Decode(got, true); text != c.Text {
			t.Errorf("%q decodes to %q", c.Text, text)
		}
	}
	for text, want := range map[string]bool{"<|return|>": true, "<|call|>": true, "<|endoftext|>": true, "<|end|>": false, "<|start|>": false,
		"<|channel|>": false, "<|message|>": false, "<|constrain|>": false} {
		if id, ok := tok.ID(text); !ok || tok.IsEOG(id) != want {
			t.Errorf("%s: id %d, ends a generation: %v", text, id, !want)
		}
	}
}

// The GPT-2 vocabulary under every pre-tokenizer of the set.
func TestPreTokenizers(t *testing.T) {
	g := openGGUF(t, conform.Shared(t, "conformance/tokenizers/ggml-vocab-gpt-2.gguf.bz2"))
	paths, err := filepath.Glob(filepath.Join(conform.Shared(t, "conformance/tokenizers/pre"), "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range paths {
		pre := strings.TrimSuffix(filepath.Base(path), ".json")
		if pre == "regexes" {
			continue
		}
		if _, ok := preTokenizers[pre]; !ok {
			t.Errorf("%s is not known", pre)
			continue
		}
		tok := mustNew(t, withPre{g.Meta, pre})
		var golden struct{ Cases []testCase }
		readJSON(t, path, &golden)
		if len(golden.Cases) != 64 {
			t.Errorf("%s: %d cases", pre, len(golden.Cases))
		}
		for _, c := range golden.Cases {
			n++
			if got := tok.Encode(c.Text, Options{}); !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q: got %v, want %v", pre, c.Text, got, c.IDs)
			}
		}
	}
	if n != 20*64 {
		t.Errorf("%d texts", n)
	}
}

// Whole vocabularies with the ids that llama.cpp gives for their texts. bert-bge is
// of an embedding model: its kind of tokenizer is refused.
func TestWholeVocabularies(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(conform.Shared(t, "conformance/tokenizers"), "*.gguf.bz2"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range paths {
		base := strings.TrimSuffix(path, ".bz2")
		name := filepath.Base(base)
		meta := openGGUF(t, path).Meta
		if name == "ggml-vocab-bert-bge.gguf" {
			if _, err := New(meta); err == nil || !strings.Contains(err.Error(), "known: ") {
				t.Errorf("%s: error %v", name, err)
			}
			continue
		}
		tok := mustNew(t, meta)
		texts := strings.Split(readText(t, base+".inp"), "\n__ggml_vocab_test__\n")
		lines := strings.Split(strings.TrimRight(readText(t, base+".out"), "\n"), "\n")
		if len(texts) < 46 || len(lines) < 46 {
			t.Fatalf("%s: %d texts, %d lines", name, len(texts), len(lines))
		}
		n++
		for i, line := range lines {
			got := tok.Encode(texts[i], Options{})
			if !slices.Equal(got, parseIDs(t, line)) {
				t.Errorf("%s: %q: got %v, want %s", name, texts[i], got, line)
			}
			want := texts[i]
			if _, ok := tok.model.(*spm); ok && want != "" {
				want = " " + want // the prefix
			}
			if text := tok.Decode(got, true); text != want {
				t.Errorf("%s: %q decodes to %q", name, texts[i], text)
			}
		}
	}
	if n != 9 {
		t.Errorf("%d vocabularies", n)
	}
}

type withPre struct {
	Metadata
	pre string
}

func (m withPre) StringOr(key, def string) (string, error) {
	if key == keyPre {
		return m.pre, nil
	}
	return m.Metadata.StringOr(key, def)
}

func readText(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func parseIDs(t *testing.T, line string) []int32 {
	var ids []int32
	for _, f := range strings.Fields(line) {
		id, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, int32(id))
	}
	return ids
}

// The tiny models' own vocabularies, with BOS added and special tokens rendered.
func TestModels(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(conform.Shared(t, "conformance/models"), "*.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		tok := mustNew(t, openGGUF(t, path).Meta)
		if len(tok.Warnings()) > 0 {
			t.Errorf("%s: warnings %q", path, tok.Warnings())
		}
		var golden struct {
			Tokenize []struct {
				Text         string
				AddSpecial   bool `json:"add_special"`
				ParseSpecial bool `json:"parse_special"`
				IDs          []int32
				Detok        string `json:"detok_unparse_special"`
			}
		}
		name := strings.TrimSuffix(filepath.Base(path), ".gguf")
		readJSON(t, conform.Shared(t, "conformance/golden/"+name+".json"), &golden)
		if len(golden.Tokenize) == 0 {
			t.Errorf("%s: no cases", name)
		}
		for _, c := range golden.Tokenize {
			got := tok.Encode(c.Text, Options{AddSpecial: c.AddSpecial, ParseSpecial: c.ParseSpecial})
			if !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %q: got %v, want %v", name, c.Text, got, c.IDs)
			}
			if text := tok.Decode(c.IDs, true); text != c.Detok {
				t.Errorf("%s: %v decodes to %q, want %q", name, c.IDs, text, c.Detok)
			}
		}
	}
	if len(paths) != 32 {
		t.Errorf("%d models", len(paths))
	}
}

// The demo model: prompts in ChatML as its template renders them.
func TestDemoPrompts(t *testing.T) {
	tok := mustNew(t, openGGUF(t, conform.Shared(t, "demo/tiny-stories-moe-q8_0.gguf")).Meta)
	var greedy struct {
		Cases []struct {
			Prompt    string
			PromptIDs []int32 `json:"prompt_ids"`
			GreedyIDs []int32 `json:"greedy_ids"`
			Text      string
		}
	}
	readJSON(t, conform.Shared(t, "demo/greedy.json"), &greedy)
	if len(greedy.Cases) != 6 {
		t.Errorf("%d cases", len(greedy.Cases))
	}
	for _, c := range greedy.Cases {
		prompt := "<|im_start|>user\n" + c.Prompt + "<|im_end|>\n<|im_start|>assistant\n"
		if got := tok.Encode(prompt, Options{AddSpecial: true, ParseSpecial: true}); !slices.Equal(got, c.PromptIDs) {
			t.Errorf("%q: got %v, want %v", c.Prompt, got, c.PromptIDs)
		}
		if text := tok.Decode(c.GreedyIDs, false); text != c.Text {
			t.Errorf("answer decodes to %q, want %q", text, c.Text)
		}
	}
}
