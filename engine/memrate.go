package engine

import (
	"encoding/binary"
	"sync/atomic"

	"bmoe/internal/clock"
)

const (
	// leastMemory is how much memory is read to learn its rate: less would lie in
	// the processor's caches.
	leastMemory = 64 << 20
	// mostMemory keeps the measurement to some tens of milliseconds.
	mostMemory = 256 << 20
	// memoryPiece is how much a worker reads at a time.
	memoryPiece = 1 << 20
)

// memoryRate returns what memory gives all workers together, in bytes a second:
// the better of two passes over the dense weights. False where these are too few,
// or not in memory of our own. It is called between generations.
func (s *Session) memoryRate() (float64, bool) {
	if s.dense == nil || s.dense.Len() < leastMemory {
		return 0, false
	}
	sweep := &sweep{data: s.dense.Bytes()[:min(s.dense.Len(), mostMemory)]}
	best := int64(0)
	for range 2 {
		began := clock.Now()
		s.compute.Pool.Run(len(sweep.data)/memoryPiece, sweep)
		if took := clock.Now() - began; best == 0 || took < best {
			best = took
		}
	}
	return float64(len(sweep.data)/memoryPiece*memoryPiece) * 1e9 / float64(max(best, 1)), true
}

// sweep reads memory and does next to nothing with it.
type sweep struct {
	data []byte
	sum  atomic.Uint64 // so that reading cannot be left out
}

// Do implements pool.Task.
func (s *sweep) Do(_, i int) {
	var a, b, c, d uint64
	for p := s.data[i*memoryPiece:][:memoryPiece]; len(p) >= 32; p = p[32:] {
		a += binary.LittleEndian.Uint64(p)
		b += binary.LittleEndian.Uint64(p[8:])
		c += binary.LittleEndian.Uint64(p[16:])
		d += binary.LittleEndian.Uint64(p[24:])
	}
	s.sum.Add(a ^ b ^ c ^ d)
}
