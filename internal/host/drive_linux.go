package host

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// driveSource reads the stat file of each whole drive under the file system, and
// /proc/self/io. Both count sectors that really moved, not reads that the page
// cache served; /proc/self/io counts at submission and the drive on completion.
type driveSource struct {
	name   string
	drives []procFile
	own    procFile
	buf    [512]byte
}

// sectorSize is the unit of /sys/block/*/stat, whatever the device's own sectors
// are (Documentation/block/stat.rst of the kernel).
const sectorSize = 512

func (s *driveSource) open(path string) error {
	s.own.fd = -1
	names, err := drivesUnder(path)
	if err != nil {
		return fmt.Errorf("drive of %s: %w", path, err)
	}
	for _, name := range names {
		f, err := openProcFile("/sys/class/block/" + name + "/stat")
		if err != nil {
			s.close()
			return fmt.Errorf("drive of %s: %w", path, err)
		}
		s.drives = append(s.drives, f)
	}
	s.name = strings.Join(names, "+")
	// Without it (a kernel without task accounting) the drive's totals remain.
	s.own, _ = openProcFile("/proc/self/io")
	return nil
}

func (s *driveSource) close() error {
	files := []*procFile{&s.own}
	for i := range s.drives {
		files = append(files, &s.drives[i])
	}
	return closeAll(files...)
}

func (s *driveSource) sample(dst *DriveSample) {
	text := s.own.read(s.buf[:])
	read, okRead := field(text, "read_bytes")
	written, okWritten := field(text, "write_bytes")
	if okRead && okWritten {
		dst.OwnRead, dst.OwnWritten = read, written
		dst.Has |= HasOwn
	}
	for _, f := range s.drives {
		read, written, ok := driveCounters(f.read(s.buf[:]))
		if !ok {
			return // half a sum would look like a drop
		}
		dst.Read += read
		dst.Written += written
	}
	dst.Has |= HasDrive
}

// driveCounters takes the bytes read and written out of a block device's stat
// file: reads, merged, sectors, ms, then the same for writes.
func driveCounters(text []byte) (read, written int64, ok bool) {
	var v int64
	for i := range 7 {
		if v, text, ok = number(text); !ok {
			return 0, 0, false
		}
		switch i {
		case 2:
			read = v * sectorSize
		case 6:
			written = v * sectorSize
		}
	}
	return read, written, true
}

// drivesUnder returns the names of the whole drives that hold the file's data.
func drivesUnder(path string) ([]string, error) {
	folder, err := blockFolder(path)
	if err != nil {
		return nil, err
	}
	names := wholeDrives(folder)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// blockFolder returns the folder of sysfs of the block device that holds the file.
func blockFolder(path string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return "", os.NewSyscallError("stat", err)
	}
	device := st.Dev
	if unix.Major(device) == 0 {
		// Not a block device: btrfs and overlays number their own. The mount
		// table may know the device beneath.
		mounts, err := os.ReadFile("/proc/self/mountinfo")
		if err != nil {
			return "", fmt.Errorf("read mount table: %w", err)
		}
		source, kind := mountOf(string(mounts), unix.Major(device), unix.Minor(device))
		if !strings.HasPrefix(source, "/dev/") || unix.Stat(source, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFBLK {
			return "", fmt.Errorf("a file system of type %q has no block device", kind)
		}
		device = st.Rdev
	}
	link := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(device), unix.Minor(device))
	folder, err := filepath.EvalSymlinks(link)
	if err != nil {
		return "", fmt.Errorf("find block device: %w", err)
	}
	return folder, nil
}

// wholeDrives goes from a block device's sysfs folder to the drives that move its
// bytes: from a partition to its drive, from a mapped or striped volume to its
// members.
func wholeDrives(folder string) []string {
	if _, err := os.Stat(filepath.Join(folder, "partition")); err == nil {
		return wholeDrives(filepath.Dir(folder))
	}
	members, err := os.ReadDir(filepath.Join(folder, "slaves"))
	if err != nil || len(members) == 0 {
		return []string{filepath.Base(folder)}
	}
	var names []string
	for _, m := range members {
		below, err := filepath.EvalSymlinks(filepath.Join(folder, "slaves", m.Name()))
		if err != nil {
			continue
		}
		names = append(names, wholeDrives(below)...)
	}
	return names
}

// mountOf finds a device number in the text of /proc/self/mountinfo and returns
// the mount's source and type (proc_pid_mountinfo(5): the source is the second
// field after the lone dash, the type the first).
func mountOf(mounts string, major, minor uint32) (source, kind string) {
	want := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.SplitSeq(mounts, "\n") {
		before, after, found := strings.Cut(line, " - ")
		fields, tail := strings.Fields(before), strings.Fields(after)
		if found && len(fields) > 2 && len(tail) > 1 && fields[2] == want {
			return tail[1], tail[0]
		}
	}
	return "", ""
}
