//go:build !windows

package tty

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// modeOf returns the mode of a terminal's line as text.
func modeOf(in *os.File) (string, error) {
	mode, err := unix.IoctlGetTermios(int(in.Fd()), getMode)
	if err != nil {
		return "", os.NewSyscallError("read the terminal's mode", err)
	}
	var b bytes.Buffer
	if err := binary.Write(&b, binary.NativeEndian, mode); err != nil {
		return "", err
	}
	return hex.EncodeToString(b.Bytes()), nil
}

// modeRestorer returns what gives the terminal back, its line in that mode. The
// watcher reads the pipe on standard input, so it goes by the output.
func modeRestorer(_, out *os.File, text string) (func(), error) {
	b, err := hex.DecodeString(text)
	if err != nil {
		return nil, err
	}
	var mode unix.Termios
	if err := binary.Read(bytes.NewReader(b), binary.NativeEndian, &mode); err != nil {
		return nil, err
	}
	return func() {
		write(out, giveBack, writePatience)
		setTermios(int(out.Fd()), &mode) // fails where the terminal has gone
	}, nil
}

// detach takes a process out of the terminal's session: keys that stop or
// interrupt the first program are not for it, and it may set the terminal's mode
// from where it is.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
