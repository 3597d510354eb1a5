package sessions

import (
	"fmt"
	"io"
	"strings"
)

// Markdown writes a session for people to read: what was said, and the runs.
func (s *Session) Markdown(w io.Writer) error {
	var b strings.Builder
	name := s.Name
	if name == "" {
		name = s.title()
	}
	fmt.Fprintf(&b, "# %s\n\n%s", name, s.Model.Name)
	if s.Model.Arch != "" {
		fmt.Fprintf(&b, " (%s)", s.Model.Arch)
	}
	b.WriteString("\n")
	for _, e := range s.Transcript {
		switch e.From {
		case FromUs:
			fmt.Fprintf(&b, "\n> %s\n", strings.ReplaceAll(strings.TrimSpace(e.Text), "\n", "\n> "))
			continue
		case FromUser:
			b.WriteString("\n## You")
		default:
			b.WriteString("\n## bmoe")
		}
		if e.Tag != "" {
			b.WriteString(", " + e.Tag)
		}
		if !e.When.IsZero() {
			b.WriteString(", " + e.When.Format("2006-01-02 15:04"))
		}
		b.WriteString("\n\n")
		if e.Reasoning != "" {
			fmt.Fprintf(&b, "<details><summary>thoughts</summary>\n\n%s\n\n</details>\n\n", closed(e.Reasoning))
		}
		b.WriteString(closed(e.Text) + "\n")
	}
	if len(s.Runs) > 0 {
		b.WriteString("\n## Runs\n\n")
		RunsTable(&b, s.Runs)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// RunsTable writes runs as a table of Markdown.
func RunsTable(b *strings.Builder, runs []Run) {
	b.WriteString("| run | tok/s | waits | hits | text | change | settings | prompt | note |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range runs {
		cells := []string{r.Name, r.TokS, r.Waits, r.Hits, r.Text, r.Change, r.Settings, Name(r.Prompt), r.Note}
		for i := range cells {
			cells[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cells[i])
		}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
}

// closed is a text in which a block of code that was not finished ends, so that what
// follows is not taken for code.
func closed(text string) string {
	text = strings.TrimSpace(text)
	open := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			open = !open
		}
	}
	if open {
		text += "\n```"
	}
	return text
}
