package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pack is the state of a kernel that repacks the rows of a tile for the gemm
// kernels: eight rows with AVX2, sixteen with AVX-512. Its registers hold 16
// bytes of every fourth row: 128-bit part l of register p belongs to row p+4l. Then four
// registers, transposed inside those parts, are four steps of all rows.
type pack struct {
	*gen
	base  []reg.Register // rows 0, 4, 8, 12
	s, s3 reg.Register
	tile  reg.GPVirtual
	low   operand.Mem // 15 in each byte

	// What is added to the codes: in each byte, or minus that in each word.
	add, minus reg.VecVirtual
}

// row addresses row i at its current block.
func (p *pack) row(i, off int) operand.Mem {
	return rows{base: p.base[i/4], s: p.s, s3: p.s3}.at(i%4, off)
}

// group is rows 8k to 8k+7.
func (p *pack) group(k int) *eight {
	return &eight{p.gen, rows{p.base[2*k], p.base[2*k+1], p.s, p.s3}}
}

// constant returns bytes in memory, repeated to the width of a register.
func (p *pack) constant(b ...byte) operand.Mem { return p.bytesN(p.width(), b) }

// load reads a constant into a register.
func (p *pack) load(m operand.Mem) reg.VecVirtual {
	r := p.vec()
	if p.vnni {
		p.VMOVDQU32(m, r)
	} else {
		p.VMOVDQU(m, r)
	}
	return r
}

// quarter loads 16 bytes at off of rows i, i+4, ...
func (p *pack) quarter(i, off int) reg.VecVirtual {
	r := p.vec()
	if !p.vnni {
		p.VBROADCASTI128(p.row(i, off), r)
		p.VINSERTI128(operand.U8(1), p.row(i+4, off), r, r)
		return r
	}
	p.VBROADCASTI32X4(p.row(i, off), r)
	for l := 1; l < 4; l++ {
		p.VINSERTI32X4(operand.U8(l), p.row(i+4*l, off), r, r)
	}
	return r
}

func (p *pack) and(a operand.Op, b, d reg.VecVirtual) {
	if p.vnni {
		p.VPANDD(a, b, d)
	} else {
		p.VPAND(a, b, d)
	}
}

func (p *pack) or(a operand.Op, b, d reg.VecVirtual) {
	if p.vnni {
		p.VPORD(a, b, d)
	} else {
		p.VPOR(a, b, d)
	}
}

func (p *pack) put(r reg.VecVirtual, slot int) {
	m := at(p.tile, slot*p.width())
	if p.vnni {
		p.VMOVDQU32(r, m)
	} else {
		p.VMOVDQU(r, m)
	}
}

// nibbles splits r into the low and the high halves of its bytes.
func (p *pack) nibbles(r reg.VecVirtual) (lo, hi reg.VecVirtual) {
	hi = p.vec()
	p.VPSRLW(operand.U8(4), r, hi)
	p.and(p.low, r, r)
	p.and(p.low, hi, hi)
	return r, hi
}

// transpose turns four registers of four dwords a row into four of one dword
// each, and puts them into the tile.
func (p *pack) transpose(r [4]reg.VecVirtual, slot func(k int) int) {
	var a, b [2]reg.VecVirtual
	for i := range a {
		a[i], b[i] = p.vec(), p.vec()
		p.VPUNPCKLDQ(r[2*i+1], r[2*i], a[i])
		p.VPUNPCKHDQ(r[2*i+1], r[2*i], b[i])
	}
	p.prefetch(p.perRow)
	for i, v := range [][2]reg.VecVirtual{a, b} {
		t := p.vec()
		p.VPUNPCKLQDQ(v[1], v[0], t)
		p.put(t, slot(2*i))
		p.VPUNPCKHQDQ(v[1], v[0], t)
		p.put(t, slot(2*i+1))
	}
}

// from returns the slots from n on.
func from(n int) func(int) int { return func(k int) int { return n + k } }

// pack writes a kernel. slots is the registers of a tile's block.
func (g *gen) pack(name, doc string, wBytes, slots int, setup func(*pack) func()) {
	doc += "\nWith its gemm kernel it does what dot" + name + " does in Go."
	name = "pack" + name + g.suffix()
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.Doc(lines(name + " " + doc)...)
	g.SignatureExpr("func(tile, w *byte, rowBytes, blocks, add int)")
	w, rb, blocks := g.GP64(), g.GP64(), g.GP64()
	p := &pack{gen: g, tile: g.GP64()}
	g.Load(g.Param("tile"), p.tile)
	g.Load(g.Param("w"), w)
	g.Load(g.Param("rowBytes"), rb)
	g.Load(g.Param("blocks"), blocks)
	s3 := g.GP64()
	g.LEAQ(operand.Mem{Base: rb, Index: rb, Scale: 2}, s3)
	p.s, p.s3 = rb, s3
	for i := range g.width() / 16 {
		b := g.GP64()
		if i == 0 {
			g.MOVQ(w, b)
		} else {
			g.LEAQ(operand.Mem{Base: p.base[i-1], Index: rb, Scale: 4}, b)
		}
		p.base = append(p.base, b)
	}
	n, x := g.GP64(), g.XMM()
	g.Load(g.Param("add"), n)
	p.add, p.minus = g.vec(), g.vec()
	g.VMOVQ(n, x)
	g.VPBROADCASTB(x, p.add)
	g.NEGQ(n)
	g.VMOVQ(n, x)
	g.VPBROADCASTW(x, p.minus)
	p.low = p.constant(0x0f)
	body := setup(p)
	// As in the gemv kernels the next rows are asked for in the order of their
	// addresses.
	ahead, rows := g.GP64(), g.width()/4
	g.MOVQ(rb, ahead)
	g.SHLQ(operand.U8(bits.Len(uint(rows))-1), ahead)
	g.ADDQ(w, ahead)
	g.pending, g.perRow = nil, 0
	for o := 0; o < rows*wBytes; o += 64 {
		g.pending = append(g.pending, at(ahead, o))
	}
	g.perRow = (len(g.pending)*4 + slots - 1) / slots // a transposition fills four slots
	loop := g.label("block")
	g.Label(loop)
	body()
	g.prefetch(len(g.pending))
	g.ADDQ(operand.I32(rows*wBytes), ahead)
	for _, b := range p.base {
		g.ADDQ(operand.I32(wBytes), b)
	}
	g.ADDQ(operand.I32(slots*g.width()), p.tile)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef(loop))
	g.VZEROUPPER()
	g.RET()
}

