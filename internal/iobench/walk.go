package iobench

import "math/rand/v2"

// walk is the sequence of offsets that one lane reads. It depends on the seed,
// the lane and the shape of the read, not on how many lanes there are: between
// rows of different lane counts only the concurrency differs.
type walk struct {
	random *rand.Rand
	base   int64 // bytes
	places int64 // how many aligned offsets there are from base on
	align  int64
}

// newWalk returns the walk of one lane over a file of size bytes. Every read of
// length bytes lies wholly inside the file or, if rangeBytes is not zero, inside
// that many bytes in its middle. The length must fit.
func newWalk(seed uint64, lane int, size, rangeBytes, length, align int64) *walk {
	base, span := int64(0), size
	if rangeBytes > 0 {
		span = rangeBytes
		base = (size - rangeBytes) / 2 / align * align
	}
	return &walk{
		random: rand.New(rand.NewPCG(seed, uint64(lane))),
		base:   base,
		places: (span-length)/align + 1,
		align:  align,
	}
}

// next returns the next offset. It allocates nothing.
func (w *walk) next() int64 { return w.base + w.random.Int64N(w.places)*w.align }
