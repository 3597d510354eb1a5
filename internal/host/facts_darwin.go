package host

import "golang.org/x/sys/unix"

// Facts of macOS are [unverified] on a real machine.
func (f *Facts) read() {
	f.System = "macOS"
	if v, err := unix.Sysctl("kern.osproductversion"); err == nil {
		f.System += " " + v
	}
	if v, err := unix.Sysctl("kern.osrelease"); err == nil {
		f.Kernel = v
	}
	if v, err := unix.Sysctl("machdep.cpu.brand_string"); err == nil {
		f.CPU = v
	}
	if v, err := unix.SysctlUint32("kern.hv_vmm_present"); err == nil && v == 1 {
		f.Virtual = "a virtual machine"
	}
}

func (f *FileFacts) read(path string) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) == nil {
		f.FileSystem = unix.ByteSliceToString(st.Fstypename[:])
	}
}
