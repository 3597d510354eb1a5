package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The IQ1 types. A weight is an entry of -1, 0 or 1, plus or minus an eighth. The
// kernels' table holds u = entry + 1, so eight times a weight is 8u - 8 + delta,
// delta being 1 or -1: the products of u come out of the code book, the rest of
// the vector's sums.

func init() {
	books = append(books,
		bookType{"IQ1S", "IQ1_S", 50, "bookIQ1", 0.125, 0, 128, (*book).iq1S},
		bookType{"IQ1M", "IQ1_M", 56, "bookIQ1", 0.125, 48, 128, (*book).iq1M})
}

// entries8 reads group k's entries by indices that are doubled, since the bits
// of qh can be moved by a multiplication only upwards.
func (b *book) entries8(k int) reg.VecVirtual {
	return b.eights(2, 4, b.area(8*k))
}

func (b *book) iq1S() bookRow {
	return bookRow{
		row: func() {
			for k := range 2 {
				h := b.YMM()
				b.VPBROADCASTQ(b.mem(34+8*k), h)
				b.high(32*k, 2+16*k, true, h, []byte{0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 4, 5, 4, 5, 4, 5, 4, 5, 6, 7, 6, 7, 6, 7, 6, 7},
					[]uint16{512, 64, 8, 1}, 0xe00)
			}
			s := b.heads()
			b.VPSRLW(operand.U8(11), s, s)
			b.VPAND(b.bytes32(words(0x0e)...), s, s)
			b.VPOR(b.bytes32(words(1)...), s, s)
			b.VMOVDQU(s, b.area(64))
		},
		codes: b.entries8,
		scale: func(k int) operand.Op { return b.pair(64 + 4*k) },
		rest: func() reg.VecVirtual {
			// Plus or minus the vector's sums of 16, less eight times the same.
			d, x := b.heads(), b.YMM()
			b.VPOR(b.bytes32(words(1)...), d, d)
			b.VMOVDQU(at(b.x, blockKSum16), x)
			b.VPSIGNW(d, x, d)
			b.VPSLLW(operand.U8(3), x, x)
			b.VPSUBW(x, d, d)
			b.VPMADDWD(b.area(64), d, d)
			return d
		},
		weights: func(k int, q reg.VecVirtual) {
			b.VPSLLW(operand.U8(3), q, q)
			b.VPSUBB(b.bytes32(8), q, q)
			d := b.YMM()
			b.VPBROADCASTW(b.mem(34+2*k), d)
			b.VPSRAW(operand.U8(15), d, d)
			b.VPOR(b.bytes32(1), d, d)
			b.VPADDB(d, q, q)
		},
		scales: func() reg.VecVirtual { return b.pairs(64) },
	}
}

// heads returns the eight words of qh, each of them twice.
func (b *book) heads() reg.VecVirtual {
	h, d := b.XMM(), b.YMM()
	b.VMOVDQU(b.mem(34), h)
	b.clearing("VPUNPCKLWD", d, h, h)
	b.VPUNPCKHWD(h, h, h)
	b.VINSERTI128(operand.U8(1), h, d, d)
	return d
}

