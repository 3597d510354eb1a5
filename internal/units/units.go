// Package units holds sizes in bytes and how figures are written: the one place
// where a number of bytes becomes MiB and a number of nanoseconds becomes text.
package units

// Sizes in bytes. What is shown of files, of memory and of reads is binary, as the
// flags that set it; rates of memory are decimal, as vendors print them.
const (
	KiB = 1 << 10
	MiB = 1 << 20
	GiB = 1 << 30
	MB  = 1e6
	GB  = 1e9
)

// Times in nanoseconds.
const (
	Microsecond = 1e3
	Millisecond = 1e6
	Second      = 1e9
)

// FromMiB returns n MiB in bytes, at most what an int64 holds in whole MiB.
func FromMiB(n int64) int64 {
	const most = (1<<63 - 1) / MiB
	return min(n, most) * MiB
}

// MiBDown returns bytes as whole MiB, rounded down: what is there.
func MiBDown(bytes int64) int64 { return bytes >> 20 }

// MiBUp returns bytes as whole MiB, rounded up: what it takes.
func MiBUp(bytes int64) int64 { return (bytes + MiB - 1) >> 20 }

// WholeMiB returns bytes rounded up to whole MiB, in bytes.
func WholeMiB(bytes int64) int64 { return MiBUp(bytes) * MiB }

// InMiB returns bytes as MiB.
func InMiB(bytes int64) float64 { return float64(bytes) / MiB }

// InSeconds returns nanoseconds as seconds.
func InSeconds(ns int64) float64 { return float64(ns) / Second }

// InMs returns nanoseconds as milliseconds.
func InMs(ns int64) float64 { return float64(ns) / Millisecond }
