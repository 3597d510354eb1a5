package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bmoe/flashio"
	"bmoe/internal/cli"
	"bmoe/internal/crash"
	"bmoe/internal/iobench"
	"bmoe/internal/userdir"
)

// asProgram makes the test binary run as the program: exit codes and streams are
// part of what is tested, and no compiler is needed where the tests run.
const asProgram = "BMOE_IOBENCH_AS_PROGRAM"

// faultVariable makes the lanes of the program fail within themselves. pauseVariable
// names a file: the program makes it once it has read a while, and does not go on
// before somebody removes it.
const (
	faultVariable = "BMOE_IOBENCH_TEST_FAULT"
	pauseVariable = "BMOE_IOBENCH_TEST_PAUSE"
)

func TestMain(m *testing.M) {
	if os.Getenv(faultVariable) != "" {
		flashio.System = faultyOpener{flashio.System}
	}
	if at := os.Getenv(pauseVariable); at != "" {
		flashio.System = pausingOpener{flashio.System, &pause{at: at}}
	}
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program returns the command that runs the program.
func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	return cmd
}

// tempDir is t.TempDir, but for not failing the test where a folder cannot be
// removed: Wine lacks what os.RemoveAll needs.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "iobench")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Log(err)
		}
	})
	return dir
}

// testFile writes size random bytes.
func testFile(t *testing.T, size int) string {
	t.Helper()
	data := make([]byte, size)
	random := rand.NewChaCha8([32]byte{1})
	random.Read(data)
	path := filepath.Join(tempDir(t), "model.gguf")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// start runs the program and returns what it said and its exit code.
func start(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := program(args...)
	return wait(t, cmd, nil)
}

// wait runs cmd; meanwhile, if not nil, runs beside it.
func wait(t *testing.T, cmd *exec.Cmd, meanwhile func()) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

type result struct {
	Rows []struct {
		Cell      string
		Lanes     int
		MiBs      *float64 `json:"mib_s"`
		ReadKiB   *float64 `json:"read_kb"`
		MeanMs    *float64 `json:"mean_ms"`
		P50Ms     *float64 `json:"p50_ms"`
		P99Ms     *float64 `json:"p99_ms"`
		Reads     *int64
		Mode      *string
		Simulated bool
		InTurnPct *float64 `json:"in_turn_pct"`
		Notes     []string
	}
	Peak *struct {
		MiBs  float64 `json:"mib_s"`
		Lanes int
	}
	Means *struct {
		Model    *string
		TokenMiB float64 `json:"token_mib"`
		AtMost   []struct {
			HitPct int     `json:"hit_pct"`
			TPS    float64 `json:"tok_s"`
		} `json:"at_most"`
	}
	Try       []string
	Verdict   *string
	Simulated bool
	Complete  bool
}

func parseResult(t *testing.T, stdout string) result {
	t.Helper()
	var r result
	d := json.NewDecoder(strings.NewReader(stdout))
	if err := d.Decode(&r); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	if d.More() {
		t.Fatalf("more than one object: %q", stdout)
	}
	return r
}

// TestSimulatedTableHasTheShapeOfTheMission is the table of docs/windows.md on
// the simulated host: under a mapping reads are served one at a time, dropping
// it does not help lanes that were opened under it, and reopening them does. How
// long reads then take is flashio's to test, on a schedule.
func TestSimulatedTableHasTheShapeOfTheMission(t *testing.T) {
	path := testFile(t, 64<<20)
	out := filepath.Join(tempDir(t), "out.csv")
	stdout, stderr, code := start(t, "--model", path, "--simulate-host", "ntfs", "--table", "--lanes", "1,4", "--seconds", "0.05", "--repeats", "2", "--csv", out, "--json")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	r := parseResult(t, stdout)
	if !r.Simulated || !r.Complete || r.Peak == nil {
		t.Errorf("%+v", r)
	}
	if r.Verdict != nil && !strings.Contains(*r.Verdict, "SIMULATED") {
		t.Errorf("the verdict is not labelled: %s", *r.Verdict)
	}
	checkCSV(t, out, path, 2*len(r.Rows))

	seen := 0
	for _, row := range r.Rows {
		if !row.Simulated || row.Mode == nil || *row.Mode != "SIMULATED" {
			t.Errorf("row %q at %d lanes is not labelled SIMULATED", row.Cell, row.Lanes)
		}
		buffered := strings.Contains(row.Cell, "--buffered")
		want := 0.0
		if strings.Contains(row.Cell, "--mmap") && !strings.Contains(row.Cell, "--reopen-lanes") {
			want = 100
			seen++
		}
		switch {
		case buffered && row.InTurnPct != nil:
			t.Errorf("%s: %.1f %% of its direct reads were served one at a time, but it has none", row.Cell, *row.InTurnPct)
		case !buffered && (row.InTurnPct == nil || *row.InTurnPct != want):
			t.Errorf("%s at %d lanes: in_turn_pct is %v, want %v", row.Cell, row.Lanes, row.InTurnPct, want)
		}
	}
	if seen < 6 {
		t.Errorf("%d rows read under a mapping, want all of its kinds", seen)
	}
}

func checkCSV(t *testing.T, path, model string, lines int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "# bmoe_iobench v1\n") || !strings.Contains(string(text), "SIMULATED") || strings.Contains(string(text), filepath.Dir(model)) {
		t.Errorf("preamble of the CSV file: %.300s", text)
	}
	reader := csv.NewReader(bytes.NewReader(text))
	reader.Comment = '#'
	records, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != lines+1 {
		t.Errorf("%d lines of measurements, want %d", len(records)-1, lines)
	}
	if strings.Join(records[0], ",") != strings.Join(iobench.CSVHeader, ",") {
		t.Errorf("header %v", records[0])
	}
}

