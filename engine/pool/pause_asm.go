//go:build (amd64 || arm64) && !noasm

package pool

// pause tells the processor that this is a spin loop, and takes a fraction of a
// microsecond at most.
//
//go:noescape
func pause()
