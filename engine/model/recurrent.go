package model

import (
	"fmt"
	"math"
	"unsafe"

	"bmoe/engine/kernel/vec"
)

// recurrentSpec is the memory of a recurrent layer: the last rows of what goes into
// its convolution, and a matrix for each of its heads.
type recurrentSpec struct {
	rows, channels    int // of the convolution's input
	heads, keys, vals int // a matrix is [keys x vals]
}

// Bytes implements layerSpec.
func (r recurrentSpec) Bytes() (int64, error) {
	const most = 1 << 32 // floats; factors are below 2^24, so that none of the products overflows
	n := int64(r.rows) * int64(r.channels)
	if m := int64(r.heads) * int64(r.keys); n > most || m > most || n+m*int64(r.vals) > most {
		return 0, fmt.Errorf("a recurrent layer's memory of %d x %d, and %d x %d x %d, numbers is out of range", r.rows, r.channels, r.heads, r.keys, r.vals)
	}
	return 4 * (n + int64(r.heads)*int64(r.keys)*int64(r.vals)), nil
}

func (r recurrentSpec) open(mem []byte) (layerState, error) {
	n, err := r.Bytes()
	if err != nil {
		return nil, err
	}
	// The arena's pieces are aligned to cache lines.
	all := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem[:n]))), n/4)
	ring := r.rows * r.channels
	return &recurrentLayer{recurrentSpec: r, mem: mem[:n], ring: all[:ring], matrices: all[ring:]}, nil
}

// recurrentLayer is the latest state of a layer that keeps no earlier one: it goes
// back to marks only.
type recurrentLayer struct {
	recurrentSpec
	mem []byte
	// ring holds the input row of position p as its row p mod rows. Before the
	// sequence's start it is zeros.
	ring []float32
	// matrices holds each head's matrix in panels of vec.MatrixCols columns, one
	// after the other: what a worker takes fits into the nearest cache.
	matrices []float32
}

func (r *recurrentLayer) reaches(n int) bool     { return n == 0 }
func (r *recurrentLayer) truncate(int)           { clear(r.mem) } // to 0, the only length without a mark
func (r *recurrentLayer) markBytes() int         { return len(r.mem) }
func (r *recurrentLayer) savedBytes(int) int     { return len(r.mem) }
func (r *recurrentLayer) save(dst []byte)        { copy(dst, r.mem) }
func (r *recurrentLayer) load(src []byte, _ int) { copy(r.mem, src) }

// panel returns columns from to to-1 of a head's matrix, [keys x to-from].
func (r *recurrentLayer) panel(head, from, to int) []float32 {
	return r.matrices[(head*r.vals+from)*r.keys:][:(to-from)*r.keys]
}

// panels returns into how many of them a matrix of so many columns is cut.
func panels(vals int) int { return (vals + vec.MatrixCols - 1) / vec.MatrixCols }

// row returns the input of the convolution at position pos, which is less than rows
// before the sequence's start or among the last that were kept.
func (r *recurrentLayer) row(pos int) []float32 {
	return r.ring[(pos+r.rows)%r.rows*r.channels:][:r.channels]
}

// inverseRoot returns 1/sqrt(n), by which the queries of a head of n entries are
// scaled.
func inverseRoot(n int) float32 { return 1 / float32(math.Sqrt(float64(n))) }
