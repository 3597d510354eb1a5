package synth

import (
	"encoding/binary"
	"fmt"
	"math"

	"bmoe/engine/quant"
)

// filler makes the bytes of weights of one type, mean and size. For block types
// it takes random bits as the quants and as the scales inside a block, and sets
// only the block's own scale, so it is as fast as the random numbers are.
type filler func(r *rand, dst []byte)

// scaling describes where a block type keeps its scales.
type scaling struct {
	d   int     // byte offset of the block's float16 scale
	rms float64 // of the elements for a block scale of 1
	// min is the byte offset of the float16 that the elements are lowered by,
	// and center what it must be, in block scales, for a mean of 0. A type
	// without one (min < 0) has quants whose mean is not quite 0, which would
	// add up over a row, so that its block scales are given random signs.
	min    int
	center float64
	// tie makes the minima inside a block equal to its scales, or is nil.
	tie func(block []byte)
	// put sets the block's scale where it is not two bytes in one place; else nil.
	put func(block []byte, d uint16)
}

// scalings holds the block types that the filler can make. The mean squares:
// n equally likely integers around their mean have (n*n-1)/12; signed ones,
// whose mean is -1/2, 1/4 more; 0 to 63, 1333.5; 0 to 15, 77.5.
var scalings = map[quant.Type]scaling{
	quant.Q4_0:   {d: 0, min: -1, rms: math.Sqrt(21.5)},
	quant.Q4_1:   {d: 0, min: 2, center: -7.5, rms: math.Sqrt(21.25)},
	quant.Q5_0:   {d: 0, min: -1, rms: math.Sqrt(85.5)},
	quant.Q5_1:   {d: 0, min: 2, center: -15.5, rms: math.Sqrt(85.25)},
	quant.Q8_0:   {d: 0, min: -1, rms: math.Sqrt(5461.5)},
	quant.IQ4_NL: {d: 0, min: -1, rms: math.Sqrt(4548)}, // over its 16 levels
	quant.Q2_K:   {d: 80, min: 82, center: 1.5, rms: math.Sqrt(77.5 * 1.25), tie: tieQ2K},
	quant.Q3_K:   {d: 108, min: -1, rms: math.Sqrt(341.5 * 5.5)},
	quant.Q4_K:   {d: 0, min: 2, center: 7.5, rms: math.Sqrt(1333.5 * 21.25), tie: tieQ45K},
	quant.Q5_K:   {d: 0, min: 2, center: 15.5, rms: math.Sqrt(1333.5 * 85.25), tie: tieQ45K},
	quant.Q6_K:   {d: 208, min: -1, rms: math.Sqrt(5461.5 * 341.5)},
}

// tieQ2K: 16 bytes, each a scale in the low nibble and a minimum in the high.
func tieQ2K(block []byte) {
	for i, b := range block[:16] {
		block[i] = b&15 | b<<4
	}
}

// tieQ45K: 12 bytes after the two float16. The first four scales and minima are
// the low 6 bits of bytes 0-3 and 4-7, whose upper bits belong to the last four,
// which have their low nibbles in bytes 8-11.
func tieQ45K(block []byte) {
	s := block[4:16]
	for i := range 4 {
		s[4+i] = s[i]
		s[8+i] = s[8+i]&15 | s[8+i]<<4
	}
}

// newFiller returns a filler. Only F32 can have a mean other than 0.
func newFiller(kind quant.Type, mean, std float64) (filler, error) {
	switch kind {
	case quant.F32:
		return fillF32(mean, std), nil
	case quant.F16:
		return fillHalf(std, quant.F32ToF16), nil
	case quant.BF16:
		return fillHalf(std, quant.F32ToBF16), nil
	case quant.MXFP4:
		return fillMXFP4(std)
	case quant.NVFP4:
		return fillNVFP4(std)
	}
	s, ok := scalings[kind]
	if low, is := lowBit[kind]; is {
		s, ok = low, true
		s.rms = s.measured(kind)
	}
	if !ok {
		return nil, fmt.Errorf("cannot make random weights of type %v", kind)
	}
	return s.filler(kind, std)
}

// spread is how far block scales lie apart: 0.75 to 1.25 times their middle.
// Kernels tested on equal scales hide errors.
var spread = func() (f [16]float64) {
	sum := 0.0
	for i := range f {
		f[i] = 0.75 + float64(i)/30
		sum += f[i] * f[i]
	}
	rms := math.Sqrt(sum / 16)
	for i := range f {
		f[i] /= rms
	}
	return f
}()

// filler returns a filler of a block type with one or two scales.
func (s scaling) filler(kind quant.Type, std float64) (filler, error) {
	var scale, min [32]uint16 // the upper 16 have the other sign where that is used
	for i := range scale {
		d := std / s.rms * spread[i&15]
		if s.min < 0 && i >= 16 {
			d = -d
		}
		scale[i] = quant.F32ToF16(float32(d))
		exact := float64(quant.F16ToF32(scale[i]))
		min[i] = quant.F32ToF16(float32(exact * s.center))
		if math.Abs(exact) < 0x1p-20 || math.IsInf(exact, 0) || math.IsInf(float64(quant.F16ToF32(min[i])), 0) {
			return nil, fmt.Errorf("weights of size %.3g do not fit in the scales of %v", std, kind)
		}
	}
	size := kind.BlockBytes()
	return func(r *rand, dst []byte) {
		r.fill(dst)
		for ; len(dst) > 0; dst = dst[size:] {
			block := dst[:size]
			i := block[s.d] & 31 // still random
			s.set(block, scale[i])
			if s.min >= 0 {
				binary.LittleEndian.PutUint16(block[s.min:], min[i])
			}
			if s.tie != nil {
				s.tie(block)
			}
		}
	}, nil
}

