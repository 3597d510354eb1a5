package flashio

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// insideMapping answers from /proc/self/maps.
func insideMapping(s *Files, ptrs []uintptr) ([]int, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	var spans []span
	for line := range bytes.Lines(maps) {
		sp, id, path, err := parseMapsLine(string(bytes.TrimSuffix(line, []byte("\n"))))
		if err != nil {
			return nil, err
		}
		if path != "" && s.isOneOf(id, path) {
			spans = append(spans, sp)
		}
	}
	return insideBy(ptrs, func(p uintptr) (span, bool, error) {
		if i := slices.IndexFunc(spans, func(sp span) bool { return sp.has(p) }); i >= 0 {
			return spans[i], true, nil
		}
		return span{p, p + 1}, false, nil
	})
}

// isOneOf compares by device and inode, which sees through hard links, and by
// name, because btrfs and overlayfs show another device in /proc/self/maps
// than they do in stat.
func (s *Files) isOneOf(id FileID, path string) bool {
	path = strings.TrimSuffix(path, " (deleted)")
	for i := range s.files {
		if s.files[i].ID == id || s.real(i) == path {
			return true
		}
	}
	return false
}

// real returns the path of file i without symbolic links, as the kernel names
// it.
func (s *Files) real(i int) string {
	if p, err := filepath.EvalSymlinks(s.files[i].Path); err == nil {
		return p
	}
	return s.files[i].Path // deleted since: the name it had
}

// parseMapsLine reads one line of /proc/self/maps (proc_pid_maps(5)):
// start-end perms offset major:minor inode path.
func parseMapsLine(line string) (sp span, id FileID, path string, err error) {
	bad := func() (span, FileID, string, error) {
		return span{}, FileID{}, "", fmt.Errorf("line of /proc/self/maps not understood: %q", line)
	}
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 5 {
		return bad()
	}
	from, to, ok := strings.Cut(fields[0], "-")
	major, minor, ok2 := strings.Cut(fields[3], ":")
	if !ok || !ok2 {
		return bad()
	}
	var n [5]uint64
	for i, f := range []struct {
		text string
		base int
	}{{from, 16}, {to, 16}, {major, 16}, {minor, 16}, {fields[4], 10}} {
		if n[i], err = strconv.ParseUint(f.text, f.base, 64); err != nil {
			return bad()
		}
	}
	if len(fields) == 6 {
		// A newline in a name is written as \012.
		path = strings.ReplaceAll(strings.TrimLeft(fields[5], " "), `\012`, "\n")
	}
	return span{uintptr(n[0]), uintptr(n[1])}, FileID{unix.Mkdev(uint32(n[2]), uint32(n[3])), n[4]}, path, nil
}

// adviseSequential lets the kernel read ahead of a sweep. It is a hint.
func adviseSequential(b []byte) { _ = unix.Madvise(b, unix.MADV_WILLNEED) }

func mincore(b, vec []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
