package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bmoe/engine/demo"
	"bmoe/internal/conform"
	"bmoe/internal/userdir"
)

// asProgram makes this test binary be the program: the tests below run it in
// processes of its own, with a real command line, real pipes and signals.
const asProgram = "BMOE_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		tableFlags = []string{"--repeats", "1", "--seconds", "0.05", "--lanes", "1,2"}
		programMain()
		return
	}
	os.Exit(runTests(m))
}

// runTests gives the demo model a folder that all tests share.
func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bmoe-test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	os.Setenv(demo.DirVariable, dir)
	os.Setenv(userdir.StateVariable, filepath.Join(dir, "state"))
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "config")) // whoever tests may have a configuration of his own
	return m.Run()
}

// program returns the program's command, ready to start. Its standard input is
// empty.
func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// result is what a run of the program left.
type result struct {
	stdout, stderr string
	code           int
}

// patience bounds every run: nothing may hang.
const patience = 60 * time.Second

// run runs a command to its end.
func finish(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	if !timer.Stop() {
		t.Fatalf("%q did not end", cmd.Args[1:])
	}
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func bmoe(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, program(args...))
}

// succeeds runs the program and fails the test unless it does what it is asked.
func succeeds(t *testing.T, args ...string) result {
	t.Helper()
	r := bmoe(t, args...)
	if r.code != 0 {
		t.Fatalf("%q: exit code %d, %s", args, r.code, r.stderr)
	}
	return r
}

// parseJSON decodes what must be one JSON value and a line end, and nothing else.
func parseJSON(t *testing.T, text string, v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %.300q", err, text)
	}
	if rest := text[d.InputOffset():]; rest != "\n" {
		t.Fatalf("behind the object: %.300q", rest)
	}
}

// oneComplaint fails unless standard error holds one line of the program's, and
// returns it.
func oneComplaint(t *testing.T, stderr string) string {
	t.Helper()
	line, rest, ended := strings.Cut(stderr, "\n")
	if !strings.HasPrefix(line, "bmoe: ") || !ended || rest != "" {
		t.Fatalf("standard error is not one line: %q", stderr)
	}
	return line
}

// readTest reads a file of the test data.
func readTest(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// temp writes a file of its own folder.
func temp(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(conform.TempDir(t), name)
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
