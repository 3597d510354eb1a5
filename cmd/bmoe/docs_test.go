package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of flags into docs/cli.md")

// flagTables is the part of docs/cli.md that lists the flags.
func flagTables() string {
	var b strings.Builder
	for _, s := range newOptions().sections() {
		fmt.Fprintf(&b, "\n### %s\n\n| flag | what it does | default |\n|---|---|---|\n", s.title)
		for _, r := range s.rows() {
			name := "`" + r.long + "`"
			if r.short != "" {
				name = "`" + r.short + "`, " + name
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.ReplaceAll(name, "|", "\\|"), strings.ReplaceAll(r.help, "|", "\\|"), r.standard)
		}
	}
	return b.String() + "\n"
}

// The manual lists the flags that there are, in the words of --help.
func TestManualListsTheFlags(t *testing.T) {
	const from, to = "<!-- flags: go test ./cmd/bmoe -run Manual -update -->\n", "<!-- end of flags -->"
	path := filepath.Join("..", "..", "docs", "cli.md")
	text := string(readTest(t, path))
	head, rest, ok := strings.Cut(text, from)
	_, tail, ok2 := strings.Cut(rest, to)
	if !ok || !ok2 {
		t.Fatalf("%s lacks %q or %q", path, from, to)
	}
	want := head + from + flagTables() + to + tail
	if want == text {
		return
	}
	if !*update {
		t.Fatalf("%s does not list the flags as --help does; go test ./cmd/bmoe -run Manual -update", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The help lists every flag once, within the width of a terminal.
func TestHelp(t *testing.T) {
	r := succeeds(t, "--help")
	if r.stdout != usage() {
		t.Errorf("--help prints %q", r.stdout)
	}
	for line := range strings.Lines(r.stdout) {
		if len(line) > 111 {
			t.Errorf("a line of %d characters: %s", len(line)-1, line)
		}
	}
	for _, s := range newOptions().sections() {
		for _, row := range s.rows() {
			if n := strings.Count(r.stdout, "  "+row.long+" ") + strings.Count(r.stdout, ", "+row.long+" ") + strings.Count(r.stdout, "  "+row.long+"\n"); n < 1 {
				t.Errorf("%s is not in the help", row.long)
			}
		}
	}
}
