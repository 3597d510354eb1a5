package engine

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
	"bmoe/profile"
)

// keptOf is what a session keeps.
func keptOf(t *testing.T, s *Session) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// asks lets a session answer.
func asks(t *testing.T, s *Session, text string) *backend.Run {
	t.Helper()
	r, err := s.Generate(context.Background(), backend.Request{Text: text, MaxTokens: 20})
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	return r
}

// A conversation that was kept goes on elsewhere with the bits that it would have
// gone on with here, and reads nothing of it again. Models that go back to marks
// only are among them, and templates that change what was said.
func TestKeptChatGoesOn(t *testing.T) {
	for name, c := range map[string]struct{ model, template string }{
		"demo":      {"", plainTemplate},
		"recurrent": {"models/qwen35moe.gguf", plainTemplate},
		"windowed":  {"models/gpt-oss.gguf", plainTemplate},
		"changed":   {"models/qwen35moe.gguf", dropThoughts},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := demoConfig()
			if c.model != "" {
				cfg.Model = conform.File(t, c.model)
				cfg.Cache = Budget{Auto: true}
			}
			cfg.Template, cfg.Ctx = c.template, 600
			s, to := open(t, cfg), open(t, cfg)
			asks(t, s, "Tell me a story about a dog. It is a small dog that likes to run.")
			asks(t, s, "And what did the cat say to that?")
			kept, chat := keptOf(t, s), s.Chat()
			if len(chat.Messages) != 4 {
				t.Fatalf("%d messages", len(chat.Messages))
			}
			to.SetChat(chat)
			if err := to.Load(bytes.NewReader(kept)); err != nil {
				t.Fatal(err)
			}
			var live profile.Snapshot
			if to.Snapshot(&live); live.CtxUsed != len(s.ids) {
				t.Errorf("%d of the context is used, want %d", live.CtxUsed, len(s.ids))
			}
			want, got := asks(t, s, "What then?"), asks(t, to, "What then?")
			if want.Result.NCached == 0 || got.Result.NCached != want.Result.NCached {
				t.Errorf("%d ids are not computed again, want %d", got.Result.NCached, want.Result.NCached)
			}
			if !slices.Equal(got.Result.TokenIDs, want.Result.TokenIDs) || !slices.Equal(to.logits, s.logits) {
				t.Errorf("a kept conversation goes on in another way: %q, want %q", got.Result.Text, want.Result.Text)
			}
			if got.StartKey != want.StartKey {
				t.Error("runs of the same start are not compared")
			}
		})
	}
}

// What belongs to another model, or is damaged, is refused, and the conversation is
// read anew.
func TestKeptStateIsRefused(t *testing.T) {
	cfg := demoConfig()
	cfg.Ctx = 400
	s := open(t, cfg)
	asks(t, s, "Tell me a story.")
	kept, chat := keptOf(t, s), s.Chat()
	want := asks(t, s, "And then?")

	other := cfg
	other.KVType = "f32"
	template := cfg
	template.Template = plainTemplate
	short := cfg
	short.Ctx = 20
	for name, c := range map[string]struct {
		cfg  Config
		kept []byte
		says string
	}{
		"KV type":  {other, kept, "another model"},
		"template": {template, kept, "another model"},
		"context":  {short, kept, "raise {ctx}"},
		"empty":    {cfg, nil, "too early"},
		"cut":      {cfg, kept[:len(kept)-3], "too early"},
		"ids":      {cfg, flip(kept, 50), "damaged"},
		"state":    {cfg, flip(kept, len(kept)-100), "damaged"},
		"no state": {cfg, []byte(strings.Repeat("no state ", 20)), "no saved state"},
	} {
		to := open(t, c.cfg)
		to.SetChat(chat)
		err := to.Load(bytes.NewReader(c.kept))
		if err == nil || !strings.Contains(err.Error(), c.says) || to.state.Len() != 0 || len(to.ids) != 0 {
			t.Errorf("%s: %v, want %q; %d positions", name, err, c.says, to.state.Len())
		}
		if name != "cut" && name != "state" {
			continue
		}
		if got := asks(t, to, "And then?"); got.Result.NCached != 0 || got.Result.Text != want.Result.Text {
			t.Errorf("%s: read anew it says %q with %d ids kept, want %q", name, got.Result.Text, got.Result.NCached, want.Result.Text)
		}
	}
}

func flip(b []byte, at int) []byte {
	b = slices.Clone(b)
	b[at] ^= 1
	return b
}

// Keeping after a stopped answer, and to a place that takes nothing.
func TestKeepWhatWasStopped(t *testing.T) {
	cfg := demoConfig()
	cfg.Ctx = 400
	s, to := open(t, cfg), open(t, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	r, err := s.Generate(ctx, backend.Request{Text: "Tell me a story.", OnDelta: func(backend.Delta) {
		if n++; n == 5 {
			cancel()
		}
	}})
	if err != nil || !errors.Is(r.Err, context.Canceled) {
		t.Fatal(err, r.Err)
	}
	if err := s.Save(full{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a place that takes nothing: %v", err)
	}
	kept := keptOf(t, s)
	to.SetChat(s.Chat())
	if err := to.Load(bytes.NewReader(kept)); err != nil {
		t.Fatal(err)
	}
	if want, got := asks(t, s, "Go on."), asks(t, to, "Go on."); got.Result.Text != want.Result.Text {
		t.Errorf("%q, want %q", got.Result.Text, want.Result.Text)
	}
}

// full takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
