package term

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func lines(src string, ls []Span) []string {
	out := make([]string, len(ls))
	for i, l := range ls {
		out[i] = src[l.Start:l.End]
	}
	return out
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		src  string
		w    int
		want string
	}{
		{"", 5, ""},
		{"one two three", 7, "one two|three"},
		{"one two three", 8, "one two|three"},
		{"abcdefghij", 4, "abcd|efgh|ij"},
		{"ab abcdefgh", 4, "ab|abcd|efgh"},
		{"a\n\nb", 4, "a||b"},
		{"  indented line", 10, "  indented|line"},
		{"a     b", 3, "a|b"},
		{"stall 60.9 %", 10, "stall|60.9 %"},
		{"日本語テキスト", 5, "日本|語テ|キス|ト"},
		{"x 日本", 4, "x|日本"},
		{"cafe\u0301 noir", 4, "cafe\u0301|noir"},
	} {
		got := strings.Join(lines(c.src, Wrap(nil, c.src, 0, c.w, ansi.GraphemeWidth)), "|")
		if got != c.want {
			t.Errorf("%q at %d: %q, want %q", c.src, c.w, got, c.want)
		}
	}
}

// A text that arrives in pieces must be wrapped as if it had come at once.
func TestWrapInPiecesEqualsWrapAtOnce(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	alphabet := []rune("aaaabcd   \n日é́👩‍👧%0")
	for range 3000 {
		n := rng.Intn(60)
		src := ""
		w := 1 + rng.Intn(12)
		for _, m := range []ansi.Method{ansi.WcWidth, ansi.GraphemeWidth} {
			var inc Wrapped
			src = ""
			for range n {
				src += string(alphabet[rng.Intn(len(alphabet))])
				if rng.Intn(3) == 0 {
					inc.Update(src, w, m)
				}
			}
			inc.Update(src, w, m)
			whole := Wrap(nil, src, 0, w, m)
			if a, b := fmt.Sprintf("%q", lines(src, inc.Lines)), fmt.Sprintf("%q", lines(src, whole)); a != b {
				t.Fatalf("%q at %d: in pieces %s, at once %s", src, w, a, b)
			}
			for _, l := range lines(src, whole) {
				trimmed := strings.TrimRight(l, " ")
				if cw := m.StringWidth(trimmed); cw > w && len([]rune(trimmed)) > 1 && w > 2 && !strings.ContainsRune(trimmed, '\u200d') {
					t.Fatalf("%q at %d: line %q has %d columns", src, w, l, cw)
				}
			}
		}
	}
}

func FuzzWrap(f *testing.F) {
	f.Add("one two three\n  four", 7)
	f.Add("日本 \u0301x %", 3)
	f.Fuzz(func(t *testing.T, s string, w int) {
		if w < 1 || w > 200 {
			return
		}
		s = Clean(s)
		end := 0
		for _, l := range Wrap(nil, s, 0, w, ansi.GraphemeWidth) {
			if l.Start < end || l.End < l.Start {
				t.Fatalf("%q at %d: line %v after %d", s, w, l, end)
			}
			if gap := s[end:l.Start]; strings.Trim(gap, " \n") != "" {
				t.Fatalf("%q at %d: %q was lost", s, w, gap)
			}
			end = l.End
		}
		if end != len(s) {
			t.Fatalf("%q at %d: the end was lost", s, w)
		}
	})
}
