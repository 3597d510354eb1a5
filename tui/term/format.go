package term

import (
	"fmt"
	"math"

	"bmoe/profile"
)

// NotMeasured stands for every figure that the host or the run does not have.
const NotMeasured = "n/a"

// Binary and decimal units. Sizes of files and of RAM are decimal, as vendors
// and file managers print them; cache, window and read sizes are binary, as
// the flags that set them.
const (
	MiB = 1 << 20
	MB  = 1e6
	GB  = 1e9
)

// Sig formats a figure that is not negative with three significant digits and
// without an exponent.
func Sig(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return NotMeasured
	case v == 0:
		return "0"
	case math.Abs(v) < 9.995:
		return fmt.Sprintf("%.2f", v)
	case math.Abs(v) < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// Maybe formats a figure that may not have been measured, with its unit.
func Maybe[T int64 | float64](v profile.Maybe[T], f func(T) string, unit string) string {
	if !v.OK {
		return NotMeasured
	}
	return f(v.Value) + unit
}

// Fixed returns a formatter with n decimals.
func Fixed(n int) func(float64) string {
	return func(v float64) string {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return NotMeasured
		}
		return fmt.Sprintf("%.*f", n, v)
	}
}

// Ms formats nanoseconds as milliseconds, without the unit.
func Ms(ns int64) string { return Sig(float64(ns) / 1e6) }

// Seconds formats nanoseconds as seconds, with the unit.
func Seconds(ns int64) string {
	s := float64(ns) / 1e9
	switch {
	case s < 0.9995:
		return Sig(s*1e3) + " ms"
	case s < 99.95:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%d:%02d min", int(s)/60, int(s)%60)
}

// Size formats the size of a file or of RAM, decimal.
func Size(b int64) string {
	if b < 1e9 {
		return Sig(float64(b)/MB) + " MB"
	}
	return Sig(float64(b)/GB) + " GB"
}

// InMiB formats bytes as MiB, without the unit.
func InMiB(b float64) string {
	v := b / MiB
	if v > 0 && v < 999.5 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// MiBPerSecond formats a rate in bytes a second.
func MiBPerSecond(b float64) string { return Sig(b/MiB) + " MiB/s" }

// Percent formats a percentage, without the unit.
func Percent(v float64) string { return fmt.Sprintf("%.1f", v) }

// Plural returns the count with its noun.
func Plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// OnOff words a switch.
func OnOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
