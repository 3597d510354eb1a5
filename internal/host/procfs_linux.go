package host

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A procFile is a small text file of /proc or /sys that is read again and again:
// the kernel writes it anew at every read from offset 0.
type procFile struct{ fd int }

func openProcFile(path string) (procFile, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return procFile{-1}, os.NewSyscallError("open "+path, err)
	}
	return procFile{fd}, nil
}

// read returns the file's text in buf, or nothing if it cannot be read.
func (f procFile) read(buf []byte) []byte {
	if f.fd < 0 {
		return nil
	}
	for {
		n, err := unix.Pread(f.fd, buf, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n < 0 {
			return nil
		}
		return buf[:n]
	}
}

func (f *procFile) close() error {
	if f.fd < 0 {
		return nil
	}
	err := os.NewSyscallError("close", unix.Close(f.fd))
	f.fd = -1
	return err
}

// field returns the number after "key:" at the start of a line.
func field(text []byte, key string) (int64, bool) {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(line) > len(key) && string(line[:len(key)]) == key && line[len(key)] == ':' {
			v, _, ok := number(line[len(key)+1:])
			return v, ok
		}
	}
	return 0, false
}

// number reads the unsigned number that text starts with, blanks before it
// skipped, and returns what follows it.
func number(text []byte) (v int64, rest []byte, ok bool) {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for len(text) > 0 && '0' <= text[0] && text[0] <= '9' {
		v = v*10 + int64(text[0]-'0')
		text = text[1:]
		ok = true
	}
	return v, text, ok
}

// readNumber returns the number that a file consists of. Files that say "max"
// where there is no limit yield false.
func readNumber(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return v, err == nil
}

// A controlGroup is one place where a limit on this process may stand: a folder
// of the control group file system and the folder where its hierarchy starts.
type controlGroup struct {
	root, path string
	v2         bool
}

// folders returns the group's folder and all above it: each may limit.
func (g controlGroup) folders() []string {
	folders := []string{g.root}
	at := g.root
	for _, name := range strings.Split(g.path, "/") {
		if name != "" && name != ".." {
			at = filepath.Join(at, name)
			folders = append(folders, at)
		}
	}
	return folders
}

// controlGroups returns the groups in which a controller (memory, cpu) may limit
// this process. The roots are where the distributions mount them. Inside a
// container the path may name folders that are not visible there; they are then
// missing, and the root, which is the container's own group, speaks.
func controlGroups(fsRoot, controller string) []controlGroup {
	text, err := os.ReadFile(filepath.Join(fsRoot, "proc/self/cgroup"))
	if err != nil {
		return nil
	}
	mount := filepath.Join(fsRoot, "sys/fs/cgroup")
	var groups []controlGroup
	for line := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n") {
		// hierarchy-ID:controller-list:cgroup-path (cgroups(7))
		parts := strings.SplitN(line, ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			groups = append(groups, controlGroup{mount, parts[2], true}, controlGroup{filepath.Join(mount, "unified"), parts[2], true})
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			if name == controller {
				groups = append(groups, controlGroup{filepath.Join(mount, parts[1]), parts[2], false})
			}
		}
	}
	return groups
}

// closeAll closes the files and joins the errors.
func closeAll(files ...*procFile) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.close())
	}
	return errors.Join(errs...)
}
