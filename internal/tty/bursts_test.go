package tty

import (
	"strings"
	"testing"
	"time"
)

func TestBursts(t *testing.T) {
	const start, end = pasteStart, pasteEnd
	for _, c := range []struct {
		name  string
		reads []string // "" is silence
		want  string
	}{
		{"keys", []string{"a", "b", "\r", ""}, "ab\r"},
		{"a line and Enter", []string{"Tell me a story.\r", ""}, "Tell me a story.\r"},
		{"a line, Enter and a key", []string{"hello\r\x1b[21~", "hello\r\x07"}, "hello\r\x1b[21~hello\r\x07"},
		{"Enter and a line", []string{"\rhello"}, "\rhello"},
		{"lines", []string{"one\rtwo\rthree\r", ""}, start + "one\rtwo\rthree\r" + end},
		{"lines in pieces", []string{"one\rtwo", "\rthr", "ee\r", "", "x\r"}, start + "one\rtwo\rthree\r" + end + "x\r"},
		{"lines and then Ctrl+C", []string{"one\rtwo\r\x03"}, start + "one\rtwo\r" + end + "\x03"},
		{"Ctrl+C in an endless paste", []string{"one\rtwo", "three\rfour", "five\x03six"}, start + "one\rtwothree\rfourfive" + end + "\x03six"},
		{"lines about a control character", []string{"one\rtwo\r\x0bthree\rfour", ""}, start + "one\rtwo\r" + end + "\x0b" + start + "three\rfour" + end},
		{"answers", []string{"\x1b[?2026;2$y\x1b]11;rgb:0000/0000/0000\x1b\\x\r"}, "\x1b[?2026;2$y\x1b]11;rgb:0000/0000/0000\x1b\\x\r"},
		{"a marked paste", []string{start + "one\rtwo\r" + end, "\r"}, start + "one\rtwo\r" + end + "\r"},
		{"a marked paste in pieces", []string{start + "one\rtwo\x1b[", "20", "1~a\rb"}, start + "one\rtwo" + end + start + "a\rb"},
		{"a control character in a marked paste", []string{start + "one\x03two" + end}, start + "one\x03two" + end},
		{"Ctrl+C in a marked paste without an end", []string{start + "one\rtwo", "", "\x03", "x"}, start + "one\rtwo" + end + "\x03x"},
		{"the same from kitty", []string{start + "one\rtwo", "\x1b[99;5u"}, start + "one\rtwo" + end + "\x1b[99;5u"},
	} {
		p := bursts{now: time.Now}
		var got []byte
		for _, r := range c.reads {
			if r == "" {
				got = p.quiet(got)
			} else {
				got = p.feed(got, []byte(r))
			}
		}
		if string(got) != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

// A marked paste that goes on and on gives way to a Ctrl+C in its midst.
func TestAnEndlessMarkedPaste(t *testing.T) {
	now := time.Now()
	p := bursts{now: func() time.Time { return now }}
	p.feed(nil, []byte(pasteStart+strings.Repeat("x", 4000)))
	now = now.Add(2 * endlessAfter)
	got := string(p.feed(nil, []byte("xx\x03\x03")))
	if want := "xx" + pasteEnd + "\x03\x03"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func FuzzBursts(f *testing.F) {
	f.Add("one\rtwo\r\x1b[200~x\x1b[201~", 3)
	f.Fuzz(func(t *testing.T, s string, at int) {
		p := bursts{now: time.Now}
		at = min(max(at, 0), len(s))
		got := p.quiet(p.feed(p.feed(nil, []byte(s[:at])), []byte(s[at:])))
		// Marks are added; nothing is lost or changed.
		plain := strings.NewReplacer(pasteStart, "", pasteEnd, "")
		if a, b := plain.Replace(string(got)), plain.Replace(s); len(a) < len(b) && !strings.Contains(s, "\x1b[20") {
			t.Errorf("%q became %q", s, got)
		}
	})
}
