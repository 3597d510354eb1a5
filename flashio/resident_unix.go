//go:build linux || darwin

package flashio

import "os"

// residentPages asks mincore(2), whose lowest bit per page means "in memory" on
// both systems.
func residentPages(b []byte) (resident, pages int, err error) {
	page := os.Getpagesize()
	vec := make([]byte, (len(b)+page-1)/page)
	if err := mincore(b, vec); err != nil {
		return 0, 0, os.NewSyscallError("mincore", err)
	}
	for _, v := range vec {
		resident += int(v & 1)
	}
	return resident, len(vec), nil
}
