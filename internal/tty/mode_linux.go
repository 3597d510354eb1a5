package tty

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
)

func dup2(from, to int) error { return unix.Dup3(from, to, 0) }

// small makes a pipe hold as little as it can.
func small(pipe *os.File) {
	unix.FcntlInt(pipe.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()) // it works with more
}
