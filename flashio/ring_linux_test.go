package flashio

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// brokenRing opens a ring over a file of n blocks of 4 KiB, each filled with its
// number, and lets broken decide about each call into the kernel: 0 passes.
func brokenRing(t *testing.T, n int, broken func(call int) syscall.Errno) (u *uring, pauses *atomic.Int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "blocks")
	var b []byte
	for i := range n {
		b = append(b, bytes.Repeat([]byte{byte(i)}, 4096)...)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenFiles([]string{path}, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rd, err := OpenURing(s, LaneOptions{Lanes: 4, NoDirect: true})
	if errors.Is(err, ErrNotAvailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rd.Close(); err != nil {
			t.Error(err)
		}
	})
	u, pauses = rd.(*uring), new(atomic.Int64)
	calls := 0
	// The ring's goroutine looks at these only after a request has come.
	u.ring.pause = func(ns int64) { pauses.Add(1) }
	u.ring.call = func(fd int, pending uint32) (uint32, syscall.Errno) {
		calls++
		if errno := broken(calls); errno != 0 {
			return 0, errno
		}
		return ringEnter(fd, pending)
	}
	return u, pauses
}

// readBlocks reads n blocks at once and checks them.
func readBlocks(t *testing.T, u *uring, n int) {
	t.Helper()
	var g Group
	rs := make([]*Request, n)
	for i := range rs {
		rs[i] = &Request{Offset: int64(i) * 4096, Buf: alignedBytes(4096, int(u.set.align)), Need: 4096, Done: &g}
	}
	g.Add(n)
	u.Submit(rs...)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, r := range rs {
		if r.N != 4096 || r.Buf[0] != byte(i) || r.Buf[4095] != byte(i) {
			t.Errorf("block %d: %d bytes, %d", i, r.N, r.Buf[0])
		}
	}
}

// A ring that fails for good, at any call, hands everything on to lanes: no
// request is lost, none is answered twice, and the reader says why.
func TestARingThatFailsIsReplacedByLanes(t *testing.T) {
	for _, errno := range []syscall.Errno{unix.ENOMEM, unix.EPERM, unix.EBADF, unix.EAGAIN} {
		for from := 1; from <= 6; from++ {
			u, pauses := brokenRing(t, 32, func(call int) syscall.Errno {
				if call >= from {
					return errno
				}
				return 0
			})
			for range 4 {
				readBlocks(t, u, 32)
			}
			if why := u.Mode().Fallback; u.Engine() != "lanes" || !strings.Contains(why, errno.Error()) {
				t.Errorf("%v at call %d: engine %s, %q", errno, from, u.Engine(), why)
			}
			if errno == unix.EAGAIN && pauses.Load() < patience {
				t.Errorf("EAGAIN without end: only %d pauses", pauses.Load())
			}
		}
	}
}

// Errors that pass leave the ring in place.
func TestARingOutlastsErrorsThatPass(t *testing.T) {
	u, pauses := brokenRing(t, 16, func(call int) syscall.Errno {
		switch {
		case call%7 == 1:
			return unix.EAGAIN
		case call%7 == 3:
			return unix.EINTR
		}
		return 0
	})
	for range 8 {
		readBlocks(t, u, 16)
	}
	if u.Engine() != "uring" || u.Mode().Fallback != "" || pauses.Load() == 0 {
		t.Errorf("engine %s, %q, %d pauses", u.Engine(), u.Mode().Fallback, pauses.Load())
	}
}

// Where lanes cannot be opened either, requests fail and say both reasons.
func TestARingThatFailsWithoutItsFile(t *testing.T) {
	u, _ := brokenRing(t, 4, func(int) syscall.Errno { return unix.ENOMEM })
	if err := os.Remove(u.set.files[0].Path); err != nil {
		t.Fatal(err)
	}
	var g Group
	g.Add(1)
	u.Submit(&Request{Buf: alignedBytes(4096, int(u.set.align)), Need: 4096, Done: &g})
	err := g.Wait()
	if err == nil || !errors.Is(err, unix.ENOMEM) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
