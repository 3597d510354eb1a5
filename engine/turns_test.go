package engine

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/chat"
	"bmoe/engine/model"
	"bmoe/internal/conform"
)

// prompter computes what the model within does, and says what it is told to.
type prompter struct {
	model.Arch
	answers [][]int32 // one for each run to come
	rest    []int32
	logits  [][]float32 // that the model gave, of the run in progress
}

func (m *prompter) Forward(ctx context.Context, st model.State, ids []int32, logits []float32) error {
	if err := m.Arch.Forward(ctx, st, ids, logits); err != nil || logits == nil {
		return err
	}
	m.logits = append(m.logits, slices.Clone(logits))
	if len(m.rest) == 0 {
		m.rest, m.answers = m.answers[0], m.answers[1:]
	}
	clear(logits)
	logits[m.rest[0]] = 10
	m.rest = m.rest[1:]
	return nil
}

// thoughtsKept and thoughtsDropped are templates whose answers begin with a thought,
// which the next turn shows or leaves out.
const (
	thoughtsKept = `{%- for m in messages -%}
{{ '<|im_start|>' + m.role + '\n' }}{%- if m.reasoning_content -%}{{ '<think>\n' + m.reasoning_content + '\n</think>\n\n' }}{%- endif -%}{{ m.content + '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n' }}{%- endif -%}`
	thoughtsDropped = `{%- for m in messages -%}
{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<|im_start|>assistant\n<think>\n' }}{%- endif -%}`
)

// TestTurnsOfHybridModels: a chat of three turns, with recurrent, windowed, compressed
// and latent memory. Nothing before the first changed token is computed again: with a
// template that keeps everything the whole of the last answer is kept, with one that
// drops thoughts all up to it. The logits are those of a fresh prefill of the same ids,
// and the third turn repeats exactly.
func TestTurnsOfHybridModels(t *testing.T) {
	for _, arch := range []string{"qwen35moe", "qwen3next", "lfm2moe", "nemotron_h_moe", "bailingmoe3", "qwen4exp", "laguna", "gpt-oss", "gemma4", "deepseek2", "deepseek4"} {
		cfg := smallModel(t, arch)
		for _, c := range []struct {
			name, template string
			opened         bool // the prompt opens the thought
			kept           bool
		}{
			{"kept", thoughtsKept, false, true}, {"dropped", thoughtsDropped, true, false}, {"Qwen3.5", "", true, false},
		} {
			if !c.kept && slices.Contains([]string{"bailingmoe3", "qwen4exp", "laguna"}, arch) {
				continue // of other kinds of memory, which marks treat alike
			}
			t.Run(arch+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				if c.template == "" {
					real, err := os.ReadFile(conform.Shared(t, "conformance/templates/Qwen3.5-4B.jinja"))
					if err != nil {
						t.Fatal(err)
					}
					c.template = string(real)
				}
				threeTurns(t, cfg, c.template, c.opened, c.kept)
			})
		}
	}
}

func threeTurns(t *testing.T, cfg Config, template string, opened, kept bool) {
	cfg.Template, cfg.UBatch = template, 16
	s, fresh := open(t, cfg), open(t, cfg)
	m := &prompter{Arch: s.arch}
	s.arch = m
	s.conversation.Append(chat.Message{Role: chat.System, Content: "You know all about small animals."})
	encode := func(text string) []int32 { return s.text.Tokenizer.EncodePrompt(text, nil) }
	answer := func(thought, text string) []int32 {
		whole := "<think>\n" + thought + "\n</think>\n\n" + text + "<|im_end|>"
		if opened {
			whole = strings.TrimPrefix(whole, "<think>\n")
		}
		return encode(whole)
	}
	// check compares the run's logits with those of a fresh prefill.
	check := func(what string, r *backend.Run, err error) {
		t.Helper()
		if err != nil || r.Err != nil {
			t.Fatal(what, err, r)
		}
		want, err := fresh.Eval(context.Background(), s.ids, false)
		if err != nil {
			t.Fatal(err)
		}
		vocab := s.arch.Info().Vocab
		want = want[(r.Result.NPrompt-1)*vocab:]
		if len(m.logits) != r.Result.NGen+1 || !slices.Equal(slices.Concat(m.logits...), want) {
			t.Errorf("%s: other logits than a fresh prefill's", what)
		}
	}
	var before *backend.Run
	cached := 0
	for i, turn := range []struct{ ask, thought, text string }{
		{"What does a mouse eat?", "It is small.\nIt likes grain.", "Grain, and what falls from tables."},
		{"And what eats the mouse?", "Cats do. So do owls.", "Cats and owls."},
		{"Who eats the owl?", "Hardly anybody.", "Nobody does."},
	} {
		ids, seen := answer(turn.thought, turn.text), slices.Clone(s.ids)
		m.answers, m.logits = append(m.answers, ids), nil
		r, err := s.Generate(context.Background(), backend.Request{Text: turn.ask})
		check(turn.ask, r, err)
		if r.Result.Text != turn.text || r.Result.Reasoning != turn.thought || r.Result.NGen != len(ids)-1 {
			t.Errorf("thought %q and said %q in %d tokens", r.Result.Reasoning, r.Result.Text, r.Result.NGen)
		}
		if i > 0 {
			want := cached
			if kept {
				want = before.Result.NPrompt + before.Result.NGen
			}
			// Windowed layers alone still have what lies a little before the end; plain
			// keys and values have all that is the same.
			most := want
			switch same := chat.CommonPrefix(seen, s.ids[:r.Result.NPrompt]); s.arch.Info().Arch {
			case "gpt-oss", "laguna", "gemma4":
				most = same
			case "deepseek2":
				want, most = same, same
			}
			if n := r.Result.NCached; n < want || n > most {
				t.Errorf("turn %d: %d of %d tokens were kept, want %d to %d", i+1, n, r.Result.NPrompt, want, most)
			}
		}
		// What the next turn keeps if this answer changes: all up to the user's message.
		_, asked, err := s.text.render(t.Context(), s.conversation.Messages[:len(s.conversation.Messages)-1], nil, false)
		if err != nil {
			t.Fatal(err)
		}
		before, cached = r, len(asked)
	}
	for range 2 {
		m.answers, m.logits = append(m.answers, answer("Hardly anybody.", "Nobody does.")), nil
		again, err := s.Again(context.Background(), nil)
		check("again", again, err)
		if again.Result.NCached != before.Result.NCached || !slices.Equal(again.Result.TokenIDs, before.Result.TokenIDs) || again.StartKey != before.StartKey {
			t.Errorf("again kept %d tokens and said %q, before %d and %q", again.Result.NCached, again.Result.Text, before.Result.NCached, before.Result.Text)
		}
	}
}
