//go:build !linux && !darwin && !windows

package flashio

import "unsafe"

// SectionsExist tells whether a mapping has a section beside its view.
const SectionsExist = false

type section struct{}

func mapFile(string) (unsafe.Pointer, int, section, error) { return nil, 0, section{}, ErrNotAvailable }

func unmapView(unsafe.Pointer, int) error { return ErrNotAvailable }

func closeSection(section) error { return nil }

func insideMapping(*Files, []uintptr) ([]int, error) { return nil, ErrNotAvailable }

func adviseSequential([]byte) {}

func residentPages([]byte) (resident, pages int, err error) { return 0, 0, ErrNotAvailable }
