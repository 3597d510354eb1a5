package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bmoe/tui/term"

	"github.com/charmbracelet/x/ansi"
)

// filled is a transcript that is longer than the screen, of w columns and h rows.
func filled(w, h int) *Transcript {
	t := NewTranscript(term.NewTheme(term.Look{Dark: true}, false))
	t.SetSize(w, h)
	for i := range 12 {
		t.Note(time.Time{}, false, fmt.Sprintf("note %02d", i))
		t.Ask(time.Time{}, strings.Repeat(fmt.Sprintf("turn %02d has some words to wrap ", i), 6))
	}
	return t
}

func TestTheTopLineSurvivesAResize(t *testing.T) {
	tr := filled(76, 18)
	tr.Page(-1)
	words := func() string {
		return strings.Join(strings.Fields(ansi.Strip(tr.Render()[0]))[:2], " ")
	}
	for tr.Scroll(-1); !strings.HasPrefix(ansi.Strip(tr.Render()[0]), "turn"); {
		tr.Scroll(-1) // to the first row of what somebody said
	}
	before := words()
	for _, w := range []int{56, 120, 60, 76} {
		tr.SetSize(w, 18)
		rows := tr.Render()
		if len(rows) != 18 {
			t.Fatalf("%d rows at %d columns", len(rows), w)
		}
		if i := tr.topBlk; !strings.Contains(tr.blocks[i].Text(), before) {
			t.Fatalf("at %d columns the top is in another turn", w)
		}
	}
	if got := words(); got != before {
		t.Errorf("back at the first width the top is %q, and was %q", got, before)
	}
	tr.ToEnd()
	if tr.Below() != 0 || !tr.follow {
		t.Fatal("the end does not follow")
	}
}

// What was sent comes back with Up, the draft with Down; within several lines the
// keys move the cursor.
func TestRecall(t *testing.T) {
	p := NewPrompt()
	p.SetSize(40, 8)
	for _, s := range []string{"one", "two", "two"} {
		p.Set(s)
		if got := p.Take(); got != s || p.Value() != "" {
			t.Fatalf("took %q of %q, left %q", got, s, p.Value())
		}
	}
	p.Set("draft")
	for _, step := range []struct {
		dir  int
		want string
	}{{-1, "two"}, {-1, "one"}, {-1, "one"}, {+1, "two"}, {+1, "draft"}, {+1, "draft"}} {
		if !p.Recall(step.dir) || p.Value() != step.want {
			t.Errorf("%+d: %q, want %q", step.dir, p.Value(), step.want)
		}
	}
	p.Set("first\nlast")
	if p.Recall(-1) {
		t.Error("Up on the last of two lines left the prompt")
	}
}
