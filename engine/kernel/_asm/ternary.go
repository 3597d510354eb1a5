package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The ternary types: 0, 1, 2 (and 3 in broken TQ2_0 blocks) stand for one less.

// ternary is such a type. digits emits the work on one row's block at off 0 of
// mem: it calls use with the digits of entries 32k to 32k+31, for each k once.
type ternary struct {
	name, doc string
	bytes     int
	half      int // where the f16 stands
	digits    func(g *gen, mem func(off int) operand.Mem, use func(k int, d reg.VecVirtual))
}

var ternaries = []ternary{
	{"TQ10", "TQ1_0", 54, 52, (*gen).digitsTQ1},
	{"TQ20", "TQ2_0", 66, 64, (*gen).digitsTQ2},
}

func (g *gen) digitsTQ2(mem func(off int) operand.Mem, use func(k int, d reg.VecVirtual)) {
	three := g.bytes32(3)
	for a := range 2 {
		q := g.YMM()
		g.VMOVDQU(mem(32*a), q)
		for b := range 4 {
			d := g.YMM()
			if b == 0 {
				g.VPAND(three, q, d)
			} else {
				g.VPSRLW(operand.U8(2*b), q, d)
				g.VPAND(three, d, d)
			}
			use(4*a+b, d)
		}
	}
}

// digitsTQ1: with q a byte, digit n is 3*(q*3^n mod 256)/256. Bytes are kept less
// 128, as signed ones: a multiplication by 3 leaves them so.
func (g *gen) digitsTQ1(mem func(off int) operand.Mem, use func(k int, d reg.VecVirtual)) {
	flip, above85, above170 := g.bytes32(0x80), g.bytes32(85^0x80), g.bytes32(170^0x80)
	digit := func(k int, q reg.VecVirtual) {
		d, e := g.YMM(), g.YMM()
		g.VPCMPGTB(above85, q, d)
		g.VPCMPGTB(above170, q, e)
		g.VPADDB(e, d, d)
		g.VPABSB(d, d)
		use(k, d)
	}
	times3 := func(q reg.VecVirtual) reg.VecVirtual {
		d := g.YMM()
		g.VPADDB(q, q, d)
		g.VPADDB(q, d, d)
		return d
	}
	// 32 bytes of five digits, then 16: two digits side by side.
	q := g.YMM()
	g.VMOVDQU(mem(0), q)
	g.VPXOR(flip, q, q)
	for k := range 5 {
		if k > 0 {
			q = times3(q)
		}
		digit(k, q)
	}
	r := g.YMM()
	g.VBROADCASTI128(mem(32), r)
	g.VPXOR(flip, r, r)
	g.VPBLENDD(operand.U8(0xf0), times3(r), r, r)
	digit(5, r)
	r = times3(times3(r))
	digit(6, r)
	r = times3(times3(r))
	// The last digit of the 16, and four bytes of four.
	h := g.YMM()
	g.VPBROADCASTD(mem(48), h)
	g.VPXOR(flip, h, h)
	g.VPBLENDD(operand.U8(0xaa), times3(h), h, h)
	g.VPBLENDD(operand.U8(0xcc), times3(times3(h)), h, h)
	g.VPBLENDD(operand.U8(0xf0), h, r, r)
	digit(7, r)
}

func (g *gen) gemvTernary(t ternary) {
	g.gemv(t.name, "multiplies rows of "+t.doc+" with a Q8_K vector.", t.bytes, blockKBytes, func(v *gemv) func() {
		ones := v.keep(v.bytes32(words(1)...))
		return func() {
			// The sum of all codes of the vector, in every element.
			all, half := v.YMM(), v.YMM()
			v.VPMADDWD(at(v.x, blockKSum16), ones, all)
			all = v.hadd(all, all)
			all = v.hadd(all, all)
			v.VPERM2I128(operand.U8(1), all, all, half)
			v.VPADDD(half, all, all)
			sum := v.sum8(func(i int) reg.VecVirtual {
				var acc reg.VecVirtual // eight products of at most 3*127*2 fit an int16
				t.digits(v.gen, func(off int) operand.Mem { return v.at(i, off) }, func(k int, d reg.VecVirtual) {
					v.VPMADDUBSW(at(v.x, 32*k), d, d)
					if acc == nil {
						acc = d
					} else {
						v.VPADDW(d, acc, acc)
					}
				})
				v.VPMADDWD(ones, acc, acc)
				return acc
			})
			v.VPSUBD(all, sum, sum)
			v.accumulate(sum, v.halves(t.half), blockKScale)
		}
	})
}

func (g *gen) unpackTernary(t ternary) {
	g.unpack(t.name, t.doc, t.bytes, 1, func(block reg.GPVirtual) func(dst reg.GPVirtual) reg.VecVirtual {
		return func(dst reg.GPVirtual) reg.VecVirtual {
			t.digits(g, func(off int) operand.Mem { return at(block, off) }, func(k int, d reg.VecVirtual) {
				g.VPADDB(g.bytes32(0xff), d, d)
				g.VMOVDQU(d, at(dst, 32*k))
			})
			one, f := g.YMM(), g.XMM()
			g.VMOVDQU(g.bytes32(words(1)...), one)
			g.VMOVDQU(one, at(dst, unpackedScales))
			g.VPBROADCASTW(at(block, t.half), f)
			return f
		}
	})
}
