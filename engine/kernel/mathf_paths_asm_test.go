//go:build (amd64 || arm64) && !noasm

package kernel

import "testing"

// eachPath runs f once for every way in which the vector functions and
// attention can be computed on this machine.
func eachPath(t *testing.T, f func(t *testing.T)) {
	t.Run("generic", func(t *testing.T) {
		defer func(u bool) { useVec = u }(useVec)
		useVec = false
		f(t)
	})
	if !useVec {
		t.Log("this machine has no vector kernels")
		return
	}
	t.Run("vector", f)
}

// generic runs f without vector kernels.
func generic(f func()) {
	defer func(u bool) { useVec = u }(useVec)
	useVec = false
	f()
}