func TestSweepOnThisHost(t *testing.T) {
	path := testFile(t, 16<<20)
	stdout, stderr, code := start(t, "-m", path, "--lanes", "1,2", "--slice-kb", "64,577", "--seconds", "0.1", "--json")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	r := parseResult(t, stdout)
	if len(r.Rows) != 4 || r.Verdict != nil || r.Simulated {
		t.Fatalf("%s", stdout)
	}
	measured := 0
	for i, row := range r.Rows {
		if row.Reads != nil && *row.Reads == 0 {
			continue // a machine may be so busy that no read ends in time
		}
		measured++
		if row.MiBs == nil || *row.MiBs <= 0 || row.Reads == nil || *row.Reads <= 0 || row.P50Ms == nil || *row.P50Ms <= 0 ||
			row.P99Ms == nil || *row.P99Ms < *row.P50Ms || row.MeanMs == nil || row.Mode == nil || *row.Mode == "SIMULATED" {
			t.Errorf("%+v", row)
			continue
		}
		// The rate must be what reads and latency say.
		fromLatency := float64(row.Lanes) * *row.ReadKiB / 1024 / (*row.MeanMs / 1e3)
		if *row.MiBs > 1.25*fromLatency {
			t.Errorf("%.0f MiB/s from %d lanes of %v KiB in %v ms", *row.MiBs, row.Lanes, *row.ReadKiB, *row.MeanMs)
		}
		rounded := strings.Contains(strings.Join(row.Notes, " "), "rounded up")
		if asked := i >= 2; asked != rounded || asked && int64(*row.ReadKiB)%4 != 0 {
			t.Errorf("%v KiB a read, notes %q", *row.ReadKiB, row.Notes)
		}
	}
	if measured == 0 {
		t.Error("no row has a read")
	}
}

func TestTextOfASweep(t *testing.T) {
	path := testFile(t, 16<<20)
	stdout, stderr, code := start(t, "-m", path, "--lanes", "1,2", "--seconds", "0.1", "--buffered", "--mmap")
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	for _, want := range []string{"model.gguf, 16.0 MiB", "--buffered --mmap", "BUFFERED [1]", "[1] the page cache, which a mapping fills", "peak "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, filepath.Dir(path)) {
		t.Error("the result names a folder of this machine")
	}
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[len(lines)-3], "peak ") || !strings.HasPrefix(lines[len(lines)-1], "a flat curve ") {
		t.Errorf("the last lines are %q", lines)
	}
	// Each row under its heading.
	if heading := lines[2]; !strings.HasPrefix(heading, "variable") || len(lines[3]) < strings.Index(heading, "mode") {
		t.Errorf("rows do not line up:\n%s", stdout)
	}
}

