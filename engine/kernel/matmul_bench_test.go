package kernel

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"bmoe/engine/kernel/isa"
	"bmoe/engine/quant"
	"bmoe/internal/clock"
)

// BenchmarkPrepare is the quantising of one vector.
func BenchmarkPrepare(b *testing.B) {
	const cols = 2048
	x := randomVectors(rand.New(rand.NewPCG(5, 6)), 1, cols)
	for f := range numForms {
		for _, i := range isa.Available() {
			b.Run(fmt.Sprintf("%v/%v", f, i), func(b *testing.B) {
				a := NewActs(1, cols)
				a.set = i
				a.Reset(1, cols)
				b.SetBytes(4 * cols)
				for b.Loop() {
					a.Prepare(f, x, cols, 0, 1)
				}
			})
		}
	}
}

// readAll reads memory as fast as plain Go can, which is as fast as memory can:
// the yardstick for products with one vector.
func readAll(data []byte) uint64 {
	var s0, s1, s2, s3 uint64
	for p := data; len(p) >= 64; p = p[64:] {
		s0 ^= binary.LittleEndian.Uint64(p) ^ binary.LittleEndian.Uint64(p[32:])
		s1 ^= binary.LittleEndian.Uint64(p[8:]) ^ binary.LittleEndian.Uint64(p[40:])
		s2 ^= binary.LittleEndian.Uint64(p[16:]) ^ binary.LittleEndian.Uint64(p[48:])
		s3 ^= binary.LittleEndian.Uint64(p[24:]) ^ binary.LittleEndian.Uint64(p[56:])
	}
	return s0 ^ s1 ^ s2 ^ s3
}

var sink uint64

// BenchmarkGemv is decode: one vector times a matrix, once of 1 MiB, which the
// second-level cache holds, and once of more than any cache. There every pass
// alternates with a plain read of the same memory; the figures are the fastest
// and the median pass, and the median of the ratios to the read beside it.
func BenchmarkGemv(b *testing.B) {
	memory := bigPages(256 << 20)
	for _, typ := range weightTypes() {
		for _, i := range isa.Available() {
			b.Run(fmt.Sprintf("%v/cache/%v", typ, i), func(b *testing.B) { benchGemv(b, i, typ, memory[:1<<20]) })
			if i != isa.Generic {
				b.Run(fmt.Sprintf("%v/memory/%v", typ, i), func(b *testing.B) { benchGemv(b, i, typ, memory) })
			}
		}
	}
}

func benchGemv(b *testing.B, i isa.Set, typ quant.Type, memory []byte) {
	const cols = 2048
	m := repeatMatrix(typ, memory, cols)
	x := randomVectors(rand.New(rand.NewPCG(3, 4)), 1, cols)
	a, form := preparedBy(b, i, typ, Fast, x, 1, cols)
	dst := make([]float32, m.Rows)
	var rates, ratios []float64
	for b.Loop() {
		t0 := clock.Now()
		sink += readAll(m.Data)
		t1 := clock.Now()
		MatMul(dst, m.Rows, m, 0, m.Rows, a, form, nil)
		t2 := clock.Now()
		rates = append(rates, float64(len(m.Data))/float64(t2-t1))
		ratios = append(ratios, float64(t1-t0)/float64(t2-t1))
	}
	slices.Sort(rates)
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op") // of both together
	b.ReportMetric(rates[len(rates)-1], "best-GB/s")
	b.ReportMetric(rates[len(rates)/2], "GB/s")
	b.ReportMetric(ratios[len(ratios)/2], "of-read")
}

// BenchmarkGemm is prefill: vectors times a matrix of an expert's size.
func BenchmarkGemm(b *testing.B) {
	const rows, cols = 768, 2048
	for _, typ := range weightTypes() {
		rb, _ := typ.RowBytes(cols)
		m := repeatMatrix(typ, make([]byte, rows*int(rb)), cols)
		for _, n := range []int{4, 16, 512} {
			for _, i := range isa.Available()[1:] {
				b.Run(fmt.Sprintf("%v/%d/%v", typ, n, i), func(b *testing.B) {
					x := randomVectors(rand.New(rand.NewPCG(3, 4)), n, cols)
					a, form := preparedBy(b, i, typ, Fast, x, n, cols)
					dst := make([]float32, n*rows)
					for b.Loop() {
						MatMul(dst, rows, m, 0, rows, a, form, nil)
					}
					b.ReportMetric(float64(b.N)*float64(n)*rows*cols/float64(b.Elapsed().Nanoseconds()), "GMAC/s")
				})
			}
		}
	}
}

// repeatMatrix fills memory with a few random rows again and again.
func repeatMatrix(typ quant.Type, memory []byte, cols int) *Matrix {
	few := randomMatrix(rand.New(rand.NewPCG(1, 2)), typ, 16, cols)
	rb := few.RowBytes()
	m := &Matrix{Type: typ, Rows: len(memory) / rb / 16 * 16, Cols: cols}
	m.Data = memory[:m.Rows*rb]
	for o := 0; o < len(m.Data); {
		o += copy(m.Data[o:], few.Data)
	}
	return m
}
