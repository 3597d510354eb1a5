package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Kernels for blocks of 32 weights.

func (g *gen) gemvQ8_0() {
	g.gemv("Q8_0", "multiplies rows of Q8_0 with a Q8_0 vector.", 34, block8Bytes, func(v *gemv) func() {
		ones, bias := v.keep(v.bytes32(words(1)...)), v.keep(v.bytes32(0x80))
		return func() {
			x := v.YMM()
			v.VMOVDQU(at(v.x, 0), x)
			sum := v.sum8(func(i int) reg.VecVirtual {
				w, p := v.YMM(), v.YMM()
				if v.vnni {
					v.VPXOR(v.at(i, 2), bias, w) // plus 128
					v.VPXOR(p, p, p)
					v.VPDPBUSD(x, w, p)
					return p
				}
				// |w| <= 128 and |x| <= 127: a pair's sum fits an int16.
				v.VMOVDQU(v.at(i, 2), w)
				v.VPSIGNB(w, x, p)
				v.VPABSB(w, w)
				v.VPMADDUBSW(p, w, p)
				v.VPMADDWD(ones, p, p)
				return p
			})
			if v.vnni {
				v.shifted(sum, 7)
			}
			v.accumulate(sum, v.halves(0), block8Scale)
		}
	})
}

// nibbles is the state of a kernel whose blocks hold 16 bytes of two codes
// each.
type nibbles struct {
	*gemv
	low, ones reg.VecVirtual // constants: 15 in each byte, 1 in each word
	high      reg.VecVirtual // AVX-512: the bit matrix that moves the high half of a byte down

	// The vector's block as two rows side by side meet it: entries 0 to 15 in
	// both halves of xlo, the rest in xhi.
	xlo, xhi reg.VecVirtual
}

func (v *gemv) nibbles() *nibbles {
	n := &nibbles{gemv: v, low: v.keep(v.bytes32(0x0f)), ones: v.keep(v.bytes32(words(1)...))}
	if v.vnni {
		n.high = v.keep(v.bytes32(0, 0, 0, 0, 0x80, 0x40, 0x20, 0x10))
	}
	return n
}

func (n *nibbles) loadVector() {
	n.xlo, n.xhi = n.YMM(), n.YMM()
	n.VBROADCASTI128(at(n.x, 0), n.xlo)
	n.VBROADCASTI128(at(n.x, 16), n.xhi)
}

// load takes 16 bytes at off of rows i and i+4 apart: entries 0 to 15 of both
// rows, and 16 to 31.
func (n *nibbles) load(i, off int) (lo, hi reg.VecVirtual) {
	lo, hi = n.YMM(), n.YMM()
	n.VBROADCASTI128(n.at(i, off), lo)
	n.VINSERTI128(operand.U8(1), n.at(i+4, off), lo, lo)
	if n.vnni {
		n.VGF2P8AFFINEQB(operand.U8(0), n.high, lo, hi)
	} else {
		n.VPSRLW(operand.U8(4), lo, hi)
		n.VPAND(n.low, hi, hi)
	}
	n.VPAND(n.low, lo, lo)
	return lo, hi
}

// unsigned multiplies weights of at most 31 with the vector: two pairs of
// products fit an int16.
func (n *nibbles) unsigned(lo, hi reg.VecVirtual) reg.VecVirtual {
	if n.vnni {
		p := n.YMM()
		n.VPXOR(p, p, p)
		n.VPDPBUSD(n.xlo, lo, p)
		n.VPDPBUSD(n.xhi, hi, p)
		return p
	}
	n.VPMADDUBSW(n.xlo, lo, lo)
	n.VPMADDUBSW(n.xhi, hi, hi)
	n.VPADDW(hi, lo, lo)
	n.VPMADDWD(n.ones, lo, lo)
	return lo
}

// signed multiplies signed weights with the vector.
func (n *nibbles) signed(lo, hi reg.VecVirtual) reg.VecVirtual {
	for _, c := range []struct{ w, x reg.VecVirtual }{{lo, n.xlo}, {hi, n.xhi}} {
		s := n.YMM()
		n.VPSIGNB(c.w, c.x, s)
		n.VPABSB(c.w, c.w)
		n.VPMADDUBSW(s, c.w, c.w)
		n.VPMADDWD(n.ones, c.w, c.w)
	}
	n.VPADDD(hi, lo, lo)
	return lo
}

