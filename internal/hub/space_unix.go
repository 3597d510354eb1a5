//go:build linux || darwin

package hub

import "golang.org/x/sys/unix"

// freeSpace returns the bytes that the user may still write to a folder's drive.
func freeSpace(dir string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * int64(s.Bsize), true
}
