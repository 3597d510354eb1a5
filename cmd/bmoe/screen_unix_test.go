//go:build unix

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"bmoe/internal/conform"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"
)

// terminal is the program in a pseudo terminal, with an emulator that draws
// what it writes and answers what it asks.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	ptm    *os.File
	pts    *os.File
	emu    *vt.SafeEmulator
	before *term.State
	ended  chan struct{}

	mu      sync.Mutex
	written []byte // by the program
}

// raw returns what the program has written.
func (x *terminal) raw() []byte {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.written
}

// terminalKind is how a terminal is, and what the program finds in it.
type terminalKind struct {
	w, h      int           // columns and rows
	late      time.Duration // its answers
	env       []string
	ignoreHUP bool // SIGHUP is ignored, as under nohup
	wide      rune // a character that it draws two cells wide, whatever others think
}

// inTerminal starts the program in a terminal of w columns and h rows.
func inTerminal(t *testing.T, w, h int, args ...string) *terminal {
	t.Helper()
	return inTerminalThat(t, terminalKind{w: w, h: h}, args...)
}

func inTerminalThat(t *testing.T, kind terminalKind, args ...string) *terminal {
	t.Helper()
	w, h := kind.w, kind.h
	ptm, pts, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if ptm, err = pollable(ptm); err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(ptm, &pty.Winsize{Rows: uint16(h), Cols: uint16(w)}); err != nil {
		t.Fatal(err)
	}
	x := &terminal{t: t, cmd: program(args...), ptm: ptm, pts: pts, emu: vt.NewSafeEmulator(w, h), ended: make(chan struct{})}
	if x.before, err = term.GetState(pts.Fd()); err != nil {
		t.Fatal(err)
	}
	x.cmd.Env = append(x.cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8", "LC_ALL=")
	x.cmd.Env = append(x.cmd.Env, kind.env...)
	if kind.ignoreHUP {
		x.cmd.Path, x.cmd.Args = "/bin/sh", append([]string{"sh", "-c", `trap "" HUP; exec "$0" "$@"`}, x.cmd.Args...)
	}
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = pts, pts, pts
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 64<<10)
		var drawn []byte
		for {
			n, err := ptm.Read(buf)
			x.mu.Lock()
			x.written = append(x.written, buf[:n]...)
			x.mu.Unlock()
			drawn = append(drawn, buf[:n]...)
			if kind.wide != 0 {
				drawn = bytes.ReplaceAll(drawn, []byte(string(kind.wide)), []byte("世"))
			}
			whole := len(drawn)
			if start := bytes.LastIndexFunc(drawn, func(r rune) bool { return r != utf8.RuneError }); kind.wide != 0 && len(drawn)-start <= utf8.UTFMax {
				_, size := utf8.DecodeRune(drawn[start:])
				whole = start + size // a character may have come in part
			}
			if _, werr := x.emu.Write(drawn[:whole]); err != nil || werr != nil {
				return
			}
			drawn = append(drawn[:0], drawn[whole:]...)
		}
	}()
	go func() { // what the emulator answers
		buf := make([]byte, 4096)
		for {
			n, err := x.emu.Read(buf)
			time.Sleep(kind.late)
			if _, werr := ptm.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}()
	go func() {
		x.cmd.Wait() // its exit code is looked at later
		close(x.ended)
	}()
	t.Cleanup(func() {
		x.cmd.Process.Kill()
		<-x.ended
	})
	return x
}

// pollable makes a file of a device whose Close ends a Read.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

func (x *terminal) screen() string { return ansi.Strip(x.emu.Render()) }

func (x *terminal) types(s string) {
	x.t.Helper()
	if _, err := io.WriteString(x.ptm, s); err != nil {
		x.t.Fatal(err)
	}
}

// besides is where the panes begin.
var besides = regexp.MustCompile(`│ [│├╭╰]`)

