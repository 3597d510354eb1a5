package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bmoe/engine/demo"
	"bmoe/internal/conform"
)

// tellingDemo is the demo model in a folder whose name is nobody's business.
func tellingDemo(t *testing.T) (path string, env []string) {
	t.Helper()
	home := filepath.Join(conform.TempDir(t), "alice-at-acme")
	if err := os.MkdirAll(filepath.Join(home, "secret-plans"), 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := demo.Path(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(home, "secret-plans", "m.gguf")
	if err := os.WriteFile(path, readTest(t, from), 0o644); err != nil {
		t.Fatal(err)
	}
	return path, []string{"USER=alice-at-acme", "USERNAME=alice-at-acme", "LOGNAME=alice-at-acme", "HOME=" + home, "USERPROFILE=" + home, "HOSTNAME=acme-host", "COMPUTERNAME=acme-host"}
}

// reported reads the files of a report.
func reported(t *testing.T, dir string) (row reportRow, files map[string]string) {
	t.Helper()
	files = map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		files[e.Name()] = string(readTest(t, filepath.Join(dir, e.Name())))
	}
	text := files["report.json"]
	if err := json.Unmarshal([]byte(text), &row); err != nil || strings.Count(text, "\n") != 1 {
		t.Fatalf("report.json is no row: %v, %.300q", err, text)
	}
	return row, files
}

// A report has the host, the drive's table and the engine's three kinds of run, says
// in every file where the host is simulated, and holds nothing private.
func TestReport(t *testing.T) {
	model, env := tellingDemo(t)
	dir := filepath.Join(conform.TempDir(t), "new", "report")
	cmd := program("--report", dir, "--yes", "-m", model, "-n", "8", "--cells", "1", "--simulate-host", "ntfs", "--chat-template-file", temp(t, "alice-at-acme.jinja", []byte("{{ messages[0].content }}")))
	cmd.Env = append(cmd.Env, env...)
	r := finish(t, cmd)
	if r.code != 0 || !strings.Contains(r.stderr, "1 of 2") || !strings.Contains(r.stderr, "run 1 of 4, warm-up") || !strings.Contains(r.stderr, "Written. Send the folder") {
		t.Fatalf("exit code %d, %s", r.code, r.stderr)
	}
	row, files := reported(t, dir)
	if len(files) != 4 || r.stdout != files["report.txt"] {
		t.Errorf("%d files; what was shown is not what was written:\n%s", len(files), r.stdout)
	}
	for name, text := range files {
		lower := strings.ToLower(text)
		for _, secret := range []string{"alice", "acme", "secret-plans", strings.ToLower(dir), "refrigerator"} {
			if strings.Contains(lower, secret) {
				t.Errorf("%s holds %q:\n%s", name, secret, text)
			}
		}
		if !strings.Contains(lower, "simulated") {
			t.Errorf("%s does not say that the host is simulated:\n%s", name, text)
		}
	}
	if !row.Simulated || row.IOBench == nil || !row.IOBench.Simulated || !row.IOBench.Complete || row.Engine == nil || len(row.Engine.Variants) != 3 || len(row.LeftOut) != 0 {
		t.Fatalf("%+v", row)
	}
	if row.Model.Name != "m.gguf" || row.Model.Arch.Value != "qwen3moe" || row.Model.Experts.Value != 32 || row.Model.TokenCycle.Value <= 0 || row.Config["n_predict"] != "8" {
		t.Errorf("%+v, %v", row.Model, row.Config)
	}
	if row.Host.Threads < 1 || row.Host.Page < 4096 || row.Host.Arch == "" {
		t.Errorf("%+v", row.Host)
	}
	for _, want := range []string{"run 1, mapping kept: mapping mapped", "mapping released: mapping released", "mapping kept, no-odirect: mapping mapped"} {
		if !strings.Contains(files["report.txt"], want) {
			t.Errorf("no %q in\n%s", want, files["report.txt"])
		}
	}
	cells, err := csv.NewReader(strings.NewReader(files["cells.csv"])).ReadAll()
	if err != nil || len(cells) < 5 {
		t.Errorf("%v, %q", err, files["cells.csv"])
	}
	if again := bmoe(t, "--report", dir, "-m", model); again.code != 1 || !strings.Contains(oneComplaint(t, again.stderr), "name another folder") {
		t.Errorf("a second report into it: %d, %s", again.code, again.stderr)
	}
}

// A file that no engine can open is still one to read from.
func TestReportOfAnyFile(t *testing.T) {
	dir := filepath.Join(conform.TempDir(t), "r")
	path := temp(t, "any.bin", make([]byte, 4<<20))
	r := succeeds(t, "--report", dir, "-m", path)
	row, files := reported(t, dir)
	if row.IOBench == nil || row.Engine != nil || len(row.LeftOut) != 1 || !strings.Contains(row.LeftOut[0], "any.bin: not a GGUF file") || strings.Contains(files["report.json"], filepath.Dir(path)) {
		t.Errorf("%q; %s", row.LeftOut, r.stderr)
	}
}

func TestReportsThatMakeNoSense(t *testing.T) {
	file := temp(t, "file", nil)
	for want, args := range map[string][]string{
		"--release-mmap and --report exclude each other": {"--release-mmap"},
		"--no-odirect and --report exclude each other":   {"--no-odirect=false"},
		"--report and --prompt exclude each other":       {"-p", "hi"},
	} {
		refused(t, 2, []string{want}, append(args, "--report", filepath.Join(conform.TempDir(t), "x"))...)
	}
	refused(t, 2, []string{"--yes does nothing without --report"}, "--yes")
	refused(t, 2, []string{"--cells does nothing without --ab or --report"}, "--cells", "1", "-p", "x")
	refused(t, 2, []string{"--report takes a folder"}, "--report", "")
	refused(t, 1, []string{"--report: mkdir "}, "--report", filepath.Join(file, "x"))
	refused(t, 1, []string{"no such model"}, "--report", filepath.Join(conform.TempDir(t), "x"), "-m", "no such model")
	refused(t, 1, []string{"is a directory"}, "--report", filepath.Join(conform.TempDir(t), "x"), "-m", filepath.Dir(file))
}

func TestPublic(t *testing.T) {
	r := &reporting{secrets: []string{`C:\Users\alice\models`, `C:\Users\alice`, "/home/alice"}}
	for text, want := range map[string]string{
		`open C:\Users\alice\models\m.gguf: no`:    `open m.gguf: no`,
		`{"x":"C:\\Users\\alice\\models\\m.gguf"}`: `{"x":"m.gguf"}`,
		`C:\Users\alice`: ``,
		`read /home/alice/m.gguf and /home/alice`:     `read m.gguf and `,
		`mapping kept: 3.16 tokens/s, C: and /dev/sd`: `mapping kept: 3.16 tokens/s, C: and /dev/sd`,
	} {
		if got := r.public(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestTimeLeft(t *testing.T) {
	l := timeLeft{runs: 4, tokens: 8}
	if got := l.words(); !strings.Contains(got, "known after the first run") {
		t.Error(got)
	}
	l = timeLeft{runs: 4, tokens: 8, ended: 1, spent: 10 * time.Second}
	if got := l.words(); got != "about 30s left" {
		t.Error(got)
	}
	l.runs, l.ended, l.spent = 4, 5, 50*time.Second // repeated ones
	l.runs = max(l.runs, l.ended)
	if got := l.words(); got != "about 0s left" {
		t.Error(got)
	}
}
