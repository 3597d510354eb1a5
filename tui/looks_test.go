package tui

import (
	"strings"
	"testing"

	"bmoe/tui/term"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// Every view and every expanded pane is drawn in ASCII where that is asked for, and by
// each theme with the same characters: what colours say, words and characters say too.
func TestLooksOfEveryView(t *testing.T) {
	shots := func(o Options, dark bool) (all map[string]string) {
		all = map[string]string{}
		h, _ := picker(t, 120, 40, o)
		h.send(tea.BackgroundColorMsg{Color: lipgloss.Color(map[bool]string{true: "#000000", false: "#FFFFFF"}[dark])})
		h.ask("Why is this laptop slow?")
		all["chat"] = h.screen()
		for _, k := range view.Kinds {
			h.m.toggle(h.m.pages[k.Name])
			if k.Name == "models" {
				h.exec(h.m.openModels())
				h.wait("the list", func() bool { return h.m.shelving.list == nil })
				h.facts()
			}
			h.tick()
			all[k.Name] = h.screen()
			h.m.views.Clear()
		}
		h.m.setFocus(onPanes)
		for i := range h.m.panes {
			h.m.pick(i)
			h.m.toggle(expanded{h.m})
			all[paneCaps()+string(rune('1'+i))] = h.screen()
			h.m.views.Clear()
		}
		return all
	}
	for name, s := range shots(Options{ASCII: true}, true) {
		if i := strings.IndexFunc(s, func(r rune) bool { return r > 126 }); i >= 0 {
			t.Errorf("%s has %q in ASCII:\n%s", name, []rune(s[i:])[0], s)
		}
	}
	usual := shots(Options{}, true)
	if len(usual) < 13 {
		t.Errorf("%d pictures", len(usual))
	}
	for _, theme := range term.Themes {
		for name, s := range shots(Options{Theme: theme}, false) {
			if s != usual[name] {
				t.Errorf("%s in %s differs from the usual:\n%s\n%s", name, theme, s, usual[name])
			}
		}
	}
}
