package flashio

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// fdHandle reads through a file descriptor of its own.
type fdHandle struct{ fd int }

func systemOpen(path string, direct bool) (Handle, error) {
	flags := unix.O_RDONLY | unix.O_CLOEXEC
	if direct {
		flags |= unix.O_DIRECT
	}
	fd, err := retryOpen(path, flags)
	if err != nil {
		err = &os.PathError{Op: "open", Path: path, Err: err}
		if direct && errors.Is(err, unix.EINVAL) {
			return nil, NoDirect(err)
		}
		return nil, err
	}
	return &fdHandle{fd}, nil
}

func retryOpen(path string, flags int) (int, error) {
	for n := 1; ; n++ {
		fd, err := unix.Open(path, flags, 0)
		if err != unix.EINTR || n == mostInterrupts {
			return fd, err
		}
	}
}

func (h *fdHandle) ReadAt(p []byte, off int64) (int, error) {
	n, err := unix.Pread(h.fd, p, off)
	if err != nil {
		return 0, os.NewSyscallError("pread", err)
	}
	return n, nil
}

func (h *fdHandle) Close() error {
	return os.NewSyscallError("close", unix.Close(h.fd))
}

// refusesDirect reports whether an open or a first direct read failed because direct
// I/O is not possible, not because the drive failed.
func refusesDirect(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP)
}

// Magic numbers of file systems that live in memory (linux/magic.h, statfs(2)).
// Since Linux 6.6 tmpfs accepts O_DIRECT and serves it from memory, so the
// refusal has to be ours.
var memoryFS = map[int64]string{
	0x01021994: "tmpfs",
	0x858458f6: "ramfs",
}

func systemFacts(path string) (Facts, error) {
	st, err := statx(path)
	if err != nil {
		return Facts{}, err
	}
	switch uint32(st.Mode) & unix.S_IFMT {
	case unix.S_IFREG:
	case unix.S_IFDIR:
		return Facts{}, fmt.Errorf("open %s: is a directory, not a file", path)
	default:
		return Facts{}, fmt.Errorf("open %s: not a regular file", path)
	}
	f := Facts{
		Size:     int64(st.Size),
		Modified: st.Mtime.Sec*1e9 + int64(st.Mtime.Nsec),
		ID:       FileID{unix.Mkdev(st.Dev_major, st.Dev_minor), st.Ino},
		Page:     os.Getpagesize(),
	}
	f.Logical, f.Physical = deviceSectors(st.Dev_major, st.Dev_minor)
	if st.Mask&unix.STATX_DIOALIGN != 0 {
		f.DirectOffset, f.DirectMemory = int(st.Dio_offset_align), int(st.Dio_mem_align)
		if f.DirectOffset == 0 {
			f.NoDirect = "the file system has no direct I/O for this file"
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Facts{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	if name, ok := memoryFS[int64(fs.Type)&0xffffffff]; ok {
		f.NoDirect = name + " keeps the file in memory"
	}
	return f, nil
}

// statx asks for a file's facts. Kernels before 4.11 do not know the call, and the
// filters of some containers answer it with EPERM; stat tells all but what direct
// I/O asks for, which a read finds out.
func statx(path string) (st unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BASIC_STATS|unix.STATX_DIOALIGN, &st)
	if err == nil {
		return st, nil
	}
	if err != unix.ENOSYS && err != unix.EPERM {
		return st, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	var old unix.Stat_t
	if err := unix.Stat(path, &old); err != nil {
		return st, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return fromStat(&old), nil
}

// fromStat puts what stat tells into the form of statx.
func fromStat(old *unix.Stat_t) unix.Statx_t {
	st := unix.Statx_t{
		Mask: unix.STATX_BASIC_STATS, Mode: uint16(old.Mode), Size: uint64(old.Size), Ino: old.Ino,
		Dev_major: unix.Major(uint64(old.Dev)), Dev_minor: unix.Minor(uint64(old.Dev)),
	}
	st.Mtime.Sec, st.Mtime.Nsec = int64(old.Mtim.Sec), uint32(old.Mtim.Nsec)
	return st
}

// deviceSectors asks sysfs for a device's sector sizes: unlike the BLKSSZGET
// ioctl that needs no permission to open the device. They are zero for file
// systems without a block device of their own (btrfs, network, overlay).
func deviceSectors(major, minor uint32) (logical, physical int) {
	if major == 0 {
		return 0, 0
	}
	dir := fmt.Sprintf("/sys/dev/block/%d:%d/", major, minor)
	read := func(name string) int {
		// A partition has no queue of its own; its parent directory is the disk.
		for _, d := range []string{dir, dir + "../"} {
			if b, err := os.ReadFile(d + "queue/" + name); err == nil {
				n, err := strconv.Atoi(strings.TrimSpace(string(b)))
				if err == nil {
					return n
				}
			}
		}
		return 0
	}
	return read("logical_block_size"), read("physical_block_size")
}

// Descriptor returns the file descriptor, for io_uring.
func (h *fdHandle) Descriptor() int { return h.fd }