func (g *gen) gemvQ4_0() {
	g.gemv("Q4_0", "multiplies rows of Q4_0 with a Q8_0 vector.", 18, block8Bytes, func(v *gemv) func() {
		n := v.nibbles()
		return func() {
			n.loadVector()
			sum := v.sum4x2(15, n.ones, func(i int) reg.VecVirtual { return n.unsigned(n.load(i, 2)) })
			v.shifted(sum, 3)
			v.accumulate(sum, v.halves(0), block8Scale)
		}
	})
}

// accumulateWithMin adds float(sum) * (w*x) + m*s, s being the vector's.
func (v *gemv) accumulateWithMin(sum, w, m reg.VecVirtual) {
	v.VCVTDQ2PS(sum, sum)
	x, s := v.YMM(), v.YMM()
	v.VBROADCASTSS(at(v.x, block8Scale), x)
	v.VBROADCASTSS(at(v.x, block8S), s)
	v.VMULPS(x, w, w)
	v.VMULPS(w, sum, sum)
	v.VMULPS(s, m, m)
	v.VADDPS(m, sum, sum)
	v.VADDPS(sum, v.acc, v.acc)
}

func (g *gen) gemvQ4_1() {
	g.gemv("Q4_1", "multiplies rows of Q4_1 with a Q8_1 vector.", 20, block8Bytes, func(v *gemv) func() {
		n := v.nibbles()
		return func() {
			n.loadVector()
			sum := v.sum4x2(15, n.ones, func(i int) reg.VecVirtual { return n.unsigned(n.load(i, 4)) })
			d, m := v.halfPairs(0)
			v.accumulateWithMin(sum, d, m)
		}
	})
}

// fifths is what adds 16 to the entries whose bit is set in a word of 32 bits.
type fifths struct {
	bit, ten reg.VecVirtual
	spread   [2]operand.Mem // puts byte j/8 (plus 2 for the second half) in entry j
}

func (n *nibbles) fifths() (f fifths) {
	f.bit, f.ten = n.keep(n.bytes32(1, 2, 4, 8, 16, 32, 64, 128)), n.keep(n.bytes32(0x10))
	for k := range f.spread {
		b := make([]byte, 16)
		for j := range b {
			b[j] = byte(2*k + j/8)
		}
		f.spread[k] = n.bytes32(b...)
	}
	return f
}

// add does it with the bits at off of rows i and i+4.
func (f *fifths) add(n *nibbles, i, off int, lo, hi reg.VecVirtual) (reg.VecVirtual, reg.VecVirtual) {
	a, b := n.YMM(), n.YMM()
	n.VPBROADCASTD(n.at(i, off), a)
	n.VPBROADCASTD(n.at(i+4, off), b)
	n.VPBLENDD(operand.U8(0xf0), b, a, a)
	for k, q := range []reg.VecVirtual{lo, hi} {
		n.VPSHUFB(f.spread[k], a, b)
		n.VPAND(f.bit, b, b)
		n.VPCMPEQB(f.bit, b, b)
		n.VPAND(f.ten, b, b)
		n.VPOR(b, q, q)
	}
	return lo, hi
}

func (g *gen) gemvQ5_0() {
	g.gemv("Q5_0", "multiplies rows of Q5_0 with a Q8_0 vector.", 22, block8Bytes, func(v *gemv) func() {
		n := v.nibbles()
		f := n.fifths()
		return func() {
			n.loadVector()
			sum := v.sum4x2(31, n.ones, func(i int) reg.VecVirtual {
				lo, hi := n.load(i, 6)
				return n.unsigned(f.add(n, i, 2, lo, hi))
			})
			v.shifted(sum, 4)
			v.accumulate(sum, v.halves(0), block8Scale)
		}
	})
}

func (g *gen) gemvQ5_1() {
	g.gemv("Q5_1", "multiplies rows of Q5_1 with a Q8_1 vector.", 24, block8Bytes, func(v *gemv) func() {
		n := v.nibbles()
		f := n.fifths()
		return func() {
			n.loadVector()
			sum := v.sum4x2(31, n.ones, func(i int) reg.VecVirtual {
				lo, hi := n.load(i, 8)
				return n.unsigned(f.add(n, i, 4, lo, hi))
			})
			d, m := v.halfPairs(0)
			v.accumulateWithMin(sum, d, m)
		}
	})
}

var (
	nl4  = [16]int{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}
	e2m1 = [16]int{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}
)

// entries returns t as bytes, each plus add.
func (g *gen) entries(t [16]int, add int) []byte {
	b := make([]byte, 16)
	for i, v := range t {
		b[i] = byte(v + add)
	}
	return b
}

// table returns them in memory.
func (g *gen) table(t [16]int, add int) operand.Mem { return g.bytes32(g.entries(t, add)...) }

