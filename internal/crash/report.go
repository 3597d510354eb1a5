package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// DirVariable names the environment variable that says where reports are
// written, in place of the user's state folder.
const DirVariable = "BMOE_STATE_DIR"

// keep is how many reports stay in the folder; older ones are removed.
const keep = 20

// maxStacks bounds the stacks of a report, in bytes.
const maxStacks = 256 << 10

// Folder returns the folder that reports are written to.
func Folder() (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		return filepath.Abs(dir)
	}
	return stateFolder()
}

// Report writes a report of a panic: it, and what all goroutines were doing.
// It holds places in the program, never what was asked or answered. The path
// comes back.
func (p *Panic) Report(version string) (string, error) {
	all := make([]byte, maxStacks)
	all = all[:runtime.Stack(all, true)]
	return Write(version, fmt.Sprintf("panic: %s\n\n%s\nall goroutines:\n%s", p, p.Stack, all))
}

// Write writes a report with the given text to the folder and returns its path.
// Quoted texts are left out of it: they are where a prompt could hide.
func Write(version, text string) (path string, err error) {
	dir, err := Folder()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	now := time.Now().UTC()
	f, err := os.CreateTemp(dir, "crash-"+now.Format("20060102-150405")+"-*.txt") // for its owner's eyes only
	if err != nil {
		return "", err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	var b strings.Builder
	fmt.Fprintf(&b, "bmoe ended by an error of its own. Please report it together with this file.\n\n%s\n%s/%s, %s, %s\n\n",
		version, runtime.GOOS, runtime.GOARCH, runtime.Version(), now.Format(time.RFC3339))
	for line := range strings.Lines(text) {
		b.WriteString(Unquoted(strings.TrimRight(line, "\n")) + "\n")
	}
	if _, err := f.WriteString(b.String()); err != nil {
		return "", err
	}
	prune(dir)
	return f.Name(), nil
}

// prune removes the oldest reports. What cannot be removed does not matter.
func prune(dir string) {
	old, err := filepath.Glob(filepath.Join(dir, "crash-*.txt"))
	if err != nil || len(old) <= keep {
		return
	}
	slices.Sort(old) // by time
	for _, path := range old[:len(old)-keep] {
		os.Remove(path)
	}
}

// Unquoted makes one line of printable characters of a text and empties what
// stands between quotation marks: errors quote what they complain of.
func Unquoted(s string) string {
	var b strings.Builder
	var quote rune
	for i, r := range s {
		switch {
		case quote != 0 && r != quote:
		case quote != 0:
			quote = 0
			b.WriteRune(r)
		case (r == '"' || r == '`') && strings.ContainsRune(s[i+utf8.RuneLen(r):], r):
			quote = r
			b.WriteString(string(r) + "...")
		case r == '\t':
			b.WriteRune(r)
		case !unicode.IsPrint(r):
			b.WriteByte(' ')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
