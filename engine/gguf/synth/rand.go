package synth

import (
	"encoding/binary"
	"math"
)

// rand is SplitMix64 (Steele, Lea and Flood, 2014): a counter put through a
// mixing function. It gives some 8 GB/s on one core, and any two streams of
// different keys are as good as independent.
type rand struct{ state uint64 }

// newRand returns the stream of the given keys.
func newRand(keys ...uint64) rand {
	var r rand
	for _, k := range keys {
		r.state = r.next() ^ k
	}
	return r
}

func (r *rand) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill fills b with random bytes.
func (r *rand) fill(b []byte) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, r.next())
		b = b[8:]
	}
	for x := r.next(); len(b) > 0; x >>= 8 {
		b[0] = byte(x)
		b = b[1:]
	}
}

const normalBits = 12

// normals are equally likely values of a normal distribution of mean 0 and
// standard deviation 1: a random index gives a random value. They are rounded
// to 2^-16, which hides what platforms disagree on in the last bit.
var normals = func() (z [1 << normalBits]float64) {
	sum := 0.0
	for i := range z {
		z[i] = math.Sqrt2 * math.Erfinv((float64(i)+0.5)/(1<<(normalBits-1))-1)
		sum += z[i] * z[i]
	}
	scale := (1 << 16) / math.Sqrt(sum/(1<<normalBits)) // the tails are cut, so the sum is a little short
	for i := range z {
		z[i] = math.Round(z[i]*scale) / (1 << 16)
	}
	return z
}()
