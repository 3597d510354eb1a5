package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Kernels for superblocks of 256 weights: groups of 16 or 32 have integer
// scales, and everything inside a superblock is summed in integers. A row's
// sums of two products fit an int16; multiplied with scales they become int32.

// super is the state of such a kernel.
type super struct {
	*gemv
	low    reg.VecVirtual // constant: 15 in each byte
	scales operand.Mem    // stack: the rows' unpacked scales
}

func (v *gemv) super(scaleBytes int) *super {
	s := &super{gemv: v, low: v.keep(v.bytes32(0x0f))}
	if scaleBytes > 0 {
		s.scales = v.AllocLocal(scaleBytes)
	}
	return s
}

// codes is the vector's codes from entry e on.
func (s *super) codes(e int) operand.Mem { return at(s.x, e) }

// weigh adds to acc the pair sums p, in int16, times the scales. With first
// set it starts acc.
func (s *super) weigh(acc, p reg.VecVirtual, scale operand.Op, first bool) {
	switch {
	case first:
		s.VPMADDWD(scale, p, acc)
	default:
		s.VPMADDWD(scale, p, p)
		s.VPADDD(p, acc, acc)
	}
}

// nibble returns the entries in the low halves of q's bytes, or the high ones.
func (s *super) nibble(q reg.VecVirtual, high bool) reg.VecVirtual {
	if high {
		return s.bits(q, 4, 0, 4)
	}
	return s.bits(q, 0, 0, 4)
}

// bits moves n bits of each byte of h, from bit from on, to bit to and clears
// the rest. (The bit matrices of GFNI would do it in one instruction, but on a
// port that multiplications need: no gain on Zen 4.)
func (s *super) bits(h reg.VecVirtual, from, to, n int) reg.VecVirtual {
	r := s.YMM()
	mask := operand.Op(s.bytes32(byte(1<<n-1) << to))
	if n == 4 && to == 0 {
		mask = s.low
	}
	switch {
	case from == to:
		s.VPAND(mask, h, r)
	case from < to:
		s.VPSLLW(operand.U8(to-from), h, r)
		s.VPAND(mask, r, r)
	default:
		s.VPSRLW(operand.U8(from-to), h, r)
		s.VPAND(mask, r, r)
	}
	return r
}

// evenOdd16 returns the vector's sums of 16 codes: those of even groups in the
// low half, of odd ones in the high half.
func (s *super) evenOdd16() reg.VecVirtual {
	r := s.YMM()
	s.VMOVDQU(at(s.x, blockKSum16), r)
	s.evenOddWords(r)
	return r
}

// evenOddWords orders sixteen words so.
func (s *super) evenOddWords(r reg.VecVirtual) {
	s.VPSHUFB(s.bytes32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15), r, r)
	s.VPERMQ(operand.U8(0xd8), r, r)
}

// evenOdd orders 16 bytes so that those of even groups come first.
var evenOdd = []byte{0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15}

// scale16 spreads the scales of groups 2k and 2k+1 from their even-odd words
// over the halves of a vector.
func (s *super) scale16(t reg.VecVirtual, k int) reg.VecVirtual {
	r := s.YMM()
	s.VPSHUFB(s.bytes32(byte(2*k), byte(2*k+1)), t, r)
	return r
}

// scaleMins unpacks the scales and minima of Q4_K and Q5_K. The scales go to
// the stack, each as a pair of words; the sums of minima times the vector's
// sums are returned, the rows in the elements.
func (s *super) scaleMins() reg.VecVirtual {
	sums, zero := s.YMM(), s.YMM()
	s.VBROADCASTI128(at(s.x, blockKSum32), sums)
	s.VPXOR(zero, zero, zero)
	z := byte(0x80)
	mins := func(p int) reg.VecVirtual {
		a, b := s.YMM(), s.YMM()
		s.VBROADCASTI128(s.at(p, 0), a)
		s.VINSERTI128(operand.U8(1), s.at(p+4, 0), a, a)
		// Bytes 4 to 15 hold the scales. As dwords: scales 0-3, scales 4-7,
		// minima 0-3, minima 4-7; first their low bits, then the high ones.
		s.VPSHUFB(s.bytes32(z, z, z, z, 4, 5, 6, 7, z, z, z, z, 8, 9, 10, 11), a, b)
		s.VPSHUFB(s.bytes32(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15), a, a)
		s.VPSRLVD(s.bytes32(dwords(0, 0, 0, 4)...), a, a)
		s.VPAND(s.bytes32(dwords(0x3f3f3f3f, 0x0f0f0f0f)...), a, a)
		s.VPSRLD(operand.U8(2), b, b)
		s.VPAND(s.bytes32(0x30), b, b)
		s.VPOR(b, a, a)
		for k := range byte(2) {
			j := 4 * k
			s.VPSHUFB(s.bytes32(j, z, j, z, j+1, z, j+1, z, j+2, z, j+2, z, j+3, z, j+3, z), a, b)
			s.VMOVDQU(b, s.scales.Offset(64*p+32*int(k)))
		}
		s.VPUNPCKHBW(zero, a, a)
		s.VPMADDWD(sums, a, a)
		return a
	}
	a := s.hadd(mins(0), mins(1))
	b := s.hadd(mins(2), mins(3))
	return s.hadd(a, b)
}

