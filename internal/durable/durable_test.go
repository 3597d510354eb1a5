package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bmoe/internal/conform"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// A write that fails part way leaves what was there, and nothing beside it.
func TestWriteIsWholeOrNothing(t *testing.T) {
	dir := filepath.Join(conform.TempDir(t), "new", "folder")
	path := filepath.Join(dir, "a.json")
	if err := Write(path, text("first")); err != nil {
		t.Fatal(err)
	}
	noSpace := errors.New("no space left on device")
	err := Write(path, func(w io.Writer) error {
		text(strings.Repeat("x", 100_000))(w) // beyond any buffer
		return &os.PathError{Op: "write", Path: "a.json.123.part", Err: noSpace}
	})
	if !errors.Is(err, noSpace) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), Part) {
		t.Errorf("the error is %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "first" {
		t.Errorf("what was there is %q, %v", b, err)
	}
	if err := Write(path, text("second")); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(path); string(b) != "second" {
		t.Errorf("%q, %v", b, err)
	}
	if all, err := os.ReadDir(dir); len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := Write(filepath.Join(path, "below", "a file"), text("x")); err == nil {
		t.Error("written below a file")
	}
}

func TestSweep(t *testing.T) {
	dir := conform.TempDir(t)
	now := time.Now()
	for name, age := range map[string]time.Duration{"a.1.part": 2 * time.Hour, "b.2.part": time.Minute, "c.json": 9 * time.Hour} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	Sweep(dir, now)
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 2 || all[0].Name() != "b.2.part" || all[1].Name() != "c.json" {
		t.Errorf("%v, %v", all, err)
	}
}

// Who asks for a lock that is held waits, and is told when that takes too long.
func TestLock(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "lock")
	unlock, err := Lock(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path, 0); !errors.Is(err, ErrBusy) {
		t.Errorf("a second lock: %v", err)
	}
	got := make(chan error)
	go func() {
		again, err := Lock(path, time.Minute)
		if err == nil {
			again()
		}
		got <- err
	}()
	unlock()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
