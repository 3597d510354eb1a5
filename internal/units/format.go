package units

import (
	"fmt"
	"math"
	"strconv"
)

// NotMeasured stands for every figure that the host or the run does not have.
const NotMeasured = "n/a"

// Decimals formats a figure with n decimals and without an exponent.
func Decimals(v float64, n int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return NotMeasured
	}
	return strconv.FormatFloat(v, 'f', n, 64)
}

// Fixed returns a formatter with n decimals.
func Fixed(n int) func(float64) string {
	return func(v float64) string { return Decimals(v, n) }
}

// Sig formats a figure with three significant digits, but not more than two
// decimals: columns of the screen are narrow.
func Sig(v float64) string { return significant(v, 3, 2) }

// Fine formats a figure with three significant digits and up to three decimals:
// where there is room, as for seconds that may be a few thousandths.
func Fine(v float64) string {
	if v == 0 {
		return "0.00"
	}
	return significant(v, 3, 3)
}

// Short formats a figure with two significant digits, but not more than two
// decimals, for where Sig does not fit.
func Short(v float64) string { return significant(v, 2, 2) }

// significant formats a figure with n significant digits, but not more than most
// decimals.
func significant(v float64, n, most int) string {
	if v == 0 {
		return "0"
	}
	// With d decimals and n digits there is room below 10^(n-d), rounding included.
	d := most
	for d > 0 && math.Abs(v) >= math.Pow10(n-d)-math.Pow10(-d)/2 {
		d--
	}
	return Decimals(v, d)
}

// Ms formats nanoseconds as milliseconds, without the unit.
func Ms(ns int64) string { return Sig(InMs(ns)) }

// Seconds formats nanoseconds as a time that people read, with the unit.
func Seconds(ns int64) string {
	s := InSeconds(ns)
	switch {
	case s < 0.9995:
		return Sig(s*1e3) + " ms"
	case s < 99.95:
		return Decimals(s, 1) + " s"
	}
	return fmt.Sprintf("%d:%02d min", int(s)/60, int(s)%60)
}

// About words an estimate of nanoseconds: seconds, and from a hundred of them on
// minutes.
func About(ns int64) string {
	s := (ns + Second/2) / Second
	if s < 100 {
		return fmt.Sprintf("%d s", max(s, 1))
	}
	return fmt.Sprintf("%d min", (s+30)/60)
}

// Size formats a size in MiB, and from a GiB on in GiB.
func Size(bytes int64) string {
	if bytes < GiB-MiB/2 {
		return Sig(InMiB(bytes)) + " MiB"
	}
	return Sig(float64(bytes)/GiB) + " GiB"
}

// FileSize formats the size of a file that may be small.
func FileSize(bytes int64) string {
	switch {
	case bytes < KiB:
		return Plural(bytes, "byte")
	case bytes < MiB:
		return Sig(float64(bytes)/KiB) + " KiB"
	}
	return Size(bytes)
}

// Mebibytes formats bytes as MiB, without the unit.
func Mebibytes[T int64 | float64](bytes T) string {
	v := float64(bytes) / MiB
	if v > 0 && v < 999.5 {
		return Decimals(v, 1)
	}
	return Decimals(v, 0)
}

// MiBPerSecond formats a rate in bytes a second.
func MiBPerSecond(rate float64) string { return Sig(rate/MiB) + " MiB/s" }

// Percent formats a percentage, without the unit.
func Percent(v float64) string { return Decimals(v, 1) }

// Share formats a part of 1 as whole percent, with the unit.
func Share(v float64) string { return Decimals(100*v, 0) + " %" }

// Plural returns a count with its noun.
func Plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
