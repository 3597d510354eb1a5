package term

import (
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		env  string
		want Caps
	}{
		{"TERM=xterm-256color LANG=en_GB.UTF-8", Caps{}},
		{"TERM=xterm LC_ALL=C LANG=en_GB.UTF-8", Caps{ASCII: true, NotUTF8: true}},
		{"TERM=xterm LC_CTYPE=C.utf8", Caps{}},
		{"TERM=xterm", Caps{ASCII: true, NotUTF8: true}},
		{"TERM=linux LANG=C.UTF-8", Caps{ASCII: true}},
		{"TERM=dumb LANG=C.UTF-8", Caps{ASCII: true, Dumb: true}},
		{"TERM=xterm LANG=C.UTF-8 NO_COLOR=yes", Caps{NoColor: true}},
		{"TERM=xterm LANG=C.UTF-8 NO_COLOR=0", Caps{NoColor: true}},
		{"TERM=xterm LANG=C.UTF-8 NO_COLOR=", Caps{}},
	} {
		got := Detect(strings.Fields(c.env))
		if speaksUTF8(nil) { // a system whose console is always Unicode
			c.want.NotUTF8 = false
			c.want.ASCII = got.ASCII
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.env, got, c.want)
		}
	}
}
