package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"bmoe/internal/conform"
	"bmoe/internal/userdir"
)

// fails panics on purpose and returns the panic.
func fails(value func() any) (p *Panic) {
	defer func() { p = New("lane", recover(), debug.Stack()) }()
	panic(value())
}

func TestAReportHoldsPlacesAndNoTexts(t *testing.T) {
	t.Setenv(userdir.StateVariable, filepath.Join(conform.TempDir(t), "state"))
	const prompt = "my secret\nprompt\x1b[31m"
	for _, c := range []struct {
		value func() any
		want  string
	}{
		{func() any { return prompt }, "lane: panic with a value of type string in bmoe/internal/crash.fails (crash_test.go:19)"},
		{func() any { return errors.New("no token " + prompt) }, "lane: panic with a value of type *errors.errorString in "},
		{func() any { return struct{ prompt string }{prompt} }, "lane: panic with a value of type struct { prompt string } in "},
		{func() any { return runtimeLike{errors.New(prompt)} }, "lane: panic with a value of type crash.runtimeLike in "},
		{func() any { return []int{}[len(prompt)] },
			"lane: runtime error: index out of range [21] with length 0 in bmoe/internal/crash.TestAReportHoldsPlacesAndNoTexts.func5 (crash_test.go:"},
	} {
		p := fails(c.value)
		if !strings.HasPrefix(p.String(), c.want) {
			t.Errorf("%q, want %q", p, c.want)
		}
		path, err := p.report("bmoe 1.2.3")
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"bmoe 1.2.3", "panic: " + p.String(), "crash_test.go:", "TestAReportHoldsPlacesAndNoTexts"} {
			if !strings.Contains(string(b), want) {
				t.Errorf("no %q in %s", want, b)
			}
		}
		if strings.Contains(string(b), "secret") || strings.Contains(string(b), "\x1b") {
			t.Errorf("a text in %s", b)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("others may read it: %v, %v", info.Mode(), err)
		}
	}
}

// runtimeLike calls itself an error of the runtime.
type runtimeLike struct{ error }

func (runtimeLike) RuntimeError() {}

// What the runtime says of the end has the texts of panics left out.
func TestTheRuntimesWordsWithoutValues(t *testing.T) {
	for said, want := range map[string]string{
		"panic: secret\n\tsecret [recovered]\n\npanic: secret\n\ngoroutine 7 [running]:\nf()\n\ta.go:1 +0x1\n": "panic: its text is left out\npanic: its text is left out\ngoroutine 7 [running]:\nf()\n\ta.go:1 +0x1\n",
		"panic: runtime error: index out of range [3] with length 2\n\ngoroutine 1 [running]:\n":               "panic: runtime error: index out of range [3] with length 2\ngoroutine 1 [running]:\n",
		"runtime: goroutine stack exceeds 1048576-byte limit\nfatal error: stack overflow\n\ngoroutine 1:\n":   "runtime: goroutine stack exceeds 1048576-byte limit\nfatal error: stack overflow\n\ngoroutine 1:\n",
	} {
		if got := withoutValues(said); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestOldReportsGo(t *testing.T) {
	dir := conform.TempDir(t)
	t.Setenv(userdir.StateVariable, dir)
	for i := range keep + 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("crash-2020010%d-000000-%03d.txt", i/10, i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path, err := write("v", "text")
	if err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil || len(left) != keep {
		t.Errorf("%d reports are left, %v", len(left), err)
	}
}

// carried is a panic that comes from another goroutine.
type carried struct{ error }

func (carried) PanicValue() any    { return 7 }
func (carried) PanicStack() []byte { return []byte("there") }

func TestAPanicKeepsItsOwnStack(t *testing.T) {
	p := New("generation", carried{errors.New("worker 1: the cause")}, []byte("here"))
	if p.String() != "generation: panic with a value of type int" || string(p.Stack) != "there" {
		t.Errorf("%s: %s", p, p.Stack)
	}
}
