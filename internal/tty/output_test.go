package tty

import (
	"io"
	"os"
	"testing"
	"time"
)

// Once the terminal is given back, nothing is drawn on it any more, and a terminal
// that takes nothing does not hold that up.
func TestNothingIsDrawnAfterTheEnd(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	o := &Output{f: w}
	for _, part := range []string{"before", "after"} {
		if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
			t.Errorf("%s: %d, %v", part, n, err)
		}
		o.end(time.Minute)
	}
	w.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != "before" {
		t.Errorf("drawn: %q, %v", got, err)
	}

	r, w, err = os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	blocked := &Output{f: w}
	ended := make(chan error, 1)
	go func() {
		_, err := blocked.Write(make([]byte, 1<<20)) // more than a pipe takes
		ended <- err
	}()
	if _, err := io.ReadFull(r, make([]byte, 1)); err != nil { // it has begun
		t.Fatal(err)
	}
	blocked.end(time.Millisecond)
	r.Close()
	if err := <-ended; err == nil {
		t.Error("nobody read, and it was written")
	}
	w.Close()
}
