package tui

import (
	"fmt"
	"strings"
	"testing"
)

// afterPair is a session with a run and the same again after a release.
func afterPair(t *testing.T, w, h int, o Options) *harness {
	f := newFake()
	hs := start(t, w, h, o, f)
	hs.ask("Why is this laptop slow?")
	hs.keys("f2")
	hs.wait("the release", func() bool { return f.Config().ReleaseMmap && hs.m.state == idle })
	hs.keys("ctrl+g")
	hs.wait("the second run", func() bool { return len(hs.m.runs.runs) == 2 && hs.m.state == idle })
	hs.tick()
	for _, b := range hs.m.chat.blocks {
		b.thought = 3_200_000_000
	}
	return hs
}

func TestWholeScreens(t *testing.T) {
	for _, size := range []struct{ w, h int }{{80, 24}, {120, 40}, {200, 60}} {
		for _, ascii := range []bool{false, true} {
			kind := "unicode"
			if ascii {
				kind = "ascii"
			}
			name := fmt.Sprintf("%dx%d-%s", size.w, size.h, kind)
			t.Run(name, func(t *testing.T) {
				hs := afterPair(t, size.w, size.h, Options{ASCII: ascii})
				shot := func(part string) {
					s := hs.screen()
					if ascii && strings.IndexFunc(s, func(r rune) bool { return r > 126 }) >= 0 {
						t.Errorf("%s: a character that is not ASCII", part)
					}
					golden(t, part+"-"+name, s)
				}
				shot("main")
				hs.keys("tab")
				shot("panes")
				hs.keys("e")
				shot("timeline")
				hs.keys("e", "tab", "f10")
				shot("runs")
				hs.keys("f1")
				shot("help")
			})
		}
	}
}
