package chat

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"bmoe/tui/term"

	"github.com/charmbracelet/x/ansi"
)

const sample = `# What helps

The **mapping** makes *four* lanes as fast as ` + "`one`" + `; a snake_case_name and 2 * 3 * 4 stay.

- first **point**, which is long enough to go on in a second line
  - inner
* second
10. tenth

> quoted text

` + "```go" + `
x := a*b*c // **not bold**
` + "```" + `

| setting | tok/s | note |
|---------|------:|------|
| mapped | 3.16 | **base** |
| released | 4.63 | faster, as the lanes no longer wait for each other |

---
[docs](https://example.org/a) and ~~gone~~ and \*stars\* and **open`

func shown(t *testing.T, th *term.Theme, d *doc, text string, w int) []string {
	var out []string
	for i := range d.rows {
		s := d.draw(text, i, "", nil, th)
		if n := th.Width(s); n > w {
			t.Errorf("row %d has %d columns of %d: %q", i, n, w, ansi.Strip(s))
		}
		out = append(out, strings.TrimRight(ansi.Strip(s), " "))
	}
	return out
}

func TestMarkdown(t *testing.T) {
	th := term.NewTheme(term.Look{Dark: true}, false)
	var d doc
	d.layout(sample, 40, true, th)
	want := `What helps

The mapping makes four lanes as fast as
one; a snake_case_name and 2 * 3 * 4
stay.

• first point, which is long enough to
  go on in a second line
  • inner
• second
10. tenth

│ quoted text

╭─ go
│ x := a*b*c // **not bold**
╰─

setting  │ tok/s │ note
────────────────────────────────────────
mapped   │  3.16 │ base
released │  4.63 │ faster, as the lanes
         │       │ no longer wait for
         │       │ each other

────────────────────────────────────────
docs(https://example.org/a) and gone and
*stars* and **open`
	if got := strings.Join(shown(t, th, &d, sample, 40), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ascii := term.NewTheme(term.Look{Dark: true}, true)
	ascii.NoColor = true
	d = doc{}
	d.layout(sample, 40, true, ascii)
	got := strings.Join(shown(t, ascii, &d, sample, 40), "\n")
	for _, want := range []string{"as fast as\n`one`;", "* first point", "+- go\n| x :=", "mapped   |  3.16 | base"} {
		if !strings.Contains(got, want) {
			t.Errorf("in ASCII without colours %q is not in\n%s", want, got)
		}
	}
	if i := strings.IndexFunc(got, func(r rune) bool { return r > 126 }); i >= 0 {
		t.Errorf("not ASCII: %q", got[i:])
	}
	styled := d.draw(sample, 2, "", nil, ascii)
	if !strings.Contains(styled, string(ascii.Bold)+"mapping") || !strings.Contains(styled, string(ascii.Italic)+"four") {
		t.Errorf("styled %q", styled)
	}
}

// However a text arrives, its lines are those of the whole, at any width.
func TestMarkdownGrows(t *testing.T) {
	th := term.NewTheme(term.Look{Dark: true}, false)
	for _, w := range []int{12, 40, 76} {
		for _, markdown := range []bool{true, false} {
			for step := 1; step <= 7; step += 3 {
				var d doc
				for n := 0; n < len(sample); n += step {
					d.layout(sample[:n], w, markdown, th)
				}
				d.layout(sample, w, markdown, th)
				var whole doc
				whole.layout(sample, w, markdown, th)
				got, want := strings.Join(shown(t, th, &d, sample, w), "\n"), strings.Join(shown(t, th, &whole, sample, w), "\n")
				if got != want {
					t.Fatalf("at %d columns in steps of %d, markdown %v:\n%s\nwant\n%s", w, step, markdown, got, want)
				}
			}
		}
	}
}

// What is laid out once is not laid out again.
func TestALongAnswerCostsNoMore(t *testing.T) {
	th := term.NewTheme(term.Look{Dark: true}, false)
	text := strings.Repeat(sample+"\n\n", 200)
	var d doc
	d.layout(text, 80, true, th)
	if left := len(text) - d.finalAt; left > len(sample) {
		t.Errorf("%d of %d bytes would be laid out again", left, len(text))
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add(sample, 40)
	f.Add("|a|\n|-|\n|`|`\n", 8)
	f.Add("**_*~~`a`~~*_**", 3)
	th := term.NewTheme(term.Look{Dark: true}, false)
	f.Fuzz(func(t *testing.T, s string, w int) {
		if len(s) > 2000 { // it is laid out a thousand times
			return
		}
		s = term.Clean(s)
		w = 1 + w&127
		var d, grown doc
		d.layout(s, w, true, th)
		for n := range s {
			if n%3 == 0 {
				grown.layout(s[:n], w, true, th)
			}
		}
		grown.layout(s, w, true, th)
		if len(d.rows) != len(grown.rows) {
			t.Fatalf("%q: %d rows, grown %d", s, len(d.rows), len(grown.rows))
		}
		for i := range d.rows {
			if a, b := d.draw(s, i, "", nil, th), grown.draw(s, i, "", nil, th); a != b {
				t.Fatalf("%q row %d: %q, grown %q", s, i, a, b)
			}
			for _, p := range d.of(i) {
				if p.start > p.end || p.end > len(s) {
					t.Fatalf("%q: a piece of %d to %d", s, p.start, p.end)
				}
			}
		}
	})
}

// answered is a transcript of so many messages, half of them answers.
func answered(n int) *Transcript {
	t := NewTranscript(term.NewTheme(term.Look{Dark: true}, false))
	t.SetSize(100, 50)
	for i := range n / 2 {
		t.Ask(time.Time{}, fmt.Sprintf("question %d", i))
		b := t.Answer(time.Time{}, "")
		b.Run = i + 1
		b.AddText(sample)
		b.Finish()
	}
	t.Render()
	return t
}

// Scrolling through a long chat costs what it costs in a short one.
func BenchmarkScroll(b *testing.B) {
	for _, n := range []int{10, 2000} {
		b.Run(fmt.Sprint(n, " messages"), func(b *testing.B) {
			tr := answered(n)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%40 < 20 {
					tr.Scroll(-1)
				} else {
					tr.Scroll(1)
				}
				tr.Render()
				tr.Below()
			}
		})
		b.Run(fmt.Sprint(n, " messages, answering"), func(b *testing.B) {
			tr := answered(n)
			last := tr.Answer(time.Time{}, "")
			b.ReportAllocs()
			for b.Loop() {
				last.AddText("word ")
				if last.text.Len() > 10000 {
					last.text.Reset()
				}
				tr.Render()
				tr.Below()
			}
		})
	}
}

// BenchmarkFind is a key's cost in a search, and a frame's while it is open.
func BenchmarkFind(b *testing.B) {
	tr := answered(2000)
	b.Run("a key", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			tr.Find([]string{"th", "the", "the m"}[i%3])
		}
	})
	b.Run("a frame", func(b *testing.B) {
		for b.Loop() {
			tr.Render()
		}
	})
}

