package tui

import (
	"fmt"
	"math"

	"bmoe/profile"
)

// notMeasured stands for every figure that the host or the run does not have.
const notMeasured = "n/a"

// Binary and decimal units. Sizes of files and of RAM are decimal, as vendors
// and file managers print them; cache, window and read sizes are binary, as
// the flags that set them.
const (
	mib = 1 << 20
	mb  = 1e6
	gb  = 1e9
)

// sig formats a figure that is not negative with three significant digits and
// without an exponent.
func sig(v float64) string {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return notMeasured
	case v == 0:
		return "0"
	case math.Abs(v) < 9.995:
		return fmt.Sprintf("%.2f", v)
	case math.Abs(v) < 99.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// maybe formats a figure that may not have been measured, with its unit.
func maybe[T int64 | float64](v profile.Maybe[T], f func(T) string, unit string) string {
	if !v.OK {
		return notMeasured
	}
	return f(v.Value) + unit
}

// fixed returns a formatter with n decimals.
func fixed(n int) func(float64) string {
	return func(v float64) string {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return notMeasured
		}
		return fmt.Sprintf("%.*f", n, v)
	}
}

// ms formats nanoseconds as milliseconds, without the unit.
func ms(ns int64) string { return sig(float64(ns) / 1e6) }

// seconds formats nanoseconds as seconds, with the unit.
func seconds(ns int64) string {
	s := float64(ns) / 1e9
	switch {
	case s < 0.9995:
		return sig(s*1e3) + " ms"
	case s < 99.95:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%d:%02d min", int(s)/60, int(s)%60)
}

// size formats the size of a file or of RAM, decimal.
func size(b int64) string {
	if b < 1e9 {
		return sig(float64(b)/mb) + " MB"
	}
	return sig(float64(b)/gb) + " GB"
}

// inMiB formats bytes as MiB, without the unit.
func inMiB(b float64) string {
	v := b / mib
	if v > 0 && v < 999.5 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// inMiBs formats a rate in bytes a second.
func inMiBs(b float64) string { return sig(b/mib) + " MiB/s" }

// percent formats a percentage, without the unit.
func percent(v float64) string { return fmt.Sprintf("%.1f", v) }

// signed formats a change in percent, with its sign and the unit.
func signed(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return notMeasured
	}
	r := math.Round(v)
	if r == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%+.0f %%", r)
}

// plural returns the count with its noun.
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}
