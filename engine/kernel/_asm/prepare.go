package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// prep holds the constants of the kernels that quantise activations.
type prep struct {
	*gen
	abs, most, tiny, finite, nan, ones reg.VecVirtual
	order                              reg.VecVirtual // undoes the interleaving of two packs
}

func (g *gen) prep() *prep {
	return &prep{
		gen:    g,
		abs:    g.keep(g.bytes32(dwords(0x7fffffff)...)),
		most:   g.keep(g.bytes32(dwords(0x42fe0000)...)), // 127.0
		tiny:   g.keep(g.bytes32(dwords(0x0d7fffff)...)), // just below 2^-100
		finite: g.keep(g.bytes32(dwords(0x7f800000)...)), // infinity
		nan:    g.keep(g.bytes32(dwords(0x7fc00000)...)),
		ones:   g.keep(g.bytes32(words(1)...)),
		order:  g.keep(g.bytes32(dwords(0, 4, 1, 5, 2, 6, 3, 7)...)),
	}
}

// fold puts the largest of m's elements into every element. As integers the bits of
// magnitudes compare like the magnitudes, and NaNs come last.
func (p *prep) fold(m reg.VecVirtual) {
	t := p.YMM()
	p.VPERMQ(operand.U8(0x4e), m, t)
	p.VPMAXUD(t, m, m)
	p.VPSHUFD(operand.U8(0x4e), m, t)
	p.VPMAXUD(t, m, m)
	p.VPSHUFD(operand.U8(0xb1), m, t)
	p.VPMAXUD(t, m, m)
}

// factors returns from the largest magnitude: 127/m, the mask of blocks that
// are neither tiny nor broken, and the mask of broken ones.
func (p *prep) factors(m reg.VecVirtual) (inv, valid, broken reg.VecVirtual) {
	inv, valid, broken = p.YMM(), p.YMM(), p.YMM()
	p.VDIVPS(m, p.most, inv)
	p.VPCMPGTD(m, p.finite, broken) // finite, for now
	p.VPCMPGTD(p.tiny, m, valid)
	p.VPAND(broken, valid, valid)
	p.VPCMPEQD(m, m, m) // all ones; m is done with
	p.VPXOR(m, broken, broken)
	return inv, valid, broken
}

// codes turns 32 floats, which it loads from x, into codes; it returns them and
// the 8 int32 sums of 4.
func (p *prep) codes(x reg.Register, off int, inv, valid reg.VecVirtual) (q, sum reg.VecVirtual) {
	var v [4]reg.VecVirtual
	for i := range v {
		v[i] = p.YMM()
		p.VMULPS(at(x, off+32*i), inv, v[i])
		p.VCVTPS2DQ(v[i], v[i])
	}
	p.VPACKSSDW(v[1], v[0], v[0])
	p.VPACKSSDW(v[3], v[2], v[2])
	p.VPACKSSWB(v[2], v[0], v[0])
	p.VPAND(valid, v[0], v[0])
	p.VPERMD(v[0], p.order, v[0])
	one := p.keep(p.bytes32(1))
	p.VPMADDUBSW(v[0], one, v[1])
	p.VPMADDWD(p.ones, v[1], v[1])
	return v[0], v[1]
}

func (g *gen) prepareQ8() {
	const name = "prepareQ8Vec"
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.Doc(name + " quantises blocks of 32 as prepareQ8Generic does.")
	g.SignatureExpr("func(dst *byte, x *float32, blocks int)")
	dst, x, blocks := g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("blocks"), blocks)
	p := g.prep()
	zero := g.YMM()
	g.VPXOR(zero, zero, zero)
	loop := g.label("block")
	g.Label(loop)
	m, t := g.YMM(), g.YMM()
	g.VANDPS(at(x, 0), p.abs, m)
	for i := 1; i < 4; i++ {
		g.VANDPS(at(x, 32*i), p.abs, t)
		g.VPMAXUD(t, m, m)
	}
	p.fold(m)
	d := g.YMM()
	g.VDIVPS(p.most, m, d)
	inv, valid, broken := p.factors(m)
	c, fours := p.codes(x, 0, inv, valid)
	g.VMOVDQU(c, at(dst, 0))
	// The block's sum, in every element.
	g.VPERMQ(operand.U8(0x4e), fours, t)
	g.VPADDD(t, fours, fours)
	g.VPHADDD(fours, fours, fours)
	g.VPHADDD(fours, fours, fours)
	g.VPSUBD(fours, zero, t)
	g.VMOVD(t.AsX(), at(dst, block8NSum))
	// A broken block's scale is NaN, a tiny one's 0.
	g.VPAND(valid, d, d)
	g.VPAND(p.nan, broken, broken)
	g.VPOR(broken, d, d)
	h := g.XMM()
	g.VCVTPS2PH(operand.U8(0), d.AsX(), h)
	g.VCVTPH2PS(h, h)
	g.VMOVSS(h, at(dst, block8Scale))
	g.VCVTDQ2PS(fours.AsX(), fours.AsX())
	g.VMULPS(fours.AsX(), d.AsX(), h)
	g.VCVTPS2PH(operand.U8(0), h, h)
	g.VCVTPH2PS(h, h)
	g.VMOVSS(h, at(dst, block8S))
	g.ADDQ(operand.I32(128), x)
	g.ADDQ(operand.I32(block8Bytes), dst)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef(loop))
	g.VZEROUPPER()
	g.RET()
}

