package flashio

import "unsafe"

// hugePage is the size of a huge page in bytes: macOS gives programs none.
const hugePage = 0

func adviseHuge(unsafe.Pointer, int, bool) {}
