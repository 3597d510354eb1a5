//go:build !linux

package flashio

import "fmt"

// OpenURing reads through Linux's io_uring; here it always fails with
// ErrNotAvailable.
func OpenURing(*Files, LaneOptions) (Reader, error) {
	return nil, fmt.Errorf("open uring: io_uring is Linux's: %w", ErrNotAvailable)
}
