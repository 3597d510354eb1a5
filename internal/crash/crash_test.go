package crash

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

func TestAReportHoldsPlacesAndNoTexts(t *testing.T) {
	t.Setenv(DirVariable, filepath.Join(conform.TempDir(t), "state"))
	p := func() (p *Panic) {
		defer func() { p = New("lane", recover(), []byte("goroutine 7\n\tflashio/lanes.go:50\n")) }()
		panic(fmt.Errorf("no token %q\x1b[31m", "my secret prompt"))
	}()
	if got, want := p.String(), `lane: *fmt.wrapError: no token "..." [31m`; strings.ReplaceAll(got, "*errors.errorString", "*fmt.wrapError") != want {
		t.Errorf("%q, want %q", got, want)
	}
	path, err := p.Report("bmoe 1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"bmoe 1.2.3", "panic: lane: ", "flashio/lanes.go:50", "TestAReportHoldsPlacesAndNoTexts"} {
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

func TestOldReportsGo(t *testing.T) {
	dir := conform.TempDir(t)
	t.Setenv(DirVariable, dir)
	for i := range keep + 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("crash-2020010%d-000000-%03d.txt", i/10, i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path, err := Write("v", "text")
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

func (carried) PanicValue() any    { return "the cause" }
func (carried) PanicStack() []byte { return []byte("there") }

func TestAPanicKeepsItsOwnStack(t *testing.T) {
	p := New("generation", carried{errors.New("worker 1: the cause")}, []byte("here"))
	if p.String() != "generation: the cause" || string(p.Stack) != "there" {
		t.Errorf("%s: %s", p, p.Stack)
	}
	if s := New("x", struct{ prompt string }{"secret"}, nil).String(); strings.Contains(s, "secret") {
		t.Error(s)
	}
}
