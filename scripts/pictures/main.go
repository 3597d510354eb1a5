//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// picture is one visit, and where its last screen goes.
type picture struct {
	name string
	w, h int
	args []string
	// keys are typed one after the other; what follows a text that begins with "..." is
	// waited for.
	keys []string
}

const question = "Tell me a story about a dog."

var pictures = []picture{
	{"chat", 120, 40, []string{"--simulate-host", "ntfs"}, []string{question, enter, "...idle"}},
	{"runs", 120, 24, []string{"--simulate-host", "ntfs"}, []string{question, enter, "...idle", f2, "...applied", again, "...run 2 against", f10, "...runs"}},
	{"narrow", 80, 24, nil, []string{question, enter, "...idle"}},
	{"experts", 120, 24, nil, []string{question, enter, "...idle", f8, "...in memory"}},
}

const (
	enter = "\r"
	f2    = "\x1bOQ"
	f8    = "\x1b[19~"
	f10   = "\x1b[21~"
	again = "\x07"
)

func main() {
	if err := draw("docs/pictures"); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

// draw makes all pictures in the folder.
func draw(to string) error {
	dir, err := os.MkdirTemp("", "pictures")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "bmoe")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/bmoe").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w: %s", err, out)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, p := range pictures {
		drawn, err := visit(program, dir, p)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if err := os.WriteFile(filepath.Join(to, p.name+".svg"), []byte(drawn), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long a visit waits for what must appear.
const patience = time.Minute

// visit runs the program, types, and draws the screen as it then is.
func visit(program, home string, p picture) (string, error) {
	cmd := exec.Command(program, append([]string{"--no-save"}, p.args...)...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=truecolor", "LANG=C.UTF-8", "HOME="+home, "BMOE_CACHE_DIR="+home)
	cmd.Env = without(cmd.Env, "NO_COLOR")
	line, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: uint16(p.h), Cols: uint16(p.w)})
	if err != nil {
		return "", err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	defer line.Close()
	screen := vt.NewSafeEmulator(p.w, p.h)
	go io.Copy(screen, line) // what the program draws; both end, with an error, when the line is closed
	go io.Copy(line, screen) // what the terminal answers when it is asked
	if err := await(screen, "ask something"); err != nil {
		return "", err
	}
	for _, k := range p.keys {
		if want, ok := strings.CutPrefix(k, "..."); ok {
			if err := await(screen, want); err != nil {
				return "", err
			}
			continue
		}
		time.Sleep(300 * time.Millisecond) // as nobody types faster than a frame
		if _, err := line.WriteString(k); err != nil {
			return "", err
		}
		time.Sleep(300 * time.Millisecond)
	}
	time.Sleep(time.Second) // for the last figures
	return svg(screen, p.w, p.h), nil
}

// without drops a variable.
func without(env []string, name string) []string {
	var kept []string
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			kept = append(kept, e)
		}
	}
	return kept
}

// await waits until a text is on the screen.
func await(screen *vt.SafeEmulator, want string) error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if strings.Contains(text(screen), want) {
			return nil
		}
	}
	return fmt.Errorf("%q did not appear on\n%s", want, text(screen))
}

// text is the screen's characters.
func text(screen *vt.SafeEmulator) string {
	var b strings.Builder
	for y := range screen.Height() {
		for x := 0; x < screen.Width(); {
			c := screen.CellAt(x, y)
			if c == nil || c.Content == "" {
				b.WriteByte(' ')
				x++
				continue
			}
			b.WriteString(c.Content)
			x += max(c.Width, 1)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