// unwrapped is the text of the chat without its frame and its line breaks:
// where a sentence is broken depends on its figures.
func unwrapped(screen string) string {
	var b strings.Builder
	for line := range strings.Lines(screen) {
		if at := besides.FindStringIndex(line); at != nil {
			line = line[:at[0]]
		}
		b.WriteString(strings.Trim(line, "│ \n") + " ")
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// waitFor waits until the screen shows all of the texts.
func (x *terminal) waitFor(texts ...string) string {
	x.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		s, missing := x.screen(), ""
		whole := unwrapped(s)
		for _, text := range texts {
			if !strings.Contains(s, text) && !strings.Contains(whole, text) {
				missing = text
			}
		}
		if missing == "" {
			return s
		}
		select {
		case <-x.ended:
			x.t.Fatalf("the program ended before %q appeared:\n%s", missing, s)
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("%q did not appear:\n%s", missing, s)
		}
	}
}

// closes closes a full-screen view that shows a text. Until the text has gone, the
// rest of the screen may still be of the frame before, and a key that is pressed
// might come to the program together with Esc, as Alt and that key.
func (x *terminal) closes(text string) {
	x.t.Helper()
	x.types(keyEsc)
	deadline := time.Now().Add(patience)
	for strings.Contains(x.screen(), text) {
		if time.Now().After(deadline) {
			x.t.Fatalf("%q stays:\n%s", text, x.screen())
		}
		time.Sleep(5 * time.Millisecond)
	}
	x.waitFor("ask something")
}

// quit ends the program with keys and checks what it leaves.
func (x *terminal) quit(keys string, code int) {
	x.t.Helper()
	x.types(keys)
	select {
	case <-x.ended:
	case <-time.After(patience):
		x.t.Fatalf("the program did not end:\n%s", x.screen())
	}
	if got := x.cmd.ProcessState.ExitCode(); got != code {
		x.t.Errorf("exit code %d, want %d:\n%s", got, code, x.screen())
	}
	after, err := term.GetState(x.pts.Fd())
	if err != nil {
		x.t.Fatal(err)
	}
	if *after != *x.before {
		x.t.Error("the terminal's mode is not what it was")
	}
	deadline := time.Now().Add(5 * time.Second)
	for x.emu.IsAltScreen() || x.emu.CursorHidden() {
		if time.Now().After(deadline) {
			x.t.Fatalf("alternate screen %v, cursor hidden %v after the end", x.emu.IsAltScreen(), x.emu.CursorHidden())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// left returns the part of the screen left of the panes, right the panes.
func halves(screen string) (left, right string) {
	var l, r strings.Builder
	for line := range strings.Lines(screen) {
		runes := []rune(strings.TrimRight(line, "\n"))
		n := min(len(runes), len(runes)/2)
		l.WriteString(string(runes[:n]) + "\n")
		r.WriteString(string(runes[n:]) + "\n")
	}
	return l.String(), r.String()
}

const (
	keyF2    = "\x1bOQ"
	keyF3    = "\x1bOR"
	keyF4    = "\x1bOS"
	keyF5    = "\x1b[15~"
	keyF6    = "\x1b[17~"
	keyF10   = "\x1b[21~"
	keyDown  = "\x1b[B"
	keyAgain = "\x07"
	keyEsc   = "\x1b"
	keyStop  = "\x03"
)

// steps changes the budget by a key and returns it in MiB once it is another one.
func (x *terminal) steps(key, from string) string {
	x.t.Helper()
	applied := regexp.MustCompile(`cache (\d+) MiB applied`)
	x.types(key)
	deadline := time.Now().Add(patience)
	for {
		s := x.screen()
		if all := applied.FindAllStringSubmatch(s, -1); all != nil && all[len(all)-1][1] != from {
			return all[len(all)-1][1]
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("the budget is still %s MiB:\n%s", from, s)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// The whole way of a user: start, ask, watch, change, repeat, compare.
func TestScreen(t *testing.T) {
	began := time.Now()
	x := inTerminal(t, 160, 45, "--cache-mb", "8") // the default differs with the page
	x.waitFor("> ")
	t.Logf("the prompt box took %v", time.Since(began))
	x.waitFor("ask something", "Tiny Stories MoE", "qwen3moe", "idle")

	x.types("Tell me a story about a dog.\r")
	lefts, rights, steps := map[string]bool{}, map[string]bool{}, map[string]bool{}
	step := regexp.MustCompile(`decoding (\d+)/`)
	deadline := time.Now().Add(patience)
	for {
		s := x.screen()
		if m := step.FindStringSubmatch(s); m != nil {
			l, r := halves(s)
			lefts[l], rights[r], steps[m[1]] = true, true, true
		}
		if strings.Contains(s, "tok/s; ") && strings.Contains(s, "idle") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("no answer:\n%s", s)
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Logf("%d states of the text, %d of the panes, %d of the counter", len(lefts), len(rights), len(steps))
	if len(lefts) < 2 || len(rights) < 2 || len(steps) < 2 {
		t.Errorf("nothing moved: %d states of the text, %d of the panes, %d of the counter", len(lefts), len(rights), len(steps))
	}
	x.waitFor("computes", "cache", "waits", "one token needs", "direct", "MAPPED")

	x.types(keyF2)
	x.waitFor("release-mmap on applied", "RELEASED")
	x.types(keyAgain)
	x.waitFor("run 2 against run 1 (release-mmap on)")
	x.types(keyF4)
	x.waitFor("lanes 8 applied")
	up := x.steps(keyF6, "8")
	most := x.steps(keyF6, up)
	x.types(keyAgain)
	x.waitFor("run 3 against run ", "lanes 8, cache "+most+" MiB")
	x.types(keyF3)
	x.waitFor("lanes 4 applied")
	if down := x.steps(keyF5, most); down != up {
		t.Errorf("F5 after F6 leads from %s MiB to %s and not back to %s", most, down, up)
	}
	x.types(keyAgain)
	// Held against the last run that nothing disturbed.
	x.waitFor("run 4 against run ")

	x.types(keyF10)
	s := x.waitFor("settings that differ", "Esc close") // the last of it that is drawn
	// Which run the last ones are held against depends on what disturbed the others.
	for i, differs := range []string{"lanes 4, cache 8 MiB", "release-mmap on", "lanes 8, cache " + most + " MiB", "cache " + up + " MiB"} {
		line := runLine(t, s, i+1)
		if !strings.Contains(line, differs) {
			t.Errorf("run %d does not say %q: %s", i+1, differs, line)
		}
		if i > 0 && (!strings.Contains(line, "identical") || !regexp.MustCompile(`faster|slower|no clear change|not comparable`).MatchString(line)) {
			t.Errorf("run %d lacks its comparison, or the text differs: %s", i+1, line)
		}
	}
	x.closes("settings that differ")

	// A paste of several lines is one message.
	x.types("\x1b[200~Who are you?\nTell me.\x1b[201~")
	x.waitFor("> Who are you?", "  Tell me.")
	x.types("\r" + keyF10)
	x.waitFor("Who are you? Tell me.") // the fifth run's prompt
	x.closes("settings that differ")
	x.quit(keyStop+keyStop, 0)
}

// runLine returns a run's line in the list of runs.
func runLine(t *testing.T, screen string, n int) string {
	t.Helper()
	start := regexp.MustCompile(`^│[\s▶]*` + strconv.Itoa(n) + ` `)
	for line := range strings.Lines(screen) {
		if start.MatchString(line) {
			return line
		}
	}
	t.Fatalf("no line of run %d:\n%s", n, screen)
	return ""
}

// On the simulated host that serialises reads of a mapped file, handing the
// mapping back lowers the stall, and changes neither text nor hits nor bytes.
func TestReleaseOnTheSimulatedHost(t *testing.T) {
	x := inTerminal(t, 170, 50, "--simulate-host", "ntfs", "-n", "24", "--temp", "0")
	x.waitFor("ask something", "idle", "SIMULATED")
	x.types("Tell me a story about a dog.\r")
	x.waitFor("24 tokens", "idle")
	x.types(keyF2)
	x.waitFor("release-mmap on applied", "RELEASED")
	// By how much is the machine's affair: that reads are served at once and no
	// longer in turn is flashio's to test, on a schedule.
	const tries = 2
	var stalls, reads []float64
	for try := range tries {
		x.types(keyAgain)
		x.waitFor(fmt.Sprintf("run %d again", try+2))
		x.types(keyF10) // the newest is picked, beside those equal to it
		s := x.waitFor("settings that differ", "against run 1 (release-mmap on)", "text identical", "re-reads", "Esc close")
		detail := s[strings.Index(s, "against run 1 (release-mmap on)"):]
		detail = strings.Join(strings.FieldsFunc(detail, func(r rune) bool { return unicode.IsSpace(r) || r == '│' }), " ")
		for _, same := range []string{"MiB/token", "hit %", "evictions", "re-reads"} {
			if is, was := sideBySide(t, detail, same); is != was {
				t.Errorf("%s: %v from %v: %s", same, is, was, detail)
			}
		}
		is, was := sideBySide(t, detail, "waits")
		stalls = append(stalls, 100*(is/was-1))
		is, was = sideBySide(t, detail, "read p50")
		reads = append(reads, 100*(is/was-1))
		x.closes("settings that differ")
	}
	t.Logf("the stall changed by %v %%, the median read by %v %%", stalls, reads)
	x.quit(keyStop+keyStop, 0)
}

// sideBySide returns a figure of the picked runs and of those they are held
// against.
func sideBySide(t *testing.T, detail, figure string) (is, was float64) {
	t.Helper()
	m := regexp.MustCompile(figure + ` (\d+(?:\.\d+)?) from (\d+(?:\.\d+)?)`).FindStringSubmatch(detail)
	if m == nil {
		t.Fatalf("no %s side by side: %s", figure, detail)
	}
	var err error
	if is, err = strconv.ParseFloat(m[1], 64); err != nil {
		t.Fatal(err)
	}
	if was, err = strconv.ParseFloat(m[2], 64); err != nil {
		t.Fatal(err)
	}
	return is, was
}

// The flags for poor terminals reach the screen.
func TestScreenFlags(t *testing.T) {
	x := inTerminal(t, 100, 30, "--ascii", "--no-mouse")
	s := x.waitFor("ask something", "idle")
	for _, r := range s {
		if r > unicode.MaxASCII {
			t.Fatalf("%q is not ASCII:\n%s", r, s)
		}
	}
	x.quit(keyStop+keyStop, 0)
	if bytes.Contains(x.raw(), []byte("\x1b[?1002h")) {
		t.Error("--no-mouse took the mouse")
	}

	x = inTerminal(t, 100, 30)
	s = x.waitFor("ask something", "idle")
	if !strings.ContainsRune(s, '│') {
		t.Errorf("ASCII without having been asked for:\n%s", s)
	}
	x.quit(keyStop+keyStop, 0)
	if !bytes.Contains(x.raw(), []byte("\x1b[?1002h")) {
		t.Error("no mouse without --no-mouse: the test sees nothing")
	}
}

// Ctrl+C while it loads and while it answers leaves the terminal as it was.
func TestCtrlCOnTheScreen(t *testing.T) {
	x := inTerminal(t, 100, 30, "--simulate-host", "ntfs")
	x.waitFor("> ")
	x.quit(keyStop+keyStop, 0)

	x = inTerminal(t, 100, 30, "--simulate-host", "ntfs")
	x.waitFor("idle")
	x.types("Tell me a story about a dog.\r")
	x.waitFor("decoding")
	x.quit(keyStop+keyStop, 0)
}

// What cannot be opened is said on the terminal, in one line, once it is given back.
func TestScreenOfAMissingModel(t *testing.T) {
	missing := filepath.Join(conform.TempDir(t), "none.gguf")
	x := inTerminal(t, 100, 30, missing)
	select {
	case <-x.ended:
	case <-time.After(patience):
		t.Fatal("did not end")
	}
	x.waitForText("bmoe: ", "none.gguf")
	x.quit("", 1)
}

// waitForText is waitFor for what the program has left behind.
func (x *terminal) waitForText(texts ...string) {
	x.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for _, text := range texts {
		for !strings.Contains(x.screen(), text) {
			if time.Now().After(deadline) {
				x.t.Fatalf("%q is not on the terminal:\n%s", text, x.screen())
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// The chat line by line needs no terminal: a conversation may come from a file.
func TestPlainChat(t *testing.T) {
	cmd := program("--plain", "-n", "12", "--temp", "0")
	cmd.Stdin = strings.NewReader("Who are you?\n/lanes 2\n/release on\n/again\n/runs\n/quit\n")
	r := finish(t, cmd)
	if r.code != 0 || r.stderr != "" {
		t.Fatalf("exit code %d, %q", r.code, r.stderr)
	}
	for _, want := range []string{"I am a", "lanes 2: applied", "release-mmap on: applied", "run 2 against run 1 (lanes 2, release-mmap on)", "text identical"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("no %q in %s", want, r.stdout)
		}
	}
	if bytes.ContainsRune([]byte(r.stdout), '\x1b') {
		t.Errorf("an escape in %q", r.stdout)
	}
}

// A character that the terminal draws wider than the program thinks must not
// push lines onto the next ones: every row stays where it is, and nothing
// scrolls. Terminals of East Asia draw Greek so.
func TestWiderCharactersDoNotScroll(t *testing.T) {
	const w, h, wide = 100, 30, 'Ω'
	x := inTerminalThat(t, terminalKind{w: w, h: h, wide: wide})
	x.waitFor("idle")
	x.types("\x1b[200~" + strings.Repeat(string(wide), 3*w) + "the end\x1b[201~")
	x.waitFor("the end")
	x.types("\r")
	x.waitFor("failed: the prompt has", "raise --ctx-size") // it is too long, and comes back to be changed
	x.types(keyStop + "still in place")
	rows := strings.Split(x.waitFor("> still in place"), "\n")
	wider := 0
	for _, row := range rows {
		if strings.Contains(row, strings.Repeat("世", w/2-2)) {
			wider++
		}
	}
	if len(rows) != h || wider < 3 {
		t.Fatalf("%d rows, %d of them wider: the test sees nothing", len(rows), wider)
	}
	if !strings.Contains(rows[0], "Tiny Stories MoE") || !strings.Contains(rows[1], "╭") || !strings.Contains(rows[h-2], "F1 help") {
		t.Errorf("rows have moved:\n%s", strings.Join(rows, "\n"))
	}
	x.quit(keyStop+keyStop+keyStop, 0)
}
