//go:build !linux

package host

// Windows and macOS show no temperature to an ordinary program.
type thermalSource struct{}

func (*thermalSource) open()                         {}
func (*thermalSource) read() (float64, string, bool) { return 0, "", false }