// BenchmarkStreaming is a frame's cost at the end of a long answer.
func BenchmarkStreaming(b *testing.B) {
	for _, n := range []int{1, 500} {
		b.Run(fmt.Sprint(n*len(sample)/1000, " kB"), func(b *testing.B) {
			tr := answered(2)
			text := strings.Repeat(sample+"\n\n", n)
			last := tr.Answer(time.Time{}, "")
			last.AddText(text)
			tr.Render()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%100 == 99 {
					last.AddText("\n")
				} else {
					last.AddText("word ")
				}
				tr.Render()
			}
		})
	}
}

// The rows that are counted are those that are drawn, in whatever order a chat changes.
func TestTheIndexIsOfTheRows(t *testing.T) {
	tr := NewTranscript(term.NewTheme(term.Look{Dark: true}, false))
	tr.SetSize(60, 10)
	check := func(what string) {
		t.Helper()
		n := 0
		for i := range tr.blocks {
			n += tr.rows(i)
		}
		if got := tr.total(); got != n {
			t.Errorf("after %s: %d rows, counted %d", what, n, got)
		}
	}
	tr.Note(time.Time{}, false, "a note")
	check("a note")
	tr.Ask(time.Time{}, sample)
	check("a question")
	b := tr.Answer(time.Time{}, "")
	check("an answer begun")
	tr.Render()
	b.AddReasoning("thinking\n")
	b.AddText(sample)
	check("an answer")
	tr.Note(time.Time{}, true, "another")
	tr.NoteBefore(b, time.Time{}, "before it")
	check("a note before")
	tr.Fold()
	check("unfolding")
	b.TextWasThought()
	check("a thought that was not told of")
	tr.SetMarkdown(false)
	check("turning Markdown off")
	tr.SetSize(30, 10)
	check("a resize")
	tr.DropEmpty(tr.Answer(time.Time{}, ""))
	check("an empty answer dropped")
	tr.Clear()
	check("clearing")
}
