package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"bmoe/internal/userdir"
)

// keep is how many reports stay in the folder; older ones are removed.
const keep = 20

// maxStacks bounds the stacks of a report, in bytes.
const maxStacks = 256 << 10

// report writes a report of a panic: it, and what all goroutines were doing. It
// holds places in the program, never what was asked or answered. The path comes
// back.
func (p *Panic) report(version string) (string, error) {
	all := make([]byte, maxStacks)
	all = all[:runtime.Stack(all, true)]
	return write(version, fmt.Sprintf("panic: %s\n\n%s\nall goroutines:\n%s", p, p.Stack, all))
}

// TellEnd writes a report of what the runtime said when it ended a program named
// so, and says so in one line on standard error.
func TellEnd(name, version, said string) {
	said = withoutValues(said)
	what := "a fatal error of the runtime" // its own line about that is not among what it sends
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			what = strings.TrimSpace(line)
			break
		}
	}
	fmt.Fprintf(os.Stderr, "%s: failed within itself: %s (please report this; %s)\n", name, what, told(write(version, said)))
}

// withoutValues leaves out of what the runtime says of a program's end what was
// passed to panic, unless the runtime made it. The lines of a value are indented
// but for the first, so none looks like the beginning of what follows it.
func withoutValues(said string) string {
	var b strings.Builder
	inValue := false
	for line := range strings.Lines(said) {
		switch {
		case strings.HasPrefix(line, "panic: runtime error: "):
			b.WriteString(line)
			inValue = true
		case strings.HasPrefix(line, "panic: "):
			b.WriteString("panic: its text is left out\n")
			inValue = true
		case strings.HasPrefix(line, "goroutine "), strings.HasPrefix(line, "[signal "):
			inValue = false
			fallthrough
		case !inValue:
			b.WriteString(line)
		}
	}
	return b.String()
}

// told says where a report is.
func told(path string, err error) string {
	if err != nil {
		return "no report could be written"
	}
	if strings.IndexFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
		path = strconv.Quote(path) // a folder may be named anything
	}
	return "the report is " + path
}

// write writes a report with the given text to the folder and returns its path.
func write(version, text string) (path string, err error) {
	dir, err := userdir.State()
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
	_, err = fmt.Fprintf(f, "bmoe ended by an error of its own. Please report it together with this file.\n\n%s\n%s/%s, %s, %s\n\n%s",
		version, runtime.GOOS, runtime.GOARCH, runtime.Version(), now.Format(time.RFC3339), text)
	if err != nil {
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
