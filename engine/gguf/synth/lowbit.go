package synth

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"
	"sync"

	"bmoe/engine/quant"
)

// lowBit holds the block types whose values come from a table, or from few levels: the
// size of their elements is measured, not reckoned. Their blocks take random signs, since
// no table's mean is quite 0.
var lowBit = map[quant.Type]scaling{
	quant.IQ1_S: {d: 0, min: -1}, quant.IQ1_M: {min: -1, put: putIQ1M},
	quant.IQ2_XXS: {d: 0, min: -1}, quant.IQ2_XS: {d: 0, min: -1}, quant.IQ2_S: {d: 0, min: -1},
	quant.IQ3_XXS: {d: 0, min: -1}, quant.IQ3_S: {d: 0, min: -1}, quant.IQ4_XS: {d: 0, min: -1},
	quant.TQ1_0: {d: 52, min: -1}, quant.TQ2_0: {d: 64, min: -1, tie: tieTQ2},
}

// putIQ1M spreads a block's scale over the top nibbles of its four 16-bit words of
// small scales.
func putIQ1M(block []byte, d uint16) {
	for i := range 4 {
		word := block[48+2*i:]
		binary.LittleEndian.PutUint16(word, binary.LittleEndian.Uint16(word)&0xfff|d>>(4*i)<<12)
	}
}

// tieTQ2: a code of two bits has three values, so 3 becomes 1.
func tieTQ2(block []byte) {
	for i, b := range block[:64] {
		block[i] = b &^ (b << 1 & 0xaa)
	}
}

// measured returns the root mean square of a type's elements at block scales of 1.
func (s scaling) measured(kind quant.Type) float64 {
	rmsLock.Lock()
	defer rmsLock.Unlock()
	if x, ok := rmsOf[kind]; ok {
		return x
	}
	const blocks = 4096
	b, x := make([]byte, blocks*kind.BlockBytes()), make([]float32, blocks*kind.BlockLen())
	r := newRand(1)
	r.fill(b)
	for at := 0; at < len(b); at += kind.BlockBytes() {
		block := b[at:][:kind.BlockBytes()]
		s.set(block, quant.F32ToF16(1))
		if s.tie != nil {
			s.tie(block)
		}
	}
	if err := quant.Dequantize(kind, x, b); err != nil {
		panic(err) // whole blocks of a known type
	}
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	rmsOf[kind] = math.Sqrt(sum / float64(len(x)))
	return rmsOf[kind]
}

var (
	rmsLock sync.Mutex
	rmsOf   = map[quant.Type]float64{}
)

// set puts a block's scale where the type has it.
func (s scaling) set(block []byte, d uint16) {
	if s.put != nil {
		s.put(block, d)
		return
	}
	binary.LittleEndian.PutUint16(block[s.d:], d)
}

// fillNVFP4 mixes the two scales of 16 elements between which the right one lies, and
// their neighbours, so that the mean square comes out right and blocks differ.
func fillNVFP4(std float64) (filler, error) {
	want := std * std / (34.25 / 4) // the mean square of the levels, halved by the type: that of the scales
	square := func(code int) float64 { v := float64(quant.UE4M3(byte(code))); return v * v }
	if want < square(1)/16 || want > square(0x7d) {
		return nil, fmt.Errorf("weights of size %.3g do not fit in the scales of NVFP4", std)
	}
	high := sort.Search(0x7e, func(code int) bool { return square(code) > want })
	low := high - 1
	upper, lower := high+1, max(low-1, 0)
	// A quarter of the scales are the outer two, in halves; the inner two make up for it.
	inner := (want - (square(upper)+square(lower))/8) / 0.75
	share := (inner - square(low)) / (square(high) - square(low))
	if share < 0 || share > 1 { // near the ends the steps are too uneven
		upper, lower = high, low
		share = (want - square(low)) / (square(high) - square(low))
		share = (share - 0.125) / 0.75
	}
	var table [256]byte
	for i := range table {
		switch {
		case i < 32:
			table[i] = byte(lower)
		case i < 64:
			table[i] = byte(upper)
		case i < 64+int(math.Round(share*192)):
			table[i] = byte(high)
		default:
			table[i] = byte(low)
		}
	}
	size := quant.NVFP4.BlockBytes()
	return func(r *rand, dst []byte) {
		r.fill(dst)
		for ; len(dst) > 0; dst = dst[size:] {
			for i := range 4 {
				dst[i] = table[dst[i]]
			}
		}
	}, nil
}
