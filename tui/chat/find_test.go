package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bmoe/tui/term"

	"github.com/charmbracelet/x/ansi"
)

// A search finds words through marks and line ends, goes round, and follows a chat
// that grows.
func TestFind(t *testing.T) {
	tr := answered(40)
	tr.ToStart()
	tr.Find("mapping MAKES four")
	at, of, more := tr.Found()
	if at != 1 || of != 20 || more {
		t.Fatalf("at %d of %d, more %v", at, of, more)
	}
	frame := strings.Join(tr.Render(), "\n")
	if !strings.Contains(frame, string(tr.th.Bold+tr.th.Selected)+"mapping") {
		t.Errorf("what is found is not marked: %q", frame)
	}
	tr.FindNext(-1)
	if at, _, _ = tr.Found(); at != 20 {
		t.Errorf("back from the first is %d", at)
	}
	last := tr.top()
	tr.FindNext(+1)
	if at, _, _ = tr.Found(); at != 1 || tr.top() >= last {
		t.Errorf("on from the last is %d, at row %d", at, tr.top())
	}
	tr.Answer(time.Time{}, "").AddText("the mapping makes four of them")
	tr.Render()
	if at, of, _ = tr.Found(); at != 1 || of != 21 {
		t.Errorf("at %d of %d once there is more", at, of)
	}
	tr.Find("no such words")
	if at, of, _ = tr.Found(); at != 0 || of != 0 {
		t.Errorf("at %d of %d of what is not there", at, of)
	}
	tr.FindNext(1)
	tr.Find("")
	if tr.Finding() {
		t.Error("an empty text finds")
	}
}

// What was thought is found too, and shown where it lies.
func TestFindAThought(t *testing.T) {
	tr := NewTranscript(term.NewTheme(term.Look{Dark: true}, false))
	tr.SetSize(60, 8)
	b := tr.Answer(time.Time{}, "")
	b.AddReasoning("a hidden thing")
	b.AddText("something else")
	tr.Find("hidden")
	if _, of, _ := tr.Found(); of != 1 {
		t.Fatalf("%d found", of)
	}
	frame := strings.Join(tr.Render(), "\n")
	if !strings.Contains(frame, string(tr.th.Selected)+"thought for") {
		t.Errorf("the folded thought is not marked: %q", frame)
	}
	tr.Fold()
	if frame = strings.Join(tr.Render(), "\n"); !strings.Contains(frame, string(tr.th.Selected)+"hidden") {
		t.Errorf("the thought is not marked: %q", frame)
	}
}

// Tokens and the places of their text lead to each other.
func TestTokensInTheText(t *testing.T) {
	tr := answered(10)
	b := tr.Answer(time.Time{}, "")
	b.Run = 77
	words := strings.SplitAfter("It **was** slow because the file is mapped.", " ")
	b.AddReasoning("Let me see")
	b.Said(1)
	for i, w := range words {
		b.AddText(w)
		b.Said(i + 2)
	}
	b.AddText(" held back")
	b.Said(len(words) + 1)
	for i, w := range words {
		text, ok := tr.Pick(77, i+2)
		if i == len(words)-1 {
			w += " held back"
		}
		if !ok || text != w {
			t.Errorf("step %d said %q, %v; want %q", i+2, text, ok, w)
		}
		if frame := strings.Join(tr.Render(), "\n"); !strings.Contains(frame, string(tr.th.Selected)+strings.Trim(strings.Split(w, " ")[0], "*")) {
			t.Errorf("%q is not marked in %q", w, frame)
		}
	}
	if text, _ := tr.Pick(77, 1); text != "Let me see" {
		t.Errorf("the first said %q", text)
	}
	if _, ok := tr.Pick(78, 1); ok {
		t.Error("a run that nobody knows was found")
	}
	tr.Unpick()
	rows := tr.Render()
	y := -1
	for i, r := range rows {
		if strings.Contains(ansi.Strip(r), "It was slow") {
			y = i
		}
	}
	for want, x := range map[int]int{2: 0, 3: 4, 4: 8, 6: strings.Index("It was slow because the", "the")} {
		if run, step, ok := tr.TokenAt(x, y); !ok || run != 77 || step != want {
			t.Errorf("column %d is step %d of run %d, %v; want %d", x, step, run, ok, want)
		}
	}
	if _, _, ok := tr.TokenAt(90, y); ok {
		t.Error("there is a token beside the text")
	}
	if _, _, ok := tr.TokenAt(0, y-1); ok {
		t.Error("there is a token in the header")
	}
}

// A picked token is brought to the screen, and a chat that followed its end does so
// again afterwards.
func TestAPickedTokenIsShown(t *testing.T) {
	tr := answered(200)
	b := tr.blocks[21]
	b.Run = 500
	b.Said(2)
	if _, ok := tr.Pick(500, 2); !ok || tr.follow {
		t.Fatalf("picked %v, follows %v", ok, tr.follow)
	}
	if frame := ansi.Strip(strings.Join(tr.Render(), "\n")); !strings.Contains(frame, fmt.Sprint("question ", 10)) {
		t.Errorf("not on the screen:\n%s", frame)
	}
	tr.Unpick()
	if !tr.follow {
		t.Error("does not follow again")
	}
}
