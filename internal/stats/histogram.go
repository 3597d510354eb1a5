package stats

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// Each power of two is cut into 64 equal buckets, so the width of a bucket is
// at most 1/64 of its lower end and a value read back from the middle of its
// bucket is off by at most 0.8%. Values below 64 have a bucket each.
const (
	subBits    = 6
	subBuckets = 1 << subBits

	// maxExponent bounds the range: values from 2^maxExponent on share the last
	// bucket. In nanoseconds that is 18 minutes.
	maxExponent = 40

	bucketCount = (maxExponent - subBits + 1) * subBuckets
)

// Histogram counts non-negative integers, usually latencies in nanoseconds, in
// logarithmic buckets with a relative error of at most 0.8%. Minimum, maximum,
// sum and count are exact.
//
// Its size is fixed (18 KiB) and nothing allocates. Record, Merge, CopyTo and
// Reset may run concurrently: a lane records while a screen copies. A copy taken
// then holds whole records or none, except that a record in progress may already
// be in the sum and not yet in the counts. The other methods want a histogram
// that nobody writes: a private one, or a copy. The zero value is empty and ready.
type Histogram struct {
	counts [bucketCount]uint64
	n      uint64
	sum    uint64
	max    uint64
	// least is the ones' complement of the minimum, so that zero means "none
	// yet" and a larger number a smaller minimum.
	least uint64
}

// bucketOf returns the bucket of v.
func bucketOf(v uint64) int {
	if v < subBuckets {
		return int(v)
	}
	exponent := bits.Len64(v) - 1 // v is in [2^exponent, 2^(exponent+1))
	if exponent >= maxExponent {
		return bucketCount - 1
	}
	shift := exponent - subBits
	return (shift+1)*subBuckets + int(v>>shift) - subBuckets
}

// bucketBounds returns the smallest value of bucket i and the bucket's width.
func bucketBounds(i int) (low, width uint64) {
	if i < subBuckets {
		return uint64(i), 1
	}
	shift := i/subBuckets - 1
	return uint64(subBuckets+i%subBuckets) << shift, 1 << shift
}

// Record counts one value. A negative one counts as zero: it can only come from
// a clock's rounding.
func (h *Histogram) Record(value int64) {
	v := uint64(max(value, 0))
	atomic.AddUint64(&h.sum, v)
	raise(&h.max, v)
	raise(&h.least, ^v)
	atomic.AddUint64(&h.counts[bucketOf(v)], 1)
	atomic.AddUint64(&h.n, 1)
}

// raise sets *p to v if v is larger.
func raise(p *uint64, v uint64) {
	for {
		old := atomic.LoadUint64(p)
		if v <= old || atomic.CompareAndSwapUint64(p, old, v) {
			return
		}
	}
}

// Merge adds the records of other, which keeps them.
func (h *Histogram) Merge(other *Histogram) {
	var n uint64
	for i := range other.counts {
		if c := atomic.LoadUint64(&other.counts[i]); c != 0 {
			atomic.AddUint64(&h.counts[i], c)
			n += c
		}
	}
	atomic.AddUint64(&h.sum, atomic.LoadUint64(&other.sum))
	raise(&h.max, atomic.LoadUint64(&other.max))
	raise(&h.least, atomic.LoadUint64(&other.least))
	atomic.AddUint64(&h.n, n)
}

// CopyTo overwrites dst with the records so far. Where nobody writes to h, plain
// assignment does the same.
func (h *Histogram) CopyTo(dst *Histogram) {
	dst.Reset()
	dst.Merge(h)
}

// Reset forgets all records. Records that arrive during a reset may be lost in
// part; reset a histogram while its writers rest.
func (h *Histogram) Reset() {
	for i := range h.counts {
		atomic.StoreUint64(&h.counts[i], 0)
	}
	atomic.StoreUint64(&h.n, 0)
	atomic.StoreUint64(&h.sum, 0)
	atomic.StoreUint64(&h.max, 0)
	atomic.StoreUint64(&h.least, 0)
}

// Bins counts the records in fewer bins: dst[i] those from bounds[i-1] up to, and without,
// bounds[i], and the last, of which there is no bound, the rest. Records of a bucket that a
// bound cuts are counted where its middle is.
func (h *Histogram) Bins(bounds, dst []int64) {
	clear(dst)
	bin := 0
	for i, c := range h.counts {
		low, width := bucketBounds(i)
		for bin < len(bounds) && int64(low+width/2) >= bounds[bin] {
			bin++
		}
		dst[bin] += int64(c)
	}
}

// Count returns the number of records.
func (h *Histogram) Count() int64 { return int64(atomic.LoadUint64(&h.n)) }

// Sum returns the sum of all values.
func (h *Histogram) Sum() int64 { return int64(atomic.LoadUint64(&h.sum)) }

// Mean returns the arithmetic mean, or false if nothing was recorded.
func (h *Histogram) Mean() (float64, bool) {
	n := h.Count()
	if n == 0 {
		return 0, false
	}
	return float64(h.Sum()) / float64(n), true
}

// Quantile returns the value below or at which the share q (0 to 1) of the
// records lies, by the nearest rank, or false if nothing was recorded. It is
// within 0.8% of the true value, and exact for q = 0 and q = 1.
func (h *Histogram) Quantile(q float64) (int64, bool) {
	if h.n == 0 {
		return 0, false
	}
	least, most := ^h.least, h.max
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(h.n)))
	switch {
	case rank <= 1:
		return int64(least), true
	case rank >= h.n:
		return int64(most), true
	}
	var seen uint64
	for i, c := range h.counts {
		seen += c
		if seen >= rank {
			if i == bucketCount-1 {
				return int64(most), true // unbounded above: its middle means nothing
			}
			low, width := bucketBounds(i)
			return int64(min(max(low+width/2, least), most)), true
		}
	}
	return int64(most), true
}
