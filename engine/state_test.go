package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"bmoe/engine/backend"
	"bmoe/engine/chat"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/model"
	"bmoe/profile"
)

// recurrentArch is a model whose state goes back to marks only, as a recurrent
// layer's does. It computes what the model within does.
type recurrentArch struct{ model.Arch }

func (r recurrentArch) NewState(n int, kv attn.KVType) (model.State, error) {
	st, err := r.Arch.NewState(n, kv)
	return &recurrentState{State: st}, err
}

func (r recurrentArch) Forward(ctx context.Context, st model.State, ids []int32, logits []float32) error {
	s := st.(*recurrentState)
	if s.dirty {
		return errors.New("forward on a dirty state")
	}
	s.dirty = true
	if err := r.Arch.Forward(ctx, s.State, ids, logits); err != nil {
		return err
	}
	s.dirty = false
	s.computed += len(ids)
	return nil
}

type recurrentState struct {
	model.State
	marks    []int
	dirty    bool
	computed int // positions that went through Forward
}

func (s *recurrentState) Mark(n int) error {
	if s.dirty || n < s.Len() {
		return errors.New("mark of a dirty state, or of what is gone")
	}
	if n > 0 && !slices.Contains(s.marks, n) {
		if len(s.marks) == 4 {
			s.marks = slices.Delete(s.marks, 1, 2)
		}
		s.marks = append(s.marks, n)
		slices.Sort(s.marks)
	}
	return nil
}

func (s *recurrentState) Rewind(n int) (int, error) {
	if n != s.Len() || s.dirty {
		for len(s.marks) > 0 && s.marks[len(s.marks)-1] > n {
			s.marks = s.marks[:len(s.marks)-1]
		}
		n = 0
		if len(s.marks) > 0 {
			n = s.marks[len(s.marks)-1]
		}
	}
	s.dirty = false
	return s.State.Rewind(n)
}

func (s *recurrentState) Marks() model.Marks { return model.Marks{Kept: len(s.marks), Most: 4} }

// openRecurrent opens the demo as a model whose state cannot be truncated.
func openRecurrent(t *testing.T, cfg Config) (*Session, *recurrentState) {
	t.Helper()
	s := open(t, cfg)
	s.arch = recurrentArch{s.arch}
	st := &recurrentState{State: s.state}
	s.state = st
	return s, st
}

// dropThoughts is a template that leaves the model's earlier answers' first word
// out, as others leave out what it thought.
const dropThoughts = `{%- for m in messages -%}
{{ '<s>' + m.role + ': ' + (m.content.split(' ')[1:] | join(' ') if m.role == 'assistant' else m.content) + '</s>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<s>assistant: ' }}{%- endif -%}`

const plainTemplate = `{%- for m in messages -%}
{{ '<s>' + m.role + ': ' + m.content + '</s>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<s>assistant: ' }}{%- endif -%}`

// TestChatOfARecurrentModel: each turn goes back to the nearest mark at or before
// the first id that changed, so that what it computes is about as much as is new, and
// the text is that of a model that can go back to anywhere.
func TestChatOfARecurrentModel(t *testing.T) {
	for name, template := range map[string]string{"as it was": plainTemplate, "changed": dropThoughts} {
		t.Run(name, func(t *testing.T) {
			cfg := demoConfig()
			cfg.Template, cfg.Ctx, cfg.Cache.Share = template, 400, 1
			want := open(t, cfg)
			s, st := openRecurrent(t, cfg)
			system := chat.Message{Role: chat.System, Content: "You tell stories to small children. They are short and end well. Nobody is hurt in them."}
			for _, s := range []*Session{want, s} {
				s.conversation.Append(system)
			}
			run := func(again bool, text string) (*backend.Run, *backend.Run) {
				t.Helper()
				ask := func(s *Session) *backend.Run {
					do := func() (*backend.Run, error) {
						return s.Generate(context.Background(), backend.Request{Text: text, MaxTokens: 10})
					}
					if again {
						do = func() (*backend.Run, error) { return s.Again(context.Background(), nil) }
					}
					r, err := do()
					if err != nil || r.Err != nil {
						t.Fatal(err, r.Err)
					}
					return r
				}
				before := st.computed
				a, b := ask(want), ask(s)
				if fmt.Sprint(a.Result.TokenIDs) != fmt.Sprint(b.Result.TokenIDs) {
					t.Errorf("%q: the text is another: %q, want %q", text, b.Result.Text, a.Result.Text)
				}
				if n := st.computed - before; n > b.Result.NPrompt-b.Result.NCached+b.Result.NGen {
					t.Errorf("%q: %d positions were computed", text, n)
				}
				return a, b
			}
			for i, text := range []string{"Tell me about a dog and a big red ball.", "And then? What did the dog do with the ball?", "What did they eat for dinner?"} {
				a, b := run(false, text)
				// What is computed beyond the first change is at most the last answer.
				if late := a.Result.NCached - b.Result.NCached; i > 0 && (b.Result.NCached == 0 || late > 12) {
					t.Errorf("turn %d went back to %d, the first change is at %d; marks at %v", i+1, b.Result.NCached, a.Result.NCached, st.marks)
				}
				_, c := run(true, text)
				if c.Result.NCached != b.Result.NCached || c.StartKey != b.StartKey {
					t.Errorf("turn %d started at %d, repeated at %d; marks at %v", i+1, b.Result.NCached, c.Result.NCached, st.marks)
				}
			}
			var snap profile.Snapshot
			if s.Snapshot(&snap); snap.KV.Marks != len(st.marks) || snap.KV.MostMarks != 4 || snap.KV.Bytes != st.Bytes() {
				t.Errorf("marks at %v are shown as %+v", st.marks, snap.KV)
			}
			// A new chat has the system prompt in common.
			var shared []int
			for _, s := range []*Session{want, s} {
				s.NewChat()
				s.conversation.Append(system)
			}
			a, b := run(false, "Why is the sky blue?")
			if shared = []int{a.Result.NCached, b.Result.NCached}; shared[1] < 16 || shared[1] != shared[0] {
				t.Errorf("a new chat begins at %d, the first change is at %d", shared[1], shared[0])
			}
			// A cancelled answer leaves the state where it cannot stay.
			ctx, cancel := context.WithCancel(context.Background())
			n := 0
			r, err := s.Generate(ctx, backend.Request{Text: "Sing me a song", MaxTokens: 10, OnDelta: func(backend.Delta) {
				if n++; n == 3 {
					cancel()
				}
			}})
			if err != nil || !errors.Is(r.Err, context.Canceled) || !st.dirty {
				t.Fatalf("cancelled: %v, %v; dirty %v", err, r.Err, st.dirty)
			}
			c, err := s.Again(context.Background(), nil)
			if err != nil || c.Err != nil {
				t.Fatal(err, c.Err)
			}
			if c.Result.NCached != r.Result.NCached || !slices.Equal(c.Result.TokenIDs[:len(r.Result.TokenIDs)], r.Result.TokenIDs) {
				t.Errorf("repeated after a cancellation at %d, it was %d: %q, before %q", c.Result.NCached, r.Result.NCached, c.Result.Text, r.Result.Text)
			}
		})
	}
}
