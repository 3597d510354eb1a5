package term

import (
	"strings"
	"testing"
)

func TestNothingFromOutsideReachesTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain text":              "plain text",
		"\x1b[31mred\x1b[0m":      "^[[31mred^[[0m",
		"\x1b]0;title\x07":        "^[]0;title^G",
		"\x9b31m":                 "\ufffd31m",
		"\u009b31m":               "?31m",
		"a\r\nb\rc\n":             "a\nb\nc\n",
		"tab\there":               "tab    here",
		"\x00\x7f\x08":            "^@^?^H",
		"\u202eevil\u202c":        "evil",
		"\ufeffbom \U000e0041tag": "bom tag",
		"bad\xffbyte":             "bad\ufffdbyte",
		"family 👩\u200d👧, café, 日本語": "family 👩\u200d👧, café, 日本語",
		"line\u2028sep": "line\nsep",
	} {
		if got := Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := CleanLine("two\nlines \x1b[2J"); got != "two lines ^[[2J" {
		t.Errorf("CleanLine: %q", got)
	}
	var c Cleaner
	var b strings.Builder
	for _, s := range []string{"a\r", "\nb", "\r", "c"} {
		c.Write(&b, s)
	}
	if b.String() != "a\nb\nc" {
		t.Errorf("a line end cut in two: %q", b.String())
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31m\u009b\x00")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range Clean(s) {
			if r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("Clean(%q) lets %U through", s, r)
			}
		}
	})
}
