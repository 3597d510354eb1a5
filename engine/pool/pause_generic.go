//go:build !(amd64 || arm64) || noasm

package pool

// pause has no portable form; the atomic load between two calls is the delay.
func pause() {}
