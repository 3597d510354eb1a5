package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

func TestRead(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "config.toml")
	if _, err := Read(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# mine\nlanes = 8\n\ncache = \"auto\"\n\"release-mmap\" = true\noverlap = false # slow\ntemp = 0.7\nseed = 18_000\nmodels-dir = ['/a', '/b']\n")
	got, err := Read(path)
	want := []Entry{{"lanes", "8", 2, ""}, {"cache", "auto", 4, ""}, {"release-mmap", "on", 5, ""}, {"overlap", "off", 6, ""}, {"temp", "0.7", 7, ""}, {"seed", "18000", 8, ""},
		{"models-dir", "/a", 9, ""}, {"models-dir", "/b", 9, ""}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	write("lanes = 8\n[keys]\nagain = \"ctrl+r\"\nlanes-up = [\"f12\", \"U\"]\n")
	got, err = Read(path)
	want = []Entry{{"lanes", "8", 1, ""}, {"again", "ctrl+r", 3, KeysTable}, {"lanes-up", "f12", 4, KeysTable}, {"lanes-up", "U", 4, KeysTable}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	write("")
	if got, err := Read(path); len(got) != 0 || err != nil {
		t.Errorf("empty: %v, %v", got, err)
	}
	for text, line := range map[string]int{
		"lanes = 8\ncache = \n":             2,
		"lanes = 8\nlanes = 4\n":            2,
		"a = 1\n\n[streaming]\nlanes = 8\n": 3,
		"streaming.lanes = 8\n":             1,
		"[keys.more]\na = 1\n":              1,
		"[keys]\n[[keys.a]]\nb = 1\n":       2,
		"keys = 1\n[other]\n":               2,
		"a = 1\nwhen = 2026-12-01\n":        2,
		"a = 1\nb = { c = 1 }\n":            2,
		"what is this":                      1,
		"a = 1\nb = [[1]]\n":                2,
		"a = \"\xff\"\n":                    1,
	} {
		write(text)
		_, err := Read(path)
		var bad *Error
		if !errors.As(err, &bad) || bad.Line != line || bad.Path != path || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
	if _, err := Read(filepath.Dir(path)); err == nil {
		t.Error("a folder is read")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("lanes = 8\n"))
	f.Add([]byte("[a]\nb.c = ['x', 1.5, true]"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := parse("x", b)
		if (err == nil) == (got == nil) && err != nil {
			return
		}
		for _, e := range got {
			if e.Line < 1 {
				t.Errorf("%+v has no line", e)
			}
		}
	})
}