// scale returns a vector full of row i's scale j, which scaleMins has stored.
func (s *super) scale(i, j int) reg.VecVirtual {
	r := s.YMM()
	s.VPBROADCASTD(s.scales.Offset(i%4*64+j/4*32+i/4*16+j%4*4), r)
	return r
}

// accumulateMins adds float(sum)*(d*x) - float(mins)*(dmin*x).
func (s *super) accumulateMins(sum, d, mins, dmin reg.VecVirtual) {
	x := s.YMM()
	s.VBROADCASTSS(at(s.x, blockKScale), x)
	s.VCVTDQ2PS(sum, sum)
	s.VMULPS(x, d, d)
	s.VMULPS(d, sum, sum)
	s.VCVTDQ2PS(mins, mins)
	s.VMULPS(x, dmin, dmin)
	s.VMULPS(dmin, mins, mins)
	s.VSUBPS(mins, sum, sum)
	s.VADDPS(sum, s.acc, s.acc)
}

func (g *gen) gemvQ4K() {
	g.gemv("Q4K", "multiplies rows of Q4_K with a Q8_K vector.", 144, blockKBytes, func(v *gemv) func() {
		s := v.super(256)
		return func() {
			mins := s.scaleMins()
			sum := v.sum8(func(i int) reg.VecVirtual {
				acc := v.YMM()
				for a := range 4 {
					q := v.YMM()
					v.VMOVDQU(v.at(i, 16+32*a), q)
					for k := range 2 {
						p := s.nibble(q, k == 1)
						v.VPMADDUBSW(s.codes(64*a+32*k), p, p)
						s.weigh(acc, p, s.scale(i, 2*a+k), a+k == 0)
					}
				}
				return acc
			})
			d, dmin := v.halfPairs(0)
			s.accumulateMins(sum, d, mins, dmin)
		}
	})
}

func (g *gen) gemvQ5K() {
	g.gemv("Q5K", "multiplies rows of Q5_K with a Q8_K vector.", 176, blockKBytes, func(v *gemv) func() {
		s := v.super(256)
		return func() {
			mins := s.scaleMins()
			sum := v.sum8(func(i int) reg.VecVirtual {
				acc, h := v.YMM(), v.YMM()
				v.VMOVDQU(v.at(i, 16), h)
				for a := range 4 {
					q := v.YMM()
					v.VMOVDQU(v.at(i, 48+32*a), q)
					for k := range 2 {
						p := s.nibble(q, k == 1)
						v.VPOR(s.bits(h, 2*a+k, 4, 1), p, p)
						v.VPMADDUBSW(s.codes(64*a+32*k), p, p)
						s.weigh(acc, p, s.scale(i, 2*a+k), a+k == 0)
					}
				}
				return acc
			})
			d, dmin := v.halfPairs(0)
			s.accumulateMins(sum, d, mins, dmin)
		}
	})
}