func TestBadInputIsOneLine(t *testing.T) {
	dir := tempDir(t)
	path := testFile(t, 1<<20)
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"", "--model is missing", 2},
		{"-m " + path + " --lanes 0", "--lanes 0", 2},
		{"-m " + path + " --lanes 10000", "--lanes 10000", 2},
		{"-m " + path + " --slice-kb 0", "--slice-kb 0", 2},
		{"-m " + path + " --bogus", "--bogus", 2},
		{"-m " + path + " --range-mb 2", "--range-mb 2", 2},
		{"-m " + path + " --slice-kb 2048", "one read", 1},
		{"-m " + dir, "directory", 1},
		{"-m " + filepath.Join(dir, "missing"), "missing", 1},
		{"-m " + empty, "0 bytes", 1},
		{"-m " + path + " --csv " + path, "overwritten", 2},
		{"-m " + path + " --csv " + filepath.Join(dir, "no", "such", "folder"), "--csv", 1},
	} {
		stdout, stderr, code := start(t, strings.Fields(c.args)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "bmoe-iobench: ") {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", c.args, code, stdout, stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	stdout, stderr, code := start(t, "--help")
	if code != 0 || stderr != "" || stdout != iobench.Usage() {
		t.Errorf("exit %d, stderr %q, stdout %.100q", code, stderr, stdout)
	}
}

func TestFileThatShrinksIsAnError(t *testing.T) { checkShrinking(t) }

// checkShrinking cuts the file off while it is read.
func checkShrinking(t *testing.T, args ...string) {
	t.Helper()
	path := testFile(t, 16<<20)
	cmd := program(append(args, "-m", path, "--lanes", "2", "--seconds", "600")...)
	stdout, stderr, code := paused(t, cmd, func() error { return os.Truncate(path, 1<<20) })
	if code != 1 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "model.gguf") || !strings.Contains(stderr, "shorter") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestFileThatVanishesIsAnError(t *testing.T) {
	path := testFile(t, 16<<20)
	cmd := program("-m", path, "--lanes", "1,2,4,8", "--seconds", "0.1", "--json")
	stdout, stderr, code := paused(t, cmd, func() error { return os.Remove(path) })
	if code != 1 || stdout != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "model.gguf") {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

func TestHardLinkIsRemoved(t *testing.T) {
	path := testFile(t, 4<<20)
	_, stderr, code := start(t, "-m", path, "--lanes", "2", "--seconds", "0.1", "--mmap", "--via-hardlink")
	if code != 0 {
		t.Fatalf("exit %d, stderr %q", code, stderr)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v (%v)", entries, err)
	}
}

// pausedAt is the read at which the program pauses: by then it measures.
const pausedAt = 20

type pause struct {
	at    string
	reads atomic.Int64
}

type pausingOpener struct {
	flashio.Opener
	*pause
}

func (o pausingOpener) Open(path string, direct bool) (flashio.Handle, error) {
	h, err := o.Opener.Open(path, direct)
	return pausingHandle{h, o.pause}, err
}

type pausingHandle struct {
	flashio.Handle
	*pause
}

func (h pausingHandle) ReadAt(p []byte, off int64) (int, error) {
	if h.reads.Add(1) == pausedAt {
		if err := os.WriteFile(h.at, nil, 0o600); err != nil {
			panic(err)
		}
		for there(h.at) {
			time.Sleep(time.Millisecond)
		}
	}
	return h.Handle.ReadAt(p, off)
}

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// paused runs cmd, does something while it is amid its reads, and lets it go on.
func paused(t *testing.T, cmd *exec.Cmd, do func() error) (stdout, stderr string, code int) {
	t.Helper()
	at := filepath.Join(tempDir(t), "paused")
	cmd.Env = append(cmd.Env, pauseVariable+"="+at)
	kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	stdout, stderr, code = wait(t, cmd, func() {
		for end := time.Now().Add(time.Minute); !there(at); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Error("the program does not read")
				return
			}
		}
		if err := errors.Join(do(), os.Remove(at)); err != nil {
			t.Error(err)
		}
	})
	if !kill.Stop() {
		t.Error("the program did not end")
	}
	return stdout, stderr, code
}

type faultyOpener struct{ flashio.Opener }

func (o faultyOpener) Open(path string, direct bool) (flashio.Handle, error) {
	h, err := o.Opener.Open(path, direct)
	return faultyHandle{h}, err
}

type faultyHandle struct{ flashio.Handle }

func (h faultyHandle) ReadAt(p []byte, off int64) (int, error) {
	if len(p) < faultyRead { // opening tries a small one
		return h.Handle.ReadAt(p, off)
	}
	panic("a fault on a lane")
}

const faultyRead = 64 << 10

// A failure on a lane ends in one line, without a stack unless it is asked for.
func TestAFaultOnALaneIsOneLine(t *testing.T) {
	state := tempDir(t)
	for _, debug := range []string{"", "1"} {
		cmd := program("--model", testFile(t, 4<<20), "--seconds", "0.1", "--lanes", "1", "--slice-kb", strconv.Itoa(faultyRead>>10))
		cmd.Env = append(cmd.Env, faultVariable+"=1", userdir.StateVariable+"="+state, crash.DebugVariable+"="+debug)
		_, stderr, code := wait(t, cmd, nil)
		line, rest, _ := strings.Cut(stderr, "\n")
		if code != cli.Failed || !strings.HasPrefix(line, "bmoe-iobench: failed within itself: lane: ") || !strings.Contains(line, "faultyHandle.ReadAt") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		if shown := strings.Contains(rest, "a fault on a lane") && strings.Contains(rest, "goroutine"); shown != (debug != "") || !shown && rest != "" {
			t.Errorf("BMOE_DEBUG=%s shows %q", debug, rest)
		}
	}
	if reports, err := filepath.Glob(filepath.Join(state, "crash-*.txt")); err != nil || len(reports) != 2 {
		t.Errorf("reports: %q, %v", reports, err)
	}
}