func (b *book) iq1M() bookRow {
	// Sums of eight of the vector's codes: of the first and of the second eight in
	// each group of 16; and eight times the sums of 16. All in even-odd order.
	var first, second, sums operand.Mem
	z := byte(0x80)
	nibbles := words(1, 16, 256, 4096)
	return bookRow{
		block: func() {
			first, second, sums = b.AllocLocal(32), b.AllocLocal(32), b.AllocLocal(32)
			b.sumsOf8(first, second)
			s := b.evenOdd16()
			b.VPSLLW(operand.U8(3), s, s)
			b.VMOVDQU(s, sums)
		},
		row: func() {
			for k := range 2 {
				h := b.YMM()
				b.VPBROADCASTQ(b.mem(32+8*k), h)
				b.high(32*k, 16*k, true, h, []byte{0, z, 0, z, 1, z, 1, z, 2, z, 2, z, 3, z, 3, z, 4, z, 4, z, 5, z, 5, z, 6, z, 6, z, 7, z, 7, z},
					[]uint16{512, 32}, 0xe00)
			}
			// Groups 2i in the lower half, 2i+1 in the upper.
			t := b.YMM()
			b.VPBROADCASTQ(b.mem(48), t)
			b.VPSHUFB(b.bytes32(0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5, 6, 7, 6, 7), t, t)
			b.VPMULLW(b.bytes32(append(words(512, 8, 512, 8, 512, 8, 512, 8), words(64, 1, 64, 1, 64, 1, 64, 1)...)...), t, t)
			b.VPSRLW(operand.U8(8), t, t)
			b.VPAND(b.bytes32(words(0x0e)...), t, t)
			b.VPOR(b.bytes32(words(1)...), t, t)
			b.VMOVDQU(t, b.area(64))
		},
		codes: b.entries8,
		scale: func(k int) operand.Op { return b.oddEven(64, k) },
		rest: func() reg.VecVirtual {
			h, c := b.YMM(), b.YMM()
			b.VBROADCASTI128(b.mem(32), h)
			b.VPSHUFB(b.bytes32(0, z, 2, z, 4, z, 6, z, 8, z, 10, z, 12, z, 14, z, 1, z, 3, z, 5, z, 7, z, 9, z, 11, z, 13, z, 15, z), h, h)
			b.VPOR(b.bytes32(words(1)...), h, h) // no word may become zero
			for k, m := range []operand.Mem{first, second} {
				s, x := b.YMM(), b.YMM()
				b.VPSLLW(operand.U8(12-4*k), h, s)
				b.VMOVDQU(m, x)
				b.VPSIGNW(s, x, x)
				if k == 0 {
					c = x
				} else {
					b.VPADDW(x, c, c)
				}
			}
			b.VPSUBW(sums, c, c)
			b.VPMADDWD(b.area(64), c, c)
			return c
		},
		weights: func(k int, q reg.VecVirtual) {
			b.VPSLLW(operand.U8(3), q, q)
			b.VPSUBB(b.bytes32(8), q, q)
			// A byte of 255 where bits 3, 7, 11 and 15 are set, else 1.
			d := b.YMM()
			b.VPBROADCASTW(b.mem(32+2*k), d)
			b.VPSHUFB(b.bytes32(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1), d, d)
			bit := b.bytes32(8, 8, 8, 8, 8, 8, 8, 8, 128, 128, 128, 128, 128, 128, 128, 128)
			b.VPAND(bit, d, d)
			b.VPCMPEQB(bit, d, d)
			b.VPOR(b.bytes32(1), d, d)
			b.VPADDB(d, q, q)
		},
		scales: func() reg.VecVirtual { return b.inOrder(64) },
		factor: func() reg.VecVirtual {
			d := b.XMM()
			b.VMOVQ(b.mem(48), d)
			b.VPSRLW(operand.U8(12), d, d)
			b.VPMADDWD(b.bytes32(nibbles...), d, d)
			b.VPHADDD(d, d, d)
			return d
		},
		factors: func() reg.VecVirtual {
			var r [2]reg.VecVirtual // rows 0, 1, 4, 5 and 2, 3, 6, 7
			for i := range r {
				r[i] = b.join(func(k int) operand.Mem { return b.at(2*i+k/2*4+k%2, 48) })
				b.VPSRLW(operand.U8(12), r[i], r[i])
				b.VPMADDWD(b.bytes32(nibbles...), r[i], r[i])
			}
			d := b.hadd(r[0], r[1])
			b.VPACKUSDW(d, d, d)
			b.VPERMQ(operand.U8(0x08), d, d)
			b.VCVTPH2PS(d.AsX(), d)
			return d
		},
	}
}

// sumsOf8 stores the sums of the first and of the second eight codes in each of
// the vector's groups of 16, as words in even-odd order.
func (b *book) sumsOf8(first, second operand.Mem) {
	flip, zero := b.keep(b.bytes32(0x80)), b.YMM()
	b.VPXOR(zero, zero, zero)
	var s [8]reg.VecVirtual
	for k := range s {
		s[k] = b.YMM()
		b.VPXOR(b.codes(32*k), flip, s[k])
		b.VPSADBW(zero, s[k], s[k])
	}
	// Sums stand in every fourth word; the others are zero.
	for n := 4; n >= 2; n /= 2 {
		for i := range n {
			d := b.YMM()
			b.VPACKUSDW(s[2*i+1], s[2*i], d)
			s[i] = d
		}
	}
	for i := range 2 {
		b.VPSHUFB(b.bytes32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15), s[i], s[i])
	}
	x, y, bias := b.YMM(), b.YMM(), b.bytes32(words(8*128)...)
	b.VPUNPCKLQDQ(s[1], s[0], x)
	b.VPUNPCKHQDQ(s[1], s[0], y)
	b.VPSUBW(bias, x, x)
	b.VPSUBW(bias, y, y)
	b.VMOVDQU(x, first)
	b.VMOVDQU(y, second)
}

func init() {
	files = append(files, file{"gemvlow_avx2_amd64", func(g *gen) {
		for _, t := range books {
			g.gemvBook(t)
		}
		for _, t := range ternaries {
			g.gemvTernary(t)
		}
		for _, t := range books {
			g.unpackBook(t)
		}
		for _, t := range ternaries {
			g.unpackTernary(t)
		}
	}})
}