func (g *gen) gemvQ2K() {
	g.gemv("Q2K", "multiplies rows of Q2_K with a Q8_K vector.", 84, blockKBytes, func(v *gemv) func() {
		s := v.super(0)
		return func() {
			mins := v.sum8(func(i int) reg.VecVirtual {
				m := v.YMM()
				v.VMOVDQU(v.at(i, 0), m.AsX())
				v.VPSRLW(operand.U8(4), m.AsX(), m.AsX())
				v.VPAND(s.low.AsX(), m.AsX(), m.AsX())
				v.VPMOVZXBW(m.AsX(), m)
				v.VPMADDWD(at(v.x, blockKSum16), m, m)
				return m
			})
			sum := v.sum8(func(i int) reg.VecVirtual {
				acc, t := v.YMM(), v.YMM()
				v.VPAND(v.at(i, 0), s.low.AsX(), t.AsX())
				v.VPSHUFB(v.bytes32(evenOdd...), t.AsX(), t.AsX())
				v.VPMOVZXBW(t.AsX(), t)
				var q reg.VecVirtual
				for k := range 8 {
					if k%4 == 0 {
						q = v.YMM()
						v.VMOVDQU(v.at(i, 16+8*k), q)
					}
					p := s.bits(q, k%4*2, 0, 2)
					v.VPMADDUBSW(s.codes(32*k), p, p)
					s.weigh(acc, p, s.scale16(t, k), k == 0)
				}
				return acc
			})
			d, dmin := v.halfPairs(80)
			s.accumulateMins(sum, d, mins, dmin)
		}
	})
}

func (g *gen) gemvQ3K() {
	g.gemv("Q3K", "multiplies rows of Q3_K with a Q8_K vector.", 110, blockKBytes, func(v *gemv) func() {
		s := v.super(128)
		return func() {
			for p := range 4 {
				s.scalesQ3K(p)
			}
			sums := s.evenOdd16()
			sum := v.sum8(func(i int) reg.VecVirtual {
				acc, t, h := v.YMM(), v.YMM(), v.YMM()
				v.VPMOVSXBW(s.scales.Offset(i%4*32+i/4*16), t)
				v.VMOVDQU(v.at(i, 0), h)
				var q reg.VecVirtual
				for k := range 8 {
					if k%4 == 0 {
						q = v.YMM()
						v.VMOVDQU(v.at(i, 32+8*k), q)
					}
					p := s.bits(q, k%4*2, 0, 2)
					v.VPOR(s.bits(h, k, 2, 1), p, p)
					v.VPMADDUBSW(s.codes(32*k), p, p)
					s.weigh(acc, p, s.scale16(t, k), k == 0)
				}
				s.unbias(acc, t, sums, 2)
				return acc
			})
			v.accumulate(sum, v.halves(108), blockKScale)
		}
	})
}

// unbias takes from acc what weights that are stored plus 2^bits have too much:
// scales times the vector's sums, both in even-odd order.
func (s *super) unbias(acc, scales, sums reg.VecVirtual, bits int) {
	c := s.YMM()
	s.VPMADDWD(sums, scales, c)
	s.VPSLLD(operand.U8(bits), c, c)
	s.VPSUBD(c, acc, acc)
}

// scalesQ3K unpacks the scales of rows p and p+4 to the stack, as signed bytes
// in even-odd order.
func (s *super) scalesQ3K(p int) {
	a, b := s.YMM(), s.YMM()
	const off = 94 // the scales are bytes 2 to 13 of what is loaded
	s.VBROADCASTI128(s.at(p, off), a)
	s.VINSERTI128(operand.U8(1), s.at(p+4, off), a, a)
	s.VPSHUFB(s.bytes32(10, 11, 12, 13), a, b)
	s.VPSHUFB(s.bytes32(2, 3, 4, 5, 6, 7, 8, 9), a, a)
	s.VPSRLVD(s.bytes32(dwords(0, 0, 4, 4)...), a, a)
	s.VPAND(s.low, a, a)
	s.VPSRLVD(s.bytes32(dwords(0, 2, 4, 6)...), b, b)
	s.VPAND(s.bytes32(3), b, b)
	s.VPSLLD(operand.U8(4), b, b)
	s.VPOR(b, a, a)
	s.VPSUBB(s.bytes32(32), a, a)
	s.VPSHUFB(s.bytes32(evenOdd...), a, a)
	s.VMOVDQU(a, s.scales.Offset(32*p))
}

