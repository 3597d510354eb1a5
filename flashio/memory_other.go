//go:build !linux && !darwin && !windows

package flashio

import (
	"os"
	"unsafe"
)

// reserveMemory takes Go heap; the Range's pointer keeps it alive.
func reserveMemory(size int) (unsafe.Pointer, error) {
	return unsafe.Pointer(unsafe.SliceData(alignedBytes(size, os.Getpagesize()))), nil
}

func commitMemory(unsafe.Pointer, int) error { return nil }

func decommitMemory(p unsafe.Pointer, size int) error {
	clear(unsafe.Slice((*byte)(p), size))
	return nil
}

func releaseMemory(unsafe.Pointer, int) error { return nil }

func adviseHuge(unsafe.Pointer, int, bool) {}
