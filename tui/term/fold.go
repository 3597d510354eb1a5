package term

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Folder breaks lines at words in a text that arrives in pieces and cannot be
// taken back: a word is held until it has ended. Nothing is broken if the width is
// 0; then the pieces pass as they come.
type Folder struct {
	Width   int // columns
	col     int // of what has been written
	spaces  int // held: dropped where a line breaks
	word    strings.Builder
	wordCol int
}

// Write adds a piece's text to dst, but for a last word that may go on.
func (f *Folder) Write(dst *strings.Builder, s string) {
	if f.Width <= 0 {
		f.Flush(dst)
		dst.WriteString(s)
		return
	}
	for s != "" {
		switch s[0] {
		case '\n':
			f.Flush(dst)
			f.Begin()
			dst.WriteByte('\n')
			s = s[1:]
		case ' ':
			f.Flush(dst)
			f.spaces++
			s = s[1:]
		default:
			n, w := cluster(s, ansi.WcWidth)
			f.word.WriteString(s[:n])
			f.wordCol += w
			s = s[n:]
		}
	}
}

// Flush adds the held word to dst: on a line of its own if it does not fit. A word
// longer than a line is the terminal's to break.
func (f *Folder) Flush(dst *strings.Builder) {
	if f.word.Len() == 0 {
		return
	}
	if f.col > 0 && f.col+f.spaces+f.wordCol > f.Width {
		dst.WriteByte('\n')
		f.col, f.spaces = 0, 0
	}
	dst.WriteString(Blanks(f.spaces) + f.word.String())
	f.col, f.spaces = f.col+f.spaces+f.wordCol, 0
	f.word.Reset()
	f.wordCol = 0
}

// Begin says that a line has been ended by somebody else.
func (f *Folder) Begin() { f.col, f.spaces = 0, 0 }