func (g *gen) gemvQ6K() {
	g.gemv("Q6K", "multiplies rows of Q6_K with a Q8_K vector.", 210, blockKBytes, func(v *gemv) func() {
		s := v.super(0)
		return func() {
			sums := s.evenOdd16()
			sum := v.sum8(func(i int) reg.VecVirtual {
				acc, t := v.YMM(), v.YMM()
				v.VMOVDQU(v.at(i, 192), t.AsX())
				v.VPSHUFB(v.bytes32(evenOdd...), t.AsX(), t.AsX())
				v.VPMOVSXBW(t.AsX(), t)
				for a := range 2 {
					l0, l1, h := v.YMM(), v.YMM(), v.YMM()
					v.VMOVDQU(v.at(i, 64*a), l0)
					v.VMOVDQU(v.at(i, 64*a+32), l1)
					v.VMOVDQU(v.at(i, 128+32*a), h)
					for b := range 4 {
						p := s.nibble([]reg.VecVirtual{l0, l1}[b%2], b/2 == 1)
						u := s.bits(h, 2*b, 4, 2)
						v.VPOR(u, p, p)
						v.VPMADDUBSW(s.codes(128*a+32*b), p, p)
						s.weigh(acc, p, s.scale16(t, 4*a+b), a+b == 0)
					}
				}
				s.unbias(acc, t, sums, 5)
				return acc
			})
			v.accumulate(sum, v.halves(208), blockKScale)
		}
	})
}

func (g *gen) gemvIQ4XS() {
	g.gemv("IQ4XS", "multiplies rows of IQ4_XS with a Q8_K vector.", 136, blockKBytes, func(v *gemv) func() {
		s := v.super(256)
		table := v.keep(v.table(nl4, 0))
		return func() {
			// A vector of nibbles holds two groups side by side, first entries 0
			// to 15 of both, then 16 to 31. The codes get the same order.
			for k := range 4 {
				a, b, c := v.YMM(), v.YMM(), v.YMM()
				v.VMOVDQU(s.codes(64*k), a)
				v.VMOVDQU(s.codes(64*k+32), b)
				v.VPERM2I128(operand.U8(0x20), b, a, c)
				v.VPERM2I128(operand.U8(0x31), b, a, b)
				v.VMOVDQU(c, s.scales.Offset(64*k))
				v.VMOVDQU(b, s.scales.Offset(64*k+32))
			}
			sum := v.sum8(func(i int) reg.VecVirtual {
				acc, t := v.YMM(), s.scalesIQ4XS(i)
				for k := range 4 {
					q := v.YMM()
					v.VMOVDQU(v.at(i, 8+32*k), q)
					scale := s.scale16(t, k)
					for h := range 2 {
						w, x := s.nibble(q, h == 1), v.YMM()
						v.VPSHUFB(w, table, w)
						v.VMOVDQU(s.scales.Offset(64*k+32*h), x)
						v.VPSIGNB(w, x, x)
						v.VPABSB(w, w)
						v.VPMADDUBSW(x, w, w)
						s.weigh(acc, w, scale, k+h == 0)
					}
				}
				return acc
			})
			v.accumulate(sum, v.halves(0), blockKScale)
		}
	})
}

// scalesIQ4XS unpacks row i's eight scales: words in even-odd order, those of
// even groups in the low half.
func (s *super) scalesIQ4XS(i int) reg.VecVirtual {
	a, b := s.YMM(), s.YMM()
	s.VPBROADCASTQ(s.at(i, 0), a) // d, 2 bytes of high bits, 4 bytes of nibbles
	z := byte(0x80)
	s.VPSHUFB(s.bytes32(2, 3, z, z), a, b)
	s.VPSHUFB(s.bytes32(4, z, z, z, 5, z, z, z, 6, z, z, z, 7, z, z, z), a, a)
	// One dword a group: 0, 2, 4, 6 and then 1, 3, 5, 7.
	s.VPSRLVD(s.bytes32(dwords(0, 0, 0, 0, 4, 4, 4, 4)...), a, a)
	s.VPAND(s.bytes32(dwords(15)...), a, a)
	s.VPSRLVD(s.bytes32(dwords(0, 4, 8, 12, 2, 6, 10, 14)...), b, b)
	s.VPAND(s.bytes32(dwords(3)...), b, b)
	s.VPSLLD(operand.U8(4), b, b)
	s.VPOR(b, a, a)
	s.VPSUBD(s.bytes32(dwords(32)...), a, a)
	s.VPACKSSDW(a, a, a)
	return a
}

// Offsets in quant.Unpacked.
const (
	unpackedScales = 256
	unpackedD      = 288
	unpackedBytes  = 292
)
