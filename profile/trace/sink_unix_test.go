//go:build unix

package trace

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe is waited for until somebody reads it, or until the context ends. When the
// reader leaves, that is told once and the program goes on.
func TestSinkIntoAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	var told []error
	ctx, cancel := context.WithCancel(context.Background())
	type made struct {
		s   *sink
		err error
	}
	done := make(chan made)
	begin := func() {
		go func() {
			s, err := create(ctx, "csv", pipe, func(err error) { told = append(told, err) })
			done <- made{s, err}
		}()
	}
	begin()
	r, err := os.Open(pipe)
	if err != nil {
		t.Fatal(err)
	}
	m := <-done
	if m.err != nil {
		t.Fatal(m.err)
	}
	m.s.text("a row\n")
	m.s.flush()
	if row, err := bufio.NewReader(r).ReadString('\n'); row != "a row\n" || err != nil {
		t.Fatalf("%q, %v", row, err)
	}
	r.Close()
	for range 2 {
		m.s.text("a row that nobody reads\n")
		m.s.flush()
	}
	if len(told) != 1 || !errors.Is(told[0], syscall.EPIPE) {
		t.Errorf("the reader left: told %v", told)
	}
	if err := m.s.close(); err != nil {
		t.Error(err)
	}

	begin()
	cancel()
	if m := <-done; m.s != nil || !errors.Is(m.err, context.Canceled) {
		t.Errorf("a pipe that nobody opens: %v, %v", m.s, m.err)
	}
	// What still waits for a reader is let go.
	if r, err = os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	r.Close()
}