// lookUp replaces the codes by entries of a table.
func (g *gen) lookUp(table, lo, hi reg.VecVirtual) (reg.VecVirtual, reg.VecVirtual) {
	g.VPSHUFB(lo, table, lo)
	g.VPSHUFB(hi, table, hi)
	return lo, hi
}

func (g *gen) gemvIQ4NL() {
	g.gemv("IQ4NL", "multiplies rows of IQ4_NL with a Q8_0 vector.", 18, block8Bytes, func(v *gemv) func() {
		n, bias := v.nibbles(), 0
		if v.vnni {
			bias = 128
		}
		table := v.keep(v.table(nl4, bias))
		return func() {
			n.loadVector()
			sum := v.sum4x2(255, n.ones, func(i int) reg.VecVirtual {
				lo, hi := n.load(i, 2)
				lo, hi = v.lookUp(table, lo, hi)
				if v.vnni {
					return n.unsigned(lo, hi)
				}
				return n.signed(lo, hi)
			})
			if v.vnni {
				v.shifted(sum, 7)
			}
			v.accumulate(sum, v.halves(0), block8Scale)
		}
	})
}

func (g *gen) gemvMXFP4() {
	g.gemv("MXFP4", "multiplies rows of MXFP4 with a Q8_0 vector.", 17, block8Bytes, func(v *gemv) func() {
		n, table, p := v.nibbles(), v.keep(v.table(e2m1, 16)), v.powers()
		return func() {
			n.loadVector()
			sum := v.sum4x2(28, n.ones, func(i int) reg.VecVirtual {
				lo, hi := n.load(i, 1)
				return n.unsigned(v.lookUp(table, lo, hi))
			})
			v.shifted(sum, 4)
			v.accumulate(sum, p.gather(&v.eight, 0), block8Scale)
		}
	})
}

// NVFP4 has blocks of 64 with a scale for every 16, half a block of activations.
func (g *gen) gemvNVFP4() {
	g.gemv("NVFP4", "multiplies rows of NVFP4 with a Q8_0 vector.", 36, 2*block8Bytes, func(v *gemv) func() {
		n, table := v.nibbles(), v.keep(v.table(e2m1, 0))
		return func() {
			for h := range 2 {
				// 16 bytes hold entries 0 to 7 and 16 to 23 in their low halves.
				a, b := v.YMM(), v.YMM()
				n.xlo, n.xhi = v.YMM(), v.YMM()
				v.VBROADCASTI128(at(v.x, h*block8Bytes), a)
				v.VBROADCASTI128(at(v.x, h*block8Bytes+16), b)
				v.VPUNPCKLQDQ(b, a, n.xlo)
				v.VPUNPCKHQDQ(b, a, n.xhi)
				row := func(i int) reg.VecVirtual {
					v.prefetch(v.perRow)
					lo, hi := n.load(i, 4+16*h)
					lo, hi = v.lookUp(table, lo, hi)
					for _, c := range []struct{ w, x reg.VecVirtual }{{lo, n.xlo}, {hi, n.xhi}} {
						s := v.YMM()
						v.VPSIGNB(c.w, c.x, s)
						v.VPABSB(c.w, c.w)
						v.VPMADDUBSW(s, c.w, c.w)
					}
					v.VPADDW(hi, lo, lo)
					v.VPMADDWD(n.ones, lo, lo)
					return lo
				}
				// Two sums of each of two rows, and of the rows four further.
				p := v.packAdd(row(0), row(1), n.ones)
				q := v.packAdd(row(2), row(3), n.ones)
				for s := range 2 {
					sum := v.YMM()
					v.VSHUFPS(operand.U8(0x88+s*0x55), q, p, sum)
					v.accumulate(sum, v.eightsE4M3(2*h+s), h*block8Bytes+block8Scale)
				}
			}
		}
	})
}

// eightsE4M3 brings half the values of the bytes at off of each row: floats of 4
// bits of exponent and 3 of mantissa, but 0x7f stands for 0. As an f16 with the
// same bits such a number is 2^-8 of itself.
func (v *eight) eightsE4M3(off int) reg.VecVirtual {
	w, z, f := v.XMM(), v.XMM(), v.YMM()
	v.VPMOVZXBW(v.gather(off, 8), w)
	v.VPCMPEQW(v.bytes32(words(0x7f)...), w, z)
	v.VPSLLW(operand.U8(7), w, w)
	v.VPAND(v.bytes32(words(0x3f80)...), w, w)
	v.VPANDN(w, z, w)
	v.VCVTPH2PS(w, f)
	v.VMULPS(v.floats32(128), f, f)
	return f
}
