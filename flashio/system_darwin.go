package flashio

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// fdHandle reads through a file descriptor of its own.
type fdHandle struct {
	fd      int
	noCache bool
}

func systemOpen(path string, direct bool) (Handle, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	for n := 1; err == unix.EINTR && n < mostInterrupts; n++ {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if direct {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_NOCACHE, 1); err != nil {
			return nil, errors.Join(NoDirect(os.NewSyscallError("fcntl F_NOCACHE", err)), unix.Close(fd))
		}
		// Reads are random and exactly as long as wanted: nothing to read ahead.
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_RDAHEAD, 0); err != nil {
			return nil, errors.Join(NoDirect(os.NewSyscallError("fcntl F_RDAHEAD", err)), unix.Close(fd))
		}
	}
	return &fdHandle{fd, direct}, nil
}

func (h *fdHandle) ReadAt(p []byte, off int64) (int, error) {
	// A read of 2 GiB or more is refused here. 1 GiB keeps any alignment.
	p = p[:min(len(p), 1<<30)]
	n, err := unix.Pread(h.fd, p, off)
	if err != nil {
		return 0, os.NewSyscallError("pread", err)
	}
	return n, nil
}

func (h *fdHandle) Close() error {
	return os.NewSyscallError("close", unix.Close(h.fd))
}

// directKind says what a handle that was opened for direct reads really does:
// F_NOCACHE asks the cache not to keep what is read, and pages that are cached
// already are still served from it.
func directKind(h Handle) (direct, hint bool, reason string) {
	return false, true, "macOS has no direct I/O: F_NOCACHE is a hint"
}

// refusesDirect reports whether an open or a first direct read failed because
// direct I/O is not possible, not because the drive failed.
func refusesDirect(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP)
}

func systemFacts(path string) (Facts, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Facts{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return Facts{}, fmt.Errorf("open %s: is a directory, not a file", path)
	default:
		return Facts{}, fmt.Errorf("open %s: not a regular file", path)
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Facts{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return Facts{
		Size:     st.Size,
		Modified: st.Mtim.Nano(),
		ID:       FileID{uint64(uint32(st.Dev)), st.Ino},
		Page:     os.Getpagesize(),
		// The device's own sector takes permission to ask; the file system's
		// block is a multiple of it.
		Logical: int(fs.Bsize),
	}, nil
}