func (g *gen) prepareQ8K() {
	const name = "prepareQ8KVec"
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.Doc(name + " quantises blocks of 256 as prepareQ8KGeneric does.")
	g.SignatureExpr("func(dst *byte, x *float32, blocks int)")
	dst, x, blocks := g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("blocks"), blocks)
	p := g.prep()
	loop := g.label("block")
	g.Label(loop)
	var m [2]reg.VecVirtual
	t := g.YMM()
	for i := range 32 {
		if i < len(m) {
			m[i] = g.YMM()
			g.VANDPS(at(x, 32*i), p.abs, m[i])
			continue
		}
		g.VANDPS(at(x, 32*i), p.abs, t)
		g.VPMAXUD(t, m[i%2], m[i%2])
	}
	g.VPMAXUD(m[1], m[0], m[0])
	p.fold(m[0])
	inv, valid, broken := p.factors(m[0])
	d := g.YMM()
	g.VDIVPS(inv, g.keep(g.bytes32(dwords(0x3f800000)...)), d) // 1/inv
	g.VPAND(valid, d, d)
	g.VPAND(p.nan, broken, broken)
	g.VPOR(broken, d, d)
	g.VMOVSS(d.AsX(), at(dst, blockKScale))
	for half := range 2 {
		next := func(i int) reg.VecVirtual {
			c, fours := p.codes(x, 512*half+128*i, inv, valid)
			g.VMOVDQU(c, at(dst, 128*half+32*i))
			return fours
		}
		a := g.hadd(next(0), next(1))
		b := g.hadd(next(2), next(3))
		s := g.hadd(a, b) // sums of 16: even groups, odd groups
		hi, lo := g.XMM(), g.XMM()
		g.VEXTRACTI128(operand.U8(1), s, hi)
		g.VPUNPCKLDQ(hi, s.AsX(), lo)
		g.VPUNPCKHDQ(hi, s.AsX(), hi)
		g.VPACKSSDW(hi, lo, lo)
		g.VMOVDQU(lo, at(dst, blockKSum16+16*half))
		g.VPHADDW(lo, lo, lo)
		g.VMOVQ(lo, at(dst, blockKSum32+8*half))
	}
	g.ADDQ(operand.I32(1024), x)
	g.ADDQ(operand.I32(blockKBytes), dst)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef(loop))
	g.VZEROUPPER()
	g.RET()
}

func (g *gen) roundF16() {
	const name = "roundF16Vec"
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.Doc(name + " rounds 8*steps floats to half precision, as quant.F32ToF16 and quant.F16ToF32 do.")
	g.SignatureExpr("func(dst, x *float32, steps int)")
	dst, x, steps := g.GP64(), g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("x"), x)
	g.Load(g.Param("steps"), steps)
	loop := g.label("step")
	g.Label(loop)
	v := g.YMM()
	g.VMOVUPS(at(x, 0), v)
	g.VCVTPS2PH(operand.U8(0), v, v.AsX())
	g.VCVTPH2PS(v.AsX(), v)
	g.VMOVUPS(v, at(dst, 0))
	g.ADDQ(operand.I8(32), x)
	g.ADDQ(operand.I8(32), dst)
	g.DECQ(steps)
	g.JNZ(operand.LabelRef(loop))
	g.VZEROUPPER()
	g.RET()
}
