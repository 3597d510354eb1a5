package sessions

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// What is kept of the prompts that were sent. What is longer is not kept; the file may
// grow to twice the number before it is cut.
const (
	mostPrompts     = 500
	mostPromptBytes = 8 << 10
)

const promptsFile = "prompts.jsonl"

// Prompts returns what was sent in earlier sessions, the oldest first. Lines that
// cannot be read are left out.
func (st *Store) Prompts() ([]string, error) {
	f, err := os.Open(filepath.Join(st.dir, promptsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the prompts of earlier sessions: %w", err)
	}
	defer f.Close() // opened for reading: nothing is lost if closing fails
	var all []string
	lines := bufio.NewScanner(io.LimitReader(f, maxFile))
	lines.Buffer(nil, 8*mostPromptBytes)
	for lines.Scan() {
		var s string
		if json.Unmarshal(lines.Bytes(), &s) == nil && s != "" && len(s) <= mostPromptBytes {
			all = append(all, s)
		}
	}
	if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("the prompts of earlier sessions: %w", err)
	}
	return all[max(0, len(all)-mostPrompts):], nil
}

// AddPrompt keeps a prompt. Programs that add at the same time keep both.
func (st *Store) AddPrompt(s string) error {
	if len(s) > mostPromptBytes || s == "" {
		return nil
	}
	if err := os.MkdirAll(st.dir, 0o700); err != nil {
		return fmt.Errorf("keeping the prompt: %w", err)
	}
	unlock, err := st.lock()
	if err != nil {
		return fmt.Errorf("keeping the prompt: %w", err)
	}
	defer unlock()
	path := filepath.Join(st.dir, promptsFile)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keeping the prompt: %w", err)
	}
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("keeping the prompt: %w", err)
	}
	lines := bytes.Split(bytes.TrimRight(old, "\n"), []byte("\n"))
	if len(lines) > 0 && slices.Equal(lines[len(lines)-1], line) {
		return nil
	}
	if len(lines) < 2*mostPrompts {
		return appendLine(path, line, len(old) > 0 && old[len(old)-1] != '\n')
	}
	lines = append(lines[len(lines)-mostPrompts+1:], line)
	return st.write(path, func(w io.Writer) error {
		_, err := w.Write(append(bytes.Join(lines, []byte("\n")), '\n'))
		return err
	})
}

// appendLine adds a line to a file; torn says that the last one there has no end.
func appendLine(path string, line []byte, torn bool) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("keeping the prompt: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if torn {
		line = append([]byte("\n"), line...)
	}
	if _, err = f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("keeping the prompt: %w", err)
	}
	return nil
}
