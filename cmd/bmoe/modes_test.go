package main

import (
	"slices"
	"strings"
	"testing"

	"bmoe/internal/conform"

	"github.com/spf13/pflag"
)

// A flag that does nothing in what is asked for says so, and the rest is done.
func TestFlagsThatDoNothingSaySo(t *testing.T) {
	tiny := conform.File(t, "models/qwen3moe.gguf")
	for _, c := range []struct {
		warning string // empty: there is none
		args    []string
	}{
		{"--prompt does nothing with --version", []string{"--version", "-p", "hi"}},
		{"--json does nothing with --list-archs", []string{"--list-archs", "--json"}},
		{"--temp does nothing with --man-page", []string{"--man-page", "--temp", "1"}},
		{"--model and --io-threads do nothing with --completion", []string{"--completion", "bash", "--io-threads", "2", "-m", tiny}},
		{"--no-think and --io-threads do nothing with --tokenize", []string{"--tokenize", "hi", "--no-think", "--io-threads", "2"}},
		{"", []string{"--tokenize", "hi", "--parse-special", "--json", "-m", tiny}},
		{"--n-predict, --io-threads and --top-k do nothing with --show-prompt", []string{"--show-prompt", "-p", "hi", "--top-k", "3", "-n", "4", "--io-threads", "2"}},
		{"", []string{"--show-prompt", "-p", "hi", "--json", "--no-think", "--parse-special"}},
		{"--n-predict, --raw and --parse-special do nothing with --eval-tokens", []string{"--eval-tokens", "5,6", "--parse-special", "--raw", "-n", "3", "-m", tiny}},
		{"", []string{"--eval-tokens", "5,6", "--eval-decode", "--io-threads", "1", "-m", tiny, "-c", "16", "--ubatch", "1"}},
		{"--plain, --ascii and --no-mouse do nothing where there is no screen", []string{"-p", "hi", "-n", "1", "--json", "--ascii", "--plain", "--no-mouse"}},
		{"--ascii does nothing with --plain", []string{"--plain", "--ascii"}},
		{"", []string{"--plain", "-n", "3", "--temp", "1"}},
	} {
		r := succeeds(t, c.args...)
		if c.warning == "" {
			if r.stderr != "" {
				t.Errorf("%q: %q", c.args, r.stderr)
			}
		} else if want := "bmoe: warning: " + c.warning + "\n"; r.stderr != want || r.stdout == "" {
			t.Errorf("%q: %q, want %q", c.args, r.stderr, want)
		}
	}
}

// Every flag does something somewhere, and what a mode names is a flag or a heading.
func TestEveryFlagHasAMode(t *testing.T) {
	var known, acting []string
	for _, m := range modes {
		acting = append(acting, m.acts...)
	}
	for _, s := range newOptions().sections() {
		known = append(known, s.heading())
		s.VisitAll(func(f *pflag.Flag) {
			known = append(known, f.Name)
			if f.Name != "help" && !slices.Contains(acting, f.Name) && !slices.Contains(acting, s.heading()) {
				t.Errorf("--%s does nothing anywhere", f.Name)
			}
		})
	}
	for _, name := range acting {
		if !slices.Contains(known, name) {
			t.Errorf("no flag and no heading %q", name)
		}
	}
	for _, m := range modes {
		for word := range strings.FieldsSeq(m.where) {
			if flag, ok := strings.CutPrefix(word, "--"); ok && !slices.Contains(known, flag) {
				t.Errorf("%q names no flag", m.where)
			}
		}
	}
}
