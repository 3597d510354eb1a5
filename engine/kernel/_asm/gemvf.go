package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemvFloat writes a kernel for groups of four rows of floats. Every row has
// sixteen partial sums, two registers; element i of a row is added to sum i mod
// 16, and at the end they are added up in the order of fold. mul emits the
// product of eight weights and eight elements of the vector.
func (g *gen) gemvFloat(name string, size int, mul func(w operand.Mem, x, p reg.VecVirtual)) {
	doc := " multiplies groups of four rows of 16*steps floats with a vector." + twin(name)
	name = "gemv" + name + g.suffix()
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.Doc(lines(name + doc)...)
	g.SignatureExpr("func(dst *float32, w *byte, rowBytes, steps, groups int, x *float32)")
	dst, w, rb, groups := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("w"), w)
	g.Load(g.Param("rowBytes"), rb)
	g.Load(g.Param("groups"), groups)
	s3 := g.GP64()
	g.LEAQ(operand.Mem{Base: rb, Index: rb, Scale: 2}, s3)

	group, step := g.label("group"), g.label("step")
	g.Label(group)
	base, ahead, x, steps := g.GP64(), g.GP64(), g.GP64(), g.GP64()
	r := rows{base: base, s: rb, s3: s3}
	g.Load(g.Param("x"), x)
	g.Load(g.Param("steps"), steps)
	g.MOVQ(w, base)
	g.LEAQ(operand.Mem{Base: w, Index: rb, Scale: 4, Disp: prefetchAhead}, ahead)
	var acc [4][2]reg.VecVirtual
	for i := range acc {
		for k := range acc[i] {
			acc[i][k] = g.YMM()
			g.VXORPS(acc[i][k], acc[i][k], acc[i][k])
		}
	}
	g.Label(step)
	for o := 0; o < 4*16*size; o += 64 {
		g.pending = append(g.pending, at(ahead, o))
	}
	for k := range 2 {
		v := g.YMM()
		g.VMOVUPS(at(x, 32*k), v)
		for i := range acc {
			if i%2 == 0 {
				g.prefetch(1)
			}
			p := g.YMM()
			mul(r.at(i, 8*size*k), v, p)
			g.VADDPS(p, acc[i][k], acc[i][k])
		}
	}
	g.ADDQ(operand.I32(4*16*size), ahead)
	g.ADDQ(operand.I32(16*size), base)
	g.ADDQ(operand.I8(64), x)
	g.DECQ(steps)
	g.JNZ(operand.LabelRef(step))

	var f [4]reg.VecVirtual
	for i := range acc {
		lo, hi := acc[i][0], g.XMM()
		g.VADDPS(acc[i][1], lo, lo)
		g.VEXTRACTF128(operand.U8(1), lo, hi)
		g.VADDPS(hi, lo.AsX(), hi)
		f[i] = hi
	}
	// Two rows at a time: entries 0, 1 and 2, 3 of both.
	two := func(a, b reg.VecVirtual) reg.VecVirtual {
		lo, hi := g.XMM(), g.XMM()
		g.VUNPCKLPD(b, a, lo)
		g.VUNPCKHPD(b, a, hi)
		g.VADDPS(hi, lo, lo)
		return lo
	}
	a, b := two(f[0], f[1]), two(f[2], f[3])
	even, odd := g.XMM(), g.XMM()
	g.VSHUFPS(operand.U8(0x88), b, a, even)
	g.VSHUFPS(operand.U8(0xdd), b, a, odd)
	g.VADDPS(odd, even, even)
	g.VMOVUPS(even, at(dst, 0))
	g.ADDQ(operand.I8(16), dst)
	g.LEAQ(operand.Mem{Base: w, Index: rb, Scale: 4}, w)
	g.DECQ(groups)
	g.JNZ(operand.LabelRef(group))
	g.VZEROUPPER()
	g.RET()
}

func (g *gen) gemvFloats() {
	g.gemvFloat("F32", 4, func(w operand.Mem, x, p reg.VecVirtual) {
		g.VMULPS(w, x, p)
	})
	g.gemvFloat("F16", 2, func(w operand.Mem, x, p reg.VecVirtual) {
		g.VCVTPH2PS(w, p)
		g.VMULPS(x, p, p)
	})
	g.gemvFloat("BF16", 2, func(w operand.Mem, x, p reg.VecVirtual) {
		g.VPMOVZXWD(w, p)
		g.VPSLLD(operand.U8(16), p, p)
		g.VMULPS(x, p, p)
	})
}
