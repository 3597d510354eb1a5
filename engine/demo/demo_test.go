package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

// cache points the package at an empty folder that does not exist yet.
func cache(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(conform.TempDir(t), "made", "on", "demand")
	t.Setenv(DirVariable, dir)
	return dir
}

func path(t *testing.T) string {
	t.Helper()
	p, err := Path(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// isModel fails unless the file is the embedded model and lies alone but for its lock.
func isModel(t *testing.T, p string) {
	t.Helper()
	b, err := os.ReadFile(p)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != model {
		t.Fatalf("%s is not the model", p)
	}
	entries, err := os.ReadDir(filepath.Dir(p))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != fileName && e.Name() != fileName+".lock" {
			t.Errorf("left behind: %v", e)
		}
	}
}

func TestChecksum(t *testing.T) {
	h := sha256.Sum256([]byte(model))
	if hex.EncodeToString(h[:]) != SHA256 {
		t.Fatal("the embedded file is not the one that the constant names")
	}
}

func TestWrittenOnce(t *testing.T) {
	cache(t)
	p := path(t)
	isModel(t, p)
	before, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	if again := path(t); again != p {
		t.Fatalf("a second place: %s", again)
	}
	after, err := os.Stat(p)
	if err != nil {
		t.Fatal(err)
	}
	if !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
		t.Fatal("written twice")
	}
}

func TestDamagedIsReplaced(t *testing.T) {
	cache(t)
	p := path(t)
	for name, damage := range map[string]func() error{
		"one bit": func() error {
			b := []byte(model)
			b[len(b)/2] ^= 1
			return os.WriteFile(p, b, 0o644)
		},
		"truncated": func() error { return os.Truncate(p, 1000) },
		"empty":     func() error { return os.Truncate(p, 0) },
		"longer":    func() error { return os.WriteFile(p, []byte(model+"x"), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			isModel(t, path(t))
		})
	}
}

// Several processes start at once, on an empty folder and on a damaged copy.
func TestProcessesAtOnce(t *testing.T) {
	const child = "BMOE_TEST_DEMO_CHILD"
	if os.Getenv(child) != "" {
		p := path(t)
		b, err := os.ReadFile(p)
		if err != nil || string(b) != model {
			t.Fatalf("not the model: %v", err)
		}
		return
	}
	dir := cache(t)
	for _, state := range []string{"empty", "damaged"} {
		if state == "damaged" {
			if err := os.Truncate(filepath.Join(dir, fileName), 4096); err != nil {
				t.Fatal(err)
			}
		}
		var cmds []*exec.Cmd
		var outs [3]bytes.Buffer
		for i := range outs {
			c := exec.Command(os.Args[0], "-test.run=^TestProcessesAtOnce$", "-test.count=1")
			c.Env = append(os.Environ(), child+"=1")
			c.Stdout, c.Stderr = &outs[i], &outs[i]
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			cmds = append(cmds, c)
		}
		for i, c := range cmds {
			if err := c.Wait(); err != nil {
				t.Errorf("%s: %v\n%s", state, err, &outs[i])
			}
		}
		isModel(t, filepath.Join(dir, fileName))
	}
}

func TestFolderCannotBeWritten(t *testing.T) {
	file := filepath.Join(conform.TempDir(t), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(DirVariable, filepath.Join(file, "below"))
	_, err := Path(context.Background())
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{file, DirVariable, "MODEL.gguf"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}

func TestNoCacheFolder(t *testing.T) {
	for _, v := range []string{DirVariable, "HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(v, "")
	}
	_, err := Path(context.Background())
	if err == nil || !strings.Contains(err.Error(), DirVariable) {
		t.Fatalf("no help in %v", err)
	}
}

func TestCancelled(t *testing.T) {
	dir := cache(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Path(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != fileName+".lock" {
			t.Errorf("left behind: %v", e)
		}
	}
}

func BenchmarkPath(b *testing.B) {
	b.Setenv(DirVariable, conform.TempDir(b))
	for b.Loop() {
		if _, err := Path(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}
