//go:build !windows

package flashio

// readRound is the multiple to which Window extends lengths: none is needed
// here.
const readRound = -1