// fillMXFP4 mixes three neighbouring powers of two as block scales, so that the
// mean square comes out right and blocks differ.
func fillMXFP4(std float64) (filler, error) {
	// The levels 0, 1, 2, 3, 4, 6, 8, 12 have a mean square of 34.25, and the
	// exponent byte e stands for a scale of 2^(e-128) on them. Of 256 blocks 32
	// get the scale 2^(k-1), some 2^(k+1) and the rest 2^k: mean squares from
	// 29/32 to 3.53 times 4^k.
	const half, least = 32, 29. / 32
	square := std * std / 34.25
	k := math.Floor(math.Log2(square/least) / 2)
	if !(k > -127 && k < 126) {
		return nil, fmt.Errorf("weights of size %.3g do not fit in the scales of MXFP4", std)
	}
	twice := min(256-half, int(math.Round((square/math.Exp2(2*k)-least)/3*256)))
	size := quant.MXFP4.BlockBytes()
	return func(r *rand, dst []byte) {
		r.fill(dst)
		for ; len(dst) > 0; dst = dst[size:] {
			e := int(k) + 128
			switch x := int(dst[0]); {
			case x < half:
				e--
			case x < half+twice:
				e++
			}
			dst[0] = byte(e)
		}
	}, nil
}

// fillHalf returns a filler of a 16-bit float type.
func fillHalf(std float64, round func(float32) uint16) filler {
	table := new([1 << normalBits]uint16)
	for i, z := range normals {
		table[i] = round(float32(z * std))
	}
	const mask = 1<<normalBits - 1
	return func(r *rand, dst []byte) {
		for len(dst) >= 8 {
			x := r.next()
			y := uint64(table[x&mask]) | uint64(table[x>>12&mask])<<16 | uint64(table[x>>24&mask])<<32 | uint64(table[x>>36&mask])<<48
			binary.LittleEndian.PutUint64(dst, y)
			dst = dst[8:]
		}
		for ; len(dst) > 0; dst = dst[2:] {
			binary.LittleEndian.PutUint16(dst, table[r.next()&mask])
		}
	}
}

// fillF32 returns a filler of F32. The low bits of the results are random too,
// so that all values differ. It has no table of its own: a router has as many
// sizes as rows.
func fillF32(mean, std float64) filler {
	m, s := float32(mean), float32(std)
	return func(r *rand, dst []byte) {
		for ; len(dst) >= 4; dst = dst[4:] {
			x := r.next()
			f := float32(float32(normals[x>>(64-normalBits)])*s) + m
			binary.LittleEndian.PutUint32(dst, math.Float32bits(f)^uint32(x&0xfff))
		}
	}
}

// spanFiller makes the rows of a weight whose columns differ.
type spanFiller struct {
	spans []span
	bytes []int      // by span: of a row
	fill  []filler   // by span; nil where values come from a table
	table [][][]byte // by span: the table's rows in the weight's type
}

func newSpanFiller(w weight) (*spanFiller, error) {
	f := &spanFiller{spans: w.cols, fill: make([]filler, len(w.cols)), table: make([][][]byte, len(w.cols))}
	total := int64(0)
	for i, s := range w.cols {
		n, err := w.kind.RowBytes(s.n)
		if err != nil {
			return nil, err
		}
		total += s.n
		f.bytes = append(f.bytes, int(n))
		if s.choose == nil {
			if f.fill[i], err = newFiller(w.kind, w.mean*s.factor, w.std*s.factor); err != nil {
				return nil, err
			}
			continue
		}
		for _, values := range s.table {
			b := make([]byte, n)
			if err := quant.Quantize(w.kind, b, values); err != nil {
				return nil, err
			}
			f.table[i] = append(f.table[i], b)
		}
	}
	if total != w.dims[0] {
		return nil, fmt.Errorf("spans of %d columns for rows of %d", total, w.dims[0])
	}
	return f, nil
}

// rows returns the fillers of n rows from first on: a single one if they do not
// differ.
func (f *spanFiller) rows(first, n int64) []filler {
	differ := false
	for _, s := range f.spans {
		differ = differ || s.choose != nil
	}
	if !differ {
		return []filler{f.repeat(first)}
	}
	var rows []filler
	for row := first; row < first+n; row++ {
		rows = append(rows, f.row(row))
	}
	return rows
}

// row fills one row.
func (f *spanFiller) row(row int64) filler {
	return func(r *rand, dst []byte) {
		for i, n := range f.bytes {
			if f.fill[i] != nil {
				f.fill[i](r, dst[:n])
			} else {
				copy(dst, f.table[i][f.spans[i].choose(row)])
			}
			dst = dst[n:]
		}
	}
}

// repeat fills rows that are alike.
func (f *spanFiller) repeat(row int64) filler {
	one := f.row(row)
	size := 0
	for _, n := range f.bytes {
		size += n
	}
	return func(r *rand, dst []byte) {
		for ; len(dst) > 0; dst = dst[size:] {
			one(r, dst[:size])
		}
	}
}
