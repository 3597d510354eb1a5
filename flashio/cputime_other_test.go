//go:build !linux && !darwin

package flashio_test

// cpuTime is not measured here.
func cpuTime() int64 { return 0 }
