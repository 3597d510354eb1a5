package host

import (
	"os"
	"runtime"
)

// Facts are what a machine is, for figures that are held against those of other
// machines. Nothing in them names a person, the machine itself or a serial number.
// What the host does not tell is empty or 0.
type Facts struct {
	System  string // "Debian GNU/Linux 12 (bookworm)", "Windows 11 24H2"
	Kernel  string // its number: "6.1.0", "10.0.26100"
	Arch    string // "amd64"
	CPU     string // the model's name
	Threads int    // processors that this process may use
	Cores   int    // physical ones of them
	Virtual string // what it runs in, where it is no machine of its own: "a virtual machine", "WSL"
	Memory  Memory
	Page    int    // bytes
	Huge    string // when the system gives huge pages: "always", "madvise", "never"
}

// ReadFacts asks the host what it is.
func ReadFacts() Facts {
	f := Facts{Arch: runtime.GOARCH, Threads: runtime.NumCPU(), Memory: ReadMemory(), Page: os.Getpagesize()}
	if n, ok := PhysicalCores(); ok {
		f.Cores = n
	}
	f.read()
	return f
}

// FileFacts are what a file lies on.
type FileFacts struct {
	FileSystem string // "ext4", "NTFS"
	Drive      string // as Drive.Name
	Bus        string // "nvme", "sata", "usb", "virtio"
	Model      string // the drive's, without its serial number
	Rotating   bool   // marked by KnowsRotating
	Encrypted  bool   // by the system, below the file system; marked by KnowsEncrypted

	KnowsRotating, KnowsEncrypted bool
}

// ReadFileFacts asks what the file at path lies on.
func ReadFileFacts(path string) FileFacts {
	var f FileFacts
	f.read(path)
	return f
}
