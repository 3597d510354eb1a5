//go:build unix

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bmoe/internal/conform"
	"bmoe/profile/trace"
)

// readers read what the flags that trace have written, and return how many rows that is.
var readers = map[string]func(path string) (int, error){
	"route-trace": func(path string) (int, error) {
		r, err := trace.OpenRoute(path)
		if err != nil {
			return 0, err
		}
		n := 0
		for i := range r.Turns {
			n += len(r.Turns[i].Prompt) + len(r.Turns[i].Decoded)
		}
		return n, nil
	},
	"io-trace": func(path string) (n int, err error) {
		err = readFrom(path, func(r io.Reader) error { return trace.ReadIO(r, func(*trace.IORow) error { n++; return nil }) })
		return n, err
	},
	"compute-trace": func(path string) (n int, err error) {
		err = readFrom(path, func(r io.Reader) error {
			return trace.ReadCompute(r, func(*trace.ComputeRow) error { n++; return nil })
		})
		return n, err
	},
}

func readFrom(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}

// A program that is killed leaves traces that are whole up to the last pass.
func TestTracesOfAKilledProgram(t *testing.T) {
	for flag, read := range readers {
		path := filepath.Join(conform.TempDir(t), "trace.csv")
		cmd := program("-p", dogStory, "-n", "400", "--temp", "0", "--"+flag, path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); ; {
			if info, err := os.Stat(path); err == nil && info.Size() > 40_000 {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("--%s: nothing is written", flag)
			}
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Kill()
		cmd.Wait() // ends with the signal's error
		if n, err := read(path); err != nil || n < 20 {
			t.Errorf("--%s: %d rows can be read: %v", flag, n, err)
		}
	}
}

// A disk that is full, and a reader that leaves, end the trace and not the answer.
func TestTracesThatCannotBeWritten(t *testing.T) {
	want := succeeds(t, "-p", dogStory, "-n", "20", "--temp", "0")
	for flag := range readers {
		if _, err := os.Stat("/dev/full"); err == nil {
			got := finish(t, program("-p", dogStory, "-n", "20", "--temp", "0", "--"+flag, "/dev/full"))
			if got.code != 0 || got.stdout != want.stdout || strings.Count(got.stderr, "no space left on device: nothing more is written to it") != 1 {
				t.Errorf("--%s on a full disk: %+v", flag, got)
			}
		}
		pipe := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		left := make(chan error)
		go func() {
			f, err := os.Open(pipe)
			if err == nil {
				_, err = f.Read(make([]byte, 16))
				f.Close()
			}
			left <- err
		}()
		got := finish(t, program("-p", dogStory, "-n", "20", "--temp", "0", "--"+flag, pipe))
		if err := <-left; err != nil {
			t.Fatal(err)
		}
		if got.code != 0 || got.stdout != want.stdout || strings.Count(got.stderr, "broken pipe: nothing more is written to it") != 1 {
			t.Errorf("--%s into a pipe whose reader left: %+v", flag, got)
		}
		// A pipe that is read to its end has all of it.
		file := filepath.Join(conform.TempDir(t), "trace.csv")
		copied := make(chan error)
		go func() {
			var b bytes.Buffer
			f, err := os.Open(pipe)
			if err == nil {
				_, err = b.ReadFrom(f)
				f.Close()
			}
			if err == nil {
				err = os.WriteFile(file, b.Bytes(), 0o666)
			}
			copied <- err
		}()
		got = finish(t, program("-p", dogStory, "-n", "20", "--temp", "0", "--"+flag, pipe))
		if err := <-copied; err != nil || got.code != 0 {
			t.Fatal(err, got)
		}
		if n, err := readers[flag](file); err != nil || n < 20 {
			t.Errorf("--%s through a pipe: %d rows: %v", flag, n, err)
		}
	}
}
