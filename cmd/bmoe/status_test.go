package main

import (
	"bufio"
	"os"
	"testing"

	"bmoe/profile"
)

// Where standard error is no terminal, a prompt that takes long is told of in
// lines.
func TestReadingInLines(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	st := &status{f: w, lines: true}
	stop := st.reading(func(s *profile.Snapshot) {
		*s = profile.Snapshot{Phase: profile.Prefill, Run: 1, Prompt: 3000, PromptDone: 500, Elapsed: 2e9}
	})
	defer stop()
	line, err := bufio.NewReader(r).ReadString('\n')
	if want := "bmoe: reading the prompt: 500 of 3000 tokens, about 10 s left\n"; err != nil || line != want {
		t.Errorf("%q, %v", line, err)
	}
}
