//go:build !linux && !windows

package host

// Other systems do not tell how busy their processors are without Mach calls or
// the like, which need cgo.
type loadSource struct{}

func (*loadSource) open()                  {}
func (*loadSource) close() error           { return nil }
func (*loadSource) processors(*LoadSample) {}
func (*loadSource) delays(*LoadSample)     {}
