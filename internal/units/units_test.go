package units

import (
	"math"
	"testing"
)

func TestWholeMiB(t *testing.T) {
	for _, c := range []struct{ bytes, down, up int64 }{
		{0, 0, 0}, {1, 0, 1}, {MiB - 1, 0, 1}, {MiB, 1, 1}, {MiB + 1, 1, 2}, {5*GiB + 1, 5120, 5121},
	} {
		if down, up, whole := MiBDown(c.bytes), MiBUp(c.bytes), WholeMiB(c.bytes); down != c.down || up != c.up || whole != c.up*MiB {
			t.Errorf("%d bytes: %d MiB down, %d up, %d whole; want %d, %d, %d", c.bytes, down, up, whole, c.down, c.up, c.up*MiB)
		}
	}
	if got := FromMiB(3); got != 3*MiB {
		t.Errorf("3 MiB are %d bytes", got)
	}
	if got := FromMiB(math.MaxInt64); got <= 0 || MiBDown(got) != math.MaxInt64/MiB {
		t.Errorf("too many MiB are %d bytes", got)
	}
}

// The digits change where rounding reaches the next power of ten, not at the power.
func TestFigures(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		v                float64
		sig, fine, short string
	}{
		{0, "0", "0.00", "0"},
		{0.0123, "0.01", "0.012", "0.01"},
		{0.9949, "0.99", "0.995", "0.99"},
		{0.9961, "1.00", "0.996", "1.0"},
		{0.9996, "1.00", "1.00", "1.0"},
		{9.94, "9.94", "9.94", "9.9"},
		{9.96, "9.96", "9.96", "10"},
		{9.996, "10.0", "10.0", "10"},
		{99.94, "99.9", "99.9", "100"},
		{99.96, "100", "100", "100"},
		{-12.34, "-12.3", "-12.3", "-12"},
		{1234567, "1234567", "1234567", "1234567"},
		{nan, NotMeasured, NotMeasured, NotMeasured},
		{math.Inf(1), NotMeasured, NotMeasured, NotMeasured},
	} {
		if sig, fine, short := Sig(c.v), Fine(c.v), Short(c.v); sig != c.sig || fine != c.fine || short != c.short {
			t.Errorf("%v: %q, %q, %q; want %q, %q, %q", c.v, sig, fine, short, c.sig, c.fine, c.short)
		}
	}
}

func TestWithUnits(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Ms(12_340_000), "12.3"},
		{Seconds(999_400_000), "999 ms"},
		{Seconds(999_600_000), "1.0 s"},
		{Seconds(99_940_000_000), "99.9 s"},
		{Seconds(125_000_000_000), "2:05 min"},
		{About(0), "1 s"},
		{About(99_400_000_000), "99 s"},
		{About(100_000_000_000), "2 min"},
		{FileSize(1), "1 byte"},
		{FileSize(999), "999 bytes"},
		{FileSize(12_640), "12.3 KiB"},
		{FileSize(2 * MiB), "2.00 MiB"},
		{Size(5*MiB + MiB/4), "5.25 MiB"},
		{Size(GiB - MiB), "1023 MiB"},
		{Size(GiB - 1), "1.00 GiB"},
		{Size(18_600_000_000), "17.3 GiB"},
		{Mebibytes(int64(0)), "0"},
		{Mebibytes(1.5 * MiB), "1.5"},
		{Mebibytes(int64(1000 * MiB)), "1000"},
		{MiBPerSecond(926 * MiB), "926 MiB/s"},
		{Percent(60.94), "60.9"},
		{Percent(math.NaN()), NotMeasured},
		{Share(0.375), "38 %"},
		{Fixed(3)(1.0005), "1.000"},
		{Plural(1, "lane"), "1 lane"},
		{Plural(2, "lane"), "2 lanes"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