// both puts what f makes of each eight rows into a slot.
func (p *pack) both(slot int, f func(*eight) reg.VecVirtual) {
	for k := range p.width() / 32 {
		p.VMOVUPS(f(p.group(k)), at(p.tile, slot*p.width()+32*k))
	}
}

func (p *pack) halves(slot, off int) {
	p.both(slot, func(e *eight) reg.VecVirtual { return e.halves(off) })
}

// halfPairs puts the two f16 at off into two slots.
func (p *pack) halfPairs(slot, off int) {
	for k := range p.width() / 32 {
		a, b := p.group(k).halfPairs(off)
		p.VMOVUPS(a, at(p.tile, slot*p.width()+32*k))
		p.VMOVUPS(b, at(p.tile, (slot+1)*p.width()+32*k))
	}
}

// codes puts the 32 codes whose 16 bytes are at off into eight slots, after
// change.
func (p *pack) codes(slot, off int, change func(i int, lo, hi reg.VecVirtual)) {
	var lo, hi [4]reg.VecVirtual
	for i := range lo {
		lo[i], hi[i] = p.nibbles(p.quarter(i, off))
		if change != nil {
			change(i, lo[i], hi[i])
		}
		p.VPADDB(p.add, lo[i], lo[i])
		p.VPADDB(p.add, hi[i], hi[i])
	}
	p.transpose(lo, from(slot))
	p.transpose(hi, from(slot+4))
}

// lookUp is a change of codes by a table.
func (p *pack) lookUp(t [16]int) func(i int, lo, hi reg.VecVirtual) {
	table := p.load(p.constant(p.entries(t, 0)...))
	return func(_ int, lo, hi reg.VecVirtual) {
		p.VPSHUFB(lo, table, lo)
		p.VPSHUFB(hi, table, hi)
	}
}

// fifths is a change of codes by fifth bits, which stand at off.
func (p *pack) fifths(off int) func(i int, lo, hi reg.VecVirtual) {
	bit := p.constant(1, 2, 4, 8, 16, 32, 64, 128)
	ten := p.constant(0x10)
	var spread [2]operand.Mem
	for k := range spread {
		b := make([]byte, 16)
		for j := range b {
			b[j] = byte(2*k + j/8)
		}
		spread[k] = p.constant(b...)
	}
	return func(i int, lo, hi reg.VecVirtual) {
		h, t := p.quarter(i, off), p.vec()
		for k, q := range []reg.VecVirtual{lo, hi} {
			p.VPSHUFB(spread[k], h, t)
			if p.vnni {
				set := p.K()
				p.VPTESTMB(bit, t, set)
				p.VPADDB(ten, q, set, q)
				continue
			}
			p.VPAND(bit, t, t)
			p.VPCMPEQB(bit, t, t)
			p.VPAND(ten, t, t)
			p.VPOR(t, q, q)
		}
	}
}

func (g *gen) pack32() {
	// A tile's block: scales, then eight steps.
	g.pack("Q8_0", "repacks Q8_0.", 34, 9, func(p *pack) func() {
		return func() {
			p.halves(0, 0)
			for h := range 2 {
				var r [4]reg.VecVirtual
				for i := range r {
					r[i] = p.quarter(i, 2+16*h)
					p.VPADDB(p.add, r[i], r[i])
				}
				p.transpose(r, from(1+4*h))
			}
		}
	})
	g.pack("Q4_0", "repacks Q4_0.", 18, 9, func(p *pack) func() {
		return func() {
			p.halves(0, 0)
			p.codes(1, 2, nil)
		}
	})
	g.pack("Q5_0", "repacks Q5_0.", 22, 9, func(p *pack) func() {
		fifths := p.fifths(2)
		return func() {
			p.halves(0, 0)
			p.codes(1, 6, fifths)
		}
	})
	g.pack("IQ4NL", "repacks IQ4_NL.", 18, 9, func(p *pack) func() {
		look := p.lookUp(nl4)
		return func() {
			p.halves(0, 0)
			p.codes(1, 2, look)
		}
	})
	g.pack("MXFP4", "repacks MXFP4.", 17, 9, func(p *pack) func() {
		look, pow := p.lookUp(e2m1), p.powers()
		return func() {
			p.both(0, func(e *eight) reg.VecVirtual { return pow.gather(e, 0) })
			p.codes(1, 1, look)
		}
	})
	// With minima: scales, minima, then eight steps.
	g.pack("Q4_1", "repacks Q4_1.", 20, 10, func(p *pack) func() {
		return func() {
			p.halfPairs(0, 0)
			p.codes(2, 4, nil)
		}
	})
	g.pack("Q5_1", "repacks Q5_1.", 24, 10, func(p *pack) func() {
		fifths := p.fifths(4)
		return func() {
			p.halfPairs(0, 0)
			p.codes(2, 8, fifths)
		}
	})
}
