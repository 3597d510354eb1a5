package tty

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"sync"

	"bmoe/internal/crash"
)

// watchVariable is set for the watcher: this program once more, which does
// nothing but wait for the end of the first. It holds the terminal's mode.
const watchVariable = "BMOE_WATCHED_TERMINAL"

// What the watcher is told beside what the runtime says of its end.
const (
	screenReleased = 0
	screenTaken    = 1
)

// watcher is the process's; nil while nobody watches.
var watcher *watch

// watch is our end of the watcher.
type watch struct {
	mu   sync.Mutex
	pipe *os.File // what is written here, the watcher reads
	cmd  *exec.Cmd
}

// StartWatcher starts a process that gives the terminal back and writes a
// report if this one ends by what it cannot recover from: an error of the
// runtime, no memory, SIGKILL. It is to be called before Take; the function that
// comes back ends it.
func StartWatcher(in, out *os.File) (stop func(), err error) {
	mode, err := modeOf(in)
	if err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	small(w)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), watchVariable+"="+mode)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, out, os.Stderr
	detach(cmd)
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, err
	}
	if err := debug.SetCrashOutput(w, debug.CrashOptions{}); err != nil {
		w.Close()
		cmd.Wait()
		return nil, err
	}
	watcher = &watch{pipe: w, cmd: cmd}
	return watcher.stop, nil
}

// note tells the watcher whether there is a screen to take away.
func (w *watch) note(state byte) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil {
		w.pipe.Write([]byte{state}) // it may have been killed
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe == nil {
		return
	}
	debug.SetCrashOutput(nil, debug.CrashOptions{}) // closing is all it does
	w.pipe.Close()
	w.pipe = nil
	w.cmd.Wait() // how it ended does not matter
}

// Watch is the whole of the program in the watcher's process; elsewhere it
// returns false at once. Its standard input is the other one's end, its
// standard output the terminal.
func Watch(version string) bool {
	mode, ok := os.LookupEnv(watchVariable)
	if !ok {
		return false
	}
	var said bytes.Buffer
	taken, back := false, func() {}
	if restore, err := modeRestorer(os.Stdin, os.Stdout, mode); err == nil {
		back = restore
	}
	buf := make([]byte, 512)
	for {
		n, err := os.Stdin.Read(buf)
		for _, c := range buf[:n] {
			switch c {
			case screenReleased, screenTaken:
				taken = c == screenTaken
			default:
				said.WriteByte(c)
			}
		}
		// The first words are enough: the pipe is small, so that the other
		// process cannot end, and the shell cannot write, before they are read.
		if taken && (said.Len() > 0 || err != nil) {
			taken = false
			back()
		}
		if err == io.EOF && said.Len() == 0 {
			return true // it ended in order, or was killed
		}
		if err != nil {
			break
		}
	}
	crash.TellEnd("bmoe", version, said.String())
	return true
}
