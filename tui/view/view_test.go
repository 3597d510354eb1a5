package view

import (
	"slices"
	"strings"
	"testing"

	"bmoe/tui/term"
)

// source is what views show of a session without a run.
func source() Source {
	th := term.NewTheme(term.Look{Dark: true}, true)
	return Source{Theme: th, Runs: NewRuns(th, "^G"), Sessions: NewSessions(th), Residents: &Residents{}, Models: NewModels(th), Settings: NewSettings(th, func() []Setting { return []Setting{{Name: "lanes", Value: "8", Live: true}} }), Keys: func() []HelpLine { return []HelpLine{{Keys: "F1", Text: "help"}} }}
}

// A view opens and closes by the same key, wherever on the stack it lies; what was
// under it is shown again.
func TestStack(t *testing.T) {
	a, b := newHelp(source()), newList(source())
	var s Stack
	for i, step := range []struct {
		do   func()
		want []View
	}{
		{func() { s.Close() }, nil},
		{func() { s.Toggle(a) }, []View{a}},
		{func() { s.Toggle(b) }, []View{a, b}},
		{func() { s.Toggle(a) }, []View{b, a}},
		{func() { s.Toggle(a) }, []View{b}},
		{func() { s.Toggle(a); s.Close() }, []View{b}},
		{func() { s.Close() }, nil},
		{func() { s.Toggle(a); s.Toggle(b); s.Clear() }, nil},
	} {
		step.do()
		if !slices.Equal(s, step.want) || len(s) > 0 && s.Top() != s[len(s)-1] || len(s) == 0 && s.Top() != nil {
			t.Fatalf("step %d: %d views, want %d", i, len(s), len(step.want))
		}
	}
}

// Every view fills the room that it is given, knows the keys that the help gives it,
// and says how it is closed. No two open by the same key.
func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range Kinds {
		v := k.New(source())
		for _, size := range [][2]int{{56, 10}, {116, 36}} {
			rows := v.Render(size[0], size[1])
			if len(rows) != size[1] && len(rows) != 1 { // one line says that there is nothing yet
				t.Errorf("%s: %d rows of %d", k.Name, len(rows), size[1])
			}
			for _, r := range rows {
				if w := source().Theme.Width(r); w != size[0] {
					t.Errorf("%s: a row of %d columns, not %d: %q", k.Name, w, size[0], r)
				}
			}
		}
		for _, l := range k.Own {
			for _, key := range strings.Fields(strings.ToLower(l.Keys)) {
				if !v.Key(key) {
					t.Errorf("%s does not know %q", k.Name, key)
				}
			}
		}
		for _, key := range []string{k.Key, k.Twin, k.Name} {
			if key == "" { // it is opened by its command
				continue
			}
			if seen[key] {
				t.Errorf("%s: %q is taken", k.Name, key)
			}
			seen[key] = true
		}
		if !slices.ContainsFunc(v.Hints(), func(h string) bool { return strings.Contains(h, "Esc") }) || k.Help == "" {
			t.Errorf("%s: no word of how it is closed, or of what it is", k.Name)
		}
	}
}
