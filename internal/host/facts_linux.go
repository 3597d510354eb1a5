package host

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func (f *Facts) read() {
	var u unix.Utsname
	release := ""
	if unix.Uname(&u) == nil {
		release = unix.ByteSliceToString(u.Release[:])
	}
	f.readBelow("/", release)
}

// readBelow reads the files below fsRoot, which is "/" but for tests.
func (f *Facts) readBelow(fsRoot, release string) {
	// Whoever builds a kernel may put anything behind its number.
	f.Kernel = release
	if end := strings.IndexFunc(release, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); end >= 0 {
		f.Kernel = release[:end]
	}
	f.System = setting(fsRoot, "etc/os-release", "PRETTY_NAME", "=")
	f.CPU = setting(fsRoot, "proc/cpuinfo", "model name", ":")
	if flags := setting(fsRoot, "proc/cpuinfo", "flags", ":"); strings.Contains(" "+flags+" ", " hypervisor ") {
		f.Virtual = "a virtual machine"
	}
	if strings.Contains(strings.ToLower(release), "microsoft") {
		f.Virtual = "WSL"
	}
	// The choice in force stands in brackets: "always [madvise] never".
	_, rest, ok := strings.Cut(oneLine(filepath.Join(fsRoot, "sys/kernel/mm/transparent_hugepage/enabled")), "[")
	if word, _, closed := strings.Cut(rest, "]"); ok && closed {
		f.Huge = word
	}
}

// setting returns the value of a key in a file of keys and values, or nothing.
func setting(fsRoot, name, key, separator string) string {
	text, err := os.ReadFile(filepath.Join(fsRoot, name))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		k, v, ok := strings.Cut(line, separator)
		if ok && strings.TrimSpace(k) == key {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return ""
}

// oneLine returns the text of a file of one line, or nothing.
func oneLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func (f *FileFacts) read(path string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err == nil {
		_, f.FileSystem = mountOf(string(mounts), unix.Major(st.Dev), unix.Minor(st.Dev))
	}
	folder, err := blockFolder(path)
	if err != nil {
		return
	}
	f.readBlock(folder)
}

// readBlock takes what sysfs tells of a block device and of the drives under it.
func (f *FileFacts) readBlock(folder string) {
	f.Encrypted, f.KnowsEncrypted = encrypted(folder), true
	names := wholeDrives(folder)
	f.Drive = strings.Join(names, "+")
	if len(names) != 1 {
		return // of several drives there is no one kind
	}
	whole := driveFolder(folder)
	f.Model = oneLine(filepath.Join(whole, "device/model"))
	f.Bus = busOf(whole)
	if kind := oneLine(filepath.Join(whole, "queue/rotational")); kind != "" && f.Bus != "virtio" { // which says 1 of anything
		f.KnowsRotating, f.Rotating = true, kind == "1"
	}
}

// busOf tells by the folder of a drive how it is connected; empty: not known.
func busOf(whole string) (bus string) {
	for part := range strings.SplitSeq(whole, "/") {
		switch {
		case strings.HasPrefix(part, "usb"):
			return "usb" // whatever the box holds
		case strings.HasPrefix(part, "ata"):
			bus = "sata"
		case strings.HasPrefix(part, "nvme"):
			bus = "nvme"
		case strings.HasPrefix(part, "virtio"):
			bus = "virtio"
		case strings.HasPrefix(part, "mmc"):
			bus = "mmc"
		case strings.HasSuffix(part, ".ufshc"):
			bus = "ufs"
		}
	}
	return bus
}

// driveFolder is wholeDrives where that is one: its folder.
func driveFolder(folder string) string {
	if _, err := os.Stat(filepath.Join(folder, "partition")); err == nil {
		return driveFolder(filepath.Dir(folder))
	}
	members, err := os.ReadDir(filepath.Join(folder, "slaves"))
	if err != nil || len(members) == 0 {
		return folder
	}
	below, err := filepath.EvalSymlinks(filepath.Join(folder, "slaves", members[0].Name()))
	if err != nil {
		return folder
	}
	return driveFolder(below)
}

// encrypted reports whether a device is a dm-crypt volume, or lies on one.
func encrypted(folder string) bool {
	if strings.HasPrefix(oneLine(filepath.Join(folder, "dm/uuid")), "CRYPT-") {
		return true
	}
	members, err := os.ReadDir(filepath.Join(folder, "slaves"))
	if err != nil {
		return false
	}
	for _, m := range members {
		below, err := filepath.EvalSymlinks(filepath.Join(folder, "slaves", m.Name()))
		if err == nil && encrypted(below) {
			return true
		}
	}
	return false
}
