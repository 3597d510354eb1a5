package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/chat"
	"bmoe/engine/gguf"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/model"
	"bmoe/internal/conform"
)

// scripted is a model that says what it is told to, token by token, whatever it
// is asked. Each run begins with the next answer.
type scripted struct {
	model.Arch
	vocab   int
	answers [][]int32
	rest    []int32
	last    int32
}

func (m *scripted) Info() model.Info {
	i := m.Arch.Info()
	i.Vocab = m.vocab
	return i
}

func (m *scripted) NewState(n int, _ attn.KVType) (model.State, error) {
	return &scriptedState{cap: n}, nil
}

func (m *scripted) Forward(_ context.Context, st model.State, ids []int32, logits []float32) error {
	st.(*scriptedState).n += len(ids)
	if logits == nil {
		return nil
	}
	if len(ids) != 1 || ids[0] != m.last { // a prompt
		m.rest, m.answers = m.answers[0], m.answers[1:]
	}
	clear(logits)
	m.last, m.rest = m.rest[0], m.rest[1:]
	logits[m.last] = 10
	return nil
}

// scriptedState remembers only how much it was shown.
type scriptedState struct{ n, cap int }

func (s *scriptedState) Len() int                  { return s.n }
func (s *scriptedState) Cap() int                  { return s.cap }
func (s *scriptedState) Mark(int) error            { return nil }
func (s *scriptedState) Rewind(n int) (int, error) { s.n = n; return n, nil }
func (s *scriptedState) Marks() model.Marks        { return model.Marks{} }
func (s *scriptedState) Bytes() int64              { return 0 }
func (s *scriptedState) Save(io.Writer) error      { return errors.ErrUnsupported }
func (s *scriptedState) Load(io.Reader) error      { return errors.ErrUnsupported }
func (s *scriptedState) Close() error              { return nil }

// gptOSSText opens a file with the special tokens of gpt-oss, the bytes, and its
// template.
func gptOSSText(t *testing.T) *Text {
	t.Helper()
	var part struct {
		Model, Pre string
		EOS        int64
		Tokens     []string
		Types      []int32
		Merges     []string
	}
	b, err := os.ReadFile(filepath.Join("tokenizer", "testdata", "gptoss.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &part); err != nil {
		t.Fatal(err)
	}
	template, err := os.ReadFile(filepath.Join("chat", "jinja", "testdata", "openai-gpt-oss-120b.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	w := gguf.NewWriter()
	for key, x := range map[string]any{"general.architecture": "gpt-oss", "tokenizer.ggml.model": part.Model, "tokenizer.ggml.pre": part.Pre,
		"tokenizer.ggml.tokens": part.Tokens, "tokenizer.ggml.token_type": part.Types, "tokenizer.ggml.merges": part.Merges,
		"tokenizer.ggml.eos_token_id": uint32(part.EOS), "tokenizer.chat_template": string(template)} {
		if err := w.Set(key, x); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(conform.TempDir(t), "gpt-oss.gguf")
	out, err := w.Create(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := OpenText(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestChannelsOfGPTOSS: analysis is shown as thought and final as the answer, in
// the deltas, the result and the next turn; marks and end tokens show nowhere.
func TestChannelsOfGPTOSS(t *testing.T) {
	cfg := demoConfig()
	cfg.Ctx = 1024 // the template's own words, in a vocabulary cut short
	s := open(t, cfg)
	s.text = gptOSSText(t)
	m := &scripted{Arch: s.arch, vocab: s.text.Tokenizer.Len()}
	s.arch, s.state, s.logits = m, &scriptedState{cap: cfg.Ctx}, make([]float32, m.vocab)
	const marks = "<|channel|>analysis<|message|>two and <two><|end|><|start|>assistant<|channel|>final<|message|>Four 🦙."
	whole := s.text.Tokenizer.EncodePrompt(marks, nil)
	// The same marks as text, which a model can spell: no id of a special token in it.
	var spelled []int32
	for _, c := range []byte(marks) {
		spelled = append(spelled, s.text.RawPrompt(string([]byte{c}))...)
	}
	if len(spelled) != len(marks) || len(whole) >= len(spelled) {
		t.Fatalf("%d and %d ids: the case shows nothing", len(whole), len(spelled))
	}
	call := s.text.Tokenizer.EncodePrompt("<|channel|>commentary to=functions.add <|constrain|>json<|message|>{\"a\": 2}<|call|>", nil)
	end := func(text string) []int32 { return s.text.Tokenizer.EncodePrompt(text, nil) }
	for _, c := range []struct {
		name          string
		ids           []int32
		thought, text string
		stop          string
	}{
		{"return", slices.Concat(whole, end("<|return|>")), "two and <two>", "Four 🦙.", stopEOS},
		{"marks in pieces", slices.Concat(spelled, end("<|return|>")), "two and <two>", "Four 🦙.", stopEOS},
		{"call", call, "", "functions.add: {\"a\": 2}", stopEOS},
		{"final only, at the limit", end("<|channel|>final<|message|>one two"), "", "one two", stopLength},
		{"end of text", slices.Concat(whole, end("<|endoftext|>")), "two and <two>", "Four 🦙.", stopEOS},
	} {
		s.NewChat()
		m.answers = append(m.answers, c.ids)
		limit := 0
		if c.stop == stopLength {
			limit = len(c.ids)
			m.answers[0] = append(slices.Clone(c.ids), 0)
		}
		var thought, text strings.Builder
		r, err := s.Generate(context.Background(), backend.Request{Text: "2+2?", MaxTokens: limit, OnDelta: func(d backend.Delta) {
			thought.WriteString(d.Reasoning)
			text.WriteString(d.Text)
		}})
		if err != nil || r.Err != nil {
			t.Fatal(c.name, err, r.Err)
		}
		if r.Result.Text != c.text || r.Result.Reasoning != c.thought || text.String() != c.text || thought.String() != c.thought || r.Result.StopReason != c.stop {
			t.Errorf("%s: thought %q and said %q (shown: %q, %q), stopped by %s; want %q, %q, %s", c.name,
				r.Result.Reasoning, r.Result.Text, thought.String(), text.String(), r.Result.StopReason, c.thought, c.text, c.stop)
		}
		// What the next turn shows of it.
		prompt, _, err := s.text.Prompt(t.Context(), append(slices.Clone(s.conversation.Messages), chat.Message{Role: chat.User, Content: "And?"}), nil)
		if want := "<|start|>assistant<|channel|>final<|message|>" + c.text + "<|end|><|start|>user<|message|>And?<|end|><|start|>assistant"; err != nil || !strings.HasSuffix(prompt, want) {
			t.Errorf("%s: the next prompt is %q, %v; want its end to be %q", c.name, prompt, err, want)
		}
	}
}
