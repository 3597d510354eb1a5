package term

import (
	"strings"
	"testing"
)

// However the text is cut into pieces, lines break at words and nowhere else.
func TestFolder(t *testing.T) {
	const text = "Once upon a time there was a very-long-hyphenated-word here.\n\n  indented line of words\nend  of  it"
	for width, want := range map[int]string{
		0:  text,
		16: "Once upon a time\nthere was a\nvery-long-hyphenated-word\nhere.\n\n  indented line\nof words\nend  of  it",
		80: text,
	} {
		for size := 1; size <= len(text); size++ {
			f := Folder{Width: width}
			var out strings.Builder
			for rest := text; rest != ""; {
				n := min(size, len(rest))
				f.Write(&out, rest[:n])
				rest = rest[n:]
			}
			f.Flush(&out)
			if out.String() != want {
				t.Fatalf("width %d, pieces of %d:\n got %q\nwant %q", width, size, out.String(), want)
			}
		}
	}
}
