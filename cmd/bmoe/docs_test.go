package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/engine/backend"
)

var update = flag.Bool("update", false, "write the lists of flags into docs/cli.md")

// flagList is the part of docs/cli.md that lists the flags.
func flagList() string {
	var b strings.Builder
	for _, s := range newOptions().sections() {
		fmt.Fprintf(&b, "\n### %s\n\n", s.title)
		for _, r := range s.rows() {
			item := "- `" + r.long + "`"
			if r.short != "" {
				item = "- `" + r.short + "`, `" + r.long + "`"
			}
			item += ": " + r.help
			if r.standard != "" {
				item += " (default " + r.standard + ")"
			}
			b.WriteString(strings.Join(wrap(item, 116), "\n  ") + "\n")
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
	want := head + from + flagList() + to + tail
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

// A setting more is a row of the engine's table: what the command makes of the
// rows has it without a line here.
func TestASettingMoreIsInEveryText(t *testing.T) {
	row := backend.Setting{Name: "drop-cold", Flag: "drop-cold-experts", Short: "z", Section: "Dropping", Kind: backend.Word,
		Words: []string{"never", "always"}, Default: "never", Want: "never or always", Help: ".skip cold experts, with {lanes=8} or \\ \"it\""}
	o := newOptions()
	o.settings = append(o.settings, row)
	set := ""
	o.set = func(name, value string) error {
		if name == row.Name {
			set = value
		}
		return nil
	}
	texts := map[string]string{"manual": manPage(o.sections())}
	for _, shell := range shells {
		texts[shell] = completion(shell, o.sections())
	}
	for name, wants := range map[string][]string{
		"manual": {".SS Dropping\n.TP\n.B \\-z, \\-\\-drop\\-cold\\-experts never|always\n" +
			"\\&.skip cold experts, with \\-\\-io\\-threads 8 or \\e \"it\" (default never)\n"},
		"bash":       {"--drop-cold-experts|-z) COMPREPLY=($(compgen -W 'never always'"},
		"zsh":        {"'--drop-cold-experts=[", ":value:(never always)' \\\n"},
		"fish":       {"-l drop-cold-experts -s z -x -a 'never always'"},
		"powershell": {"'--drop-cold-experts' = @('never', 'always')", "--io-threads 8"},
	} {
		for _, want := range wants {
			if !strings.Contains(texts[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, texts[name])
			}
		}
	}
	var rows []string
	for _, s := range o.sections() {
		for _, r := range s.rows() {
			rows = append(rows, fmt.Sprint(s.title, r))
		}
	}
	if all := strings.Join(rows, "\n"); !strings.Contains(all, "Dropping{-z --drop-cold-experts never|always .skip cold experts, with --io-threads 8") {
		t.Errorf("the help's rows:\n%s", all)
	}
	if err := o.parse([]string{"--drop-cold-experts", "always"}); err != nil || set != "always" {
		t.Errorf("the flag set %q: %v", set, err)
	}
}
