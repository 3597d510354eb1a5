package tui

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
	"bmoe/profile"
	"bmoe/tui/term"
	"bmoe/tui/view"
)

func plainSession(t *testing.T, f *fakeEngine, in string, environ ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := Run(context.Background(), Options{Name: "demo", Plain: true, Input: strings.NewReader(in), Output: &out,
		Environ: append([]string{"TERM=xterm", "LANG=C.UTF-8"}, environ...),
		Open: func(p func(string, float64)) (backend.Backend, error) {
			p("dense weights", 0)
			p("dense weights", 0.5)
			p("cache", 0)
			return f, nil
		}})
	return out.String(), err
}

func TestPlainChat(t *testing.T) {
	f := newFake()
	f.warnings = []string{"the budget is below one token cycle"}
	out, err := plainSession(t, f, strings.Join([]string{
		"/again", "first line\\", "second line", "/release on", "/again", "/lanes 99", "/lanes 2", "/cache 500", "/overlap", "/runs", "/why", "/new", "/what", "/help", "/quit", "never read",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "plain", out)
	if len(f.prompts) != 1 || f.prompts[0] != "first line\nsecond line" {
		t.Errorf("sent %q", f.prompts)
	}
	if !f.closed {
		t.Error("the engine was not closed")
	}
	if strings.ContainsAny(out, "\x1b\r") {
		t.Error("plain mode moves the cursor")
	}
}

// The chat without a screen tells of experts, layers, notes and files too.
func TestPlainTellsOfExpertsAndRuns(t *testing.T) {
	to := filepath.Join(conform.TempDir(t), "runs.csv")
	out, err := plainSession(t, newFake(), "/layers\n/experts\n/note early\nfirst\n/layers\n/experts\n/note the lid was open\n/runs\n/export "+to+"\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"n/a: what layers cost is told of an answer's tokens", "[no run yet]", "a token waits 155 ms; half of that in 13 of 40 layers", "layer 6: waits 7.00 ms (4.5 % of all), hits 91.6 %",
		"of 10240 in memory, policy lru", "[noted on run 1]", "  note: the lid was open", "[written to " + to + "]"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if b, err := os.ReadFile(to); err != nil || !strings.Contains(string(b), ",the lid was open,") {
		t.Errorf("%v\n%s", err, b)
	}
}

func TestPlainEndsWithItsInput(t *testing.T) {
	f := newFake()
	f.failWith = errors.New("the prompt has 5000 tokens, the context 4096")
	out, err := plainSession(t, f, "hello\n", "NO_COLOR=1")
	if err != nil || !strings.Contains(out, "[failed: the prompt has 5000 tokens") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestADumbTerminalGetsThePlainChat(t *testing.T) {
	var out bytes.Buffer
	f := newFake()
	err := Run(context.Background(), Options{Input: strings.NewReader("hi\n"), Output: &out, Environ: []string{"TERM=dumb"},
		Open: func(func(string, float64)) (backend.Backend, error) { return f, nil }})
	if err != nil || !strings.Contains(out.String(), "you: bmoe: (thinking) The lanes") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestPlainLoadError(t *testing.T) {
	bad := errors.New("no such file")
	err := Run(context.Background(), Options{Plain: true, Input: strings.NewReader(""), Output: new(bytes.Buffer), Environ: []string{"TERM=xterm"},
		Open: func(func(string, float64)) (backend.Backend, error) { return nil, bad }})
	if !errors.Is(err, bad) {
		t.Errorf("returned %v", err)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestPlainNoticesAClosedOutput(t *testing.T) {
	f := newFake()
	err := Run(context.Background(), Options{Plain: true, Input: strings.NewReader("hi\n"), Output: brokenPipe{}, Environ: []string{"TERM=xterm"},
		Open: func(func(string, float64)) (backend.Backend, error) { return f, nil }})
	if err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("returned %v", err)
	}
}

// From the second question on /again makes both runs that a comparison needs.
func TestPlainAgainMakesThePair(t *testing.T) {
	f := newFake()
	out, err := plainSession(t, f, "first\nsecond\n/release on\n/again\n/again\n/runs\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"release-mmap off: applied, lanes reopened\nagain, 1 of 2\nbmoe: (thinking)", "[run 3: ", "release-mmap on: applied, lanes reopened\nagain, 2 of 2\nbmoe: (thinking)",
		"[run 4 against run 3 (release-mmap on): faster +", "[run 4 x2 against run 3 (release-mmap on): faster +", "run 4 x2: 2 equal runs, median 4.70 tok/s"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if !f.config().release || len(f.prompts) != 2 {
		t.Errorf("release-mmap %v, prompts %q", f.config().release, f.prompts)
	}
}

// slowReader is an engine that reads its prompt until somebody has been told so.
type slowReader struct {
	*fakeEngine
	told chan string
}

func (e *slowReader) Write(b []byte) (int, error) {
	select {
	case e.told <- string(b):
	default: // once is enough
	}
	return len(b), nil
}

func (e *slowReader) Snapshot(s *profile.Snapshot) {
	e.fakeEngine.Snapshot(s)
	s.Phase, s.Run, s.Prompt, s.PromptDone, s.Elapsed = profile.Prefill, 1, 3000, 500, 2e9
}

func (e *slowReader) Generate(ctx context.Context, r backend.Request) (*backend.Run, error) {
	if got, want := <-e.told, "reading the prompt: 500 of 3000 tokens, about 10 s left\n"; got != want {
		return nil, errors.New(got)
	}
	return e.fakeEngine.Generate(ctx, r)
}

// A prompt that takes long is told of, and so are turns that no longer fit.
func TestPlainSignsOfLife(t *testing.T) {
	e := &slowReader{newFake(), make(chan string)}
	e.s.DroppedTurns = 2
	var out bytes.Buffer
	err := Run(context.Background(), Options{Plain: true, Input: strings.NewReader("hi\nand\n/new\nagain\n"), Output: &out, Errors: e, Environ: []string{"TERM=xterm"},
		Open: func(func(string, float64)) (backend.Backend, error) { return e, nil }})
	if err != nil || strings.Contains(out.String(), "[failed") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if n := strings.Count(out.String(), "\n[the context is full: the oldest 2 turns dropped]\n"); n != 2 { // the fake has dropped them after /new too
		t.Errorf("told %d times of dropped turns:\n%s", n, out.String())
	}
}

// Lines are broken at words, the figures' too.
func TestPlainBreaksLinesAtWords(t *testing.T) {
	var out bytes.Buffer
	p := &plainChat{th: &term.Theme{G: term.ASCIIGlyphs}, eng: newFake(), out: bufio.NewWriter(&out), runs: view.NewRuns(&term.Theme{G: term.ASCIIGlyphs}, "/again"),
		width: func() int { return 30 }, notes: io.Discard}
	p.answer(context.Background(), false, func(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
		return p.eng.Generate(ctx, backend.Request{Text: "hi", OnDelta: onDelta})
	})
	p.flush()
	const want = "bmoe: (thinking) The lanes\ngive one lane's rate, so reads\nare served in turn.\n(answer) Because the model\nfile is mapped: on this host\n"
	if !strings.HasPrefix(out.String(), want) {
		t.Errorf("got %q", out.String())
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if len(line) > 30 {
			t.Errorf("%q has %d columns", line, len(line))
		}
	}
}

// What one token waited for is told of where the engine knows.
func TestWhyAToken(t *testing.T) {
	f := newFake()
	out, err := plainSession(t, f, "/why 3\nhello\n/why 3\n/why slowest\n/why 4000\n/why -1\n/why soon\n")
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[string]int{"you: no run yet": 1, "you: token 3 took 312 ms": 1, "you: token 12 took 402 ms": 1, "7 experts missed": 2,
		"you: the run has no token 4000, or it is no longer known": 1, "you: usage: /why, /why N for the N-th token of the last answer, or /why slowest": 2} {
		if strings.Count(out, want) != n {
			t.Errorf("%q %d times in\n%s", want, strings.Count(out, want), out)
		}
	}
}

// The chat without a screen edits, answers anew and attaches files too.
func TestPlainOutgoing(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "notes.txt")
	if err := os.WriteFile(path, []byte("some notes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := seeded()
	out, err := plainSession(t, f, "/edit hm\n/file\n/file "+path+"x\n/file "+path+"\n/file\nfirst\nsecnd\n/edit\n/edit second\n/regenerate\n/regenerate same\n/regenerate often\n/file "+path+"\n/file off\n")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"you: nothing has been said yet", "you: usage: /file PATH", "no such file", "with the next message: notes.txt, 11 bytes: about 3 tokens, 4096 left",
		"usage: /edit TEXT, in place of: secnd", "[answered anew with seed 2; before it was 1]", "seed 2: applied", "[answered anew with the same seed, 2]", "usage: /regenerate", "no file goes with the next message"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if got, want := fmt.Sprintf("%q", f.prompts), `["File notes.txt:\n`+"```"+`\nsome notes\n`+"```"+`\n\nfirst" "secnd" "second" "second" "second"]`; got != want {
		t.Errorf("sent %s, want %s", got, want)
	}
	if n := len(f.Chat().Messages); n != 4 {
		t.Errorf("the conversation has %d messages", n)
	}
}
