package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A gemm kernel multiplies a tile, rows that have been repacked, with several
// vectors at once. The elements of its registers are the tile's rows, so that no
// sum across elements is ever needed. Step k of a block holds entries 4k to 4k+3 of
// every row, and meets the same four entries of a vector in all elements.
type gemm struct {
	*gen
	tokens int
	tile   reg.GPVirtual
	x      []reg.GPVirtual // the vectors
	off    reg.GPVirtual   // bytes into them
	zero   reg.VecVirtual  // AVX-512
}

// width is the bytes of a register: four for each row of a tile.
func (g *gen) width() int {
	if g.vnni {
		return 64
	}
	return 32
}

func (g *gen) vec() reg.VecVirtual {
	if g.vnni {
		return g.ZMM()
	}
	return g.YMM()
}

// at is the memory off bytes into vector t's current block.
func (m *gemm) at(t, off int) operand.Mem {
	return operand.Mem{Base: m.x[t], Index: m.off, Scale: 1, Disp: off}
}

// in is row register i of the tile's current block.
func (m *gemm) in(i int) operand.Mem { return at(m.tile, i*m.width()) }

// each makes a register for every token.
func (m *gemm) each() []reg.VecVirtual {
	r := make([]reg.VecVirtual, m.tokens)
	for t := range r {
		r[t] = m.vec()
	}
	return r
}

// bcast fills a register with the dword off bytes into vector t's block.
func (m *gemm) bcast(t, off int) reg.VecVirtual {
	r := m.vec()
	m.VPBROADCASTD(m.at(t, off), r)
	return r
}

// bcastf does so for the type's sake of float instructions.
func (m *gemm) bcastf(t, off int) reg.VecVirtual {
	r := m.vec()
	m.VBROADCASTSS(m.at(t, off), r)
	return r
}

// gemm writes a kernel. wBlock is the registers of a tile's block, xBlock the
// bytes of a vector's. body emits the work of one block: it adds to acc.
func (g *gen) gemm(name, doc string, wBlock, xBlock int, body func(m *gemm, acc []reg.VecVirtual)) {
	tokens := g.tokens
	name = "gemm" + name + g.suffix()
	if g.vnni && tokens == 4 {
		name += "x4"
	}
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.Doc(lines(fmt.Sprintf("%s %s It takes %d vectors.%s", name, doc, tokens, twins))...)
	g.SignatureExpr("func(dst *float32, stride int, tile *byte, blocks int, x *[8]*byte)")
	m := &gemm{gen: g, tokens: tokens, tile: g.GP64(), off: g.GP64()}
	blocks, ptrs := g.GP64(), g.GP64()
	g.Load(g.Param("tile"), m.tile)
	g.Load(g.Param("blocks"), blocks)
	g.Load(g.Param("x"), ptrs)
	for t := range tokens {
		p := g.GP64()
		g.MOVQ(at(ptrs, 8*t), p)
		m.x = append(m.x, p)
	}
	g.XORQ(m.off, m.off)
	if g.vnni {
		m.zero = g.vec()
		g.VPXORD(m.zero, m.zero, m.zero)
	}
	acc := m.each()
	for _, a := range acc {
		m.clear(a)
	}
	loop := g.label("block")
	g.Label(loop)
	body(m, acc)
	g.ADDQ(operand.I32(wBlock*g.width()), m.tile)
	g.ADDQ(operand.I32(xBlock), m.off)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef(loop))
	dst, stride := g.GP64(), g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("stride"), stride)
	for t := range tokens {
		g.VMOVUPS(acc[t], at(dst, 0))
		if t < tokens-1 {
			g.LEAQ(operand.Mem{Base: dst, Index: stride, Scale: 4}, dst)
		}
	}
	g.VZEROUPPER()
	g.RET()
}

// clear sets a register to 0.
func (m *gemm) clear(r reg.VecVirtual) {
	if m.vnni {
		// The library does not know that xor of a register with itself does not
		// depend on it; moves cost nothing either.
		m.VMOVDQA32(m.zero, r)
	} else {
		m.VPXOR(r, r, r)
	}
}

// dots adds to sums, or starts them if fresh, the products of steps n tile
// registers from in(first) on with the vectors' codes from byte code on. limit
// is the largest weight, which is unsigned.
func (m *gemm) dots(first, n, code, limit int, fresh bool, finish func(t int, p reg.VecVirtual, fresh bool)) {
	if limit < 0 { // signed weights
		m.signedDots(first, n, code, fresh, finish)
		return
	}
	// As many steps as an int16 can hold are added before they are widened.
	span := n
	for span*2*127*limit > 32767 {
		span /= 2
	}
	p := make([]reg.VecVirtual, m.tokens)
	for s := range n {
		w := m.vec()
		m.VMOVDQU(m.in(first+s), w)
		for t := range m.tokens {
			x := m.bcast(t, code+4*s)
			if s%span == 0 {
				p[t] = m.vec()
				m.VPMADDUBSW(x, w, p[t])
				continue
			}
			m.VPMADDUBSW(x, w, x)
			m.VPADDW(x, p[t], p[t])
		}
		if s%span == span-1 {
			for t := range m.tokens {
				finish(t, p[t], fresh && s < span)
			}
		}
	}
}

// signedDots is dots for signed weights; two products are all that fit.
func (m *gemm) signedDots(first, n, code int, fresh bool, finish func(t int, p reg.VecVirtual, fresh bool)) {
	for s := range n {
		w, a := m.vec(), m.vec()
		m.VMOVDQU(m.in(first+s), w)
		m.VPABSB(w, a)
		for t := range m.tokens {
			x := m.bcast(t, code+4*s)
			m.VPSIGNB(w, x, x)
			m.VPMADDUBSW(x, a, x)
			finish(t, x, fresh && s == 0)
		}
	}
}

// dotsVNNI is dots for AVX-512: it adds to sums.
func (m *gemm) dotsVNNI(first, n, code int, sums []reg.VecVirtual) {
	for s := range n {
		w := m.vec()
		m.VMOVDQU32(m.in(first+s), w)
		for t := range m.tokens {
			m.VPDPBUSD_BCST(m.at(t, code+4*s), w, sums[t])
		}
	}
}

// add32 adds float(sum) * (w * x) to acc: a block of 32 with scales w.
func (m *gemm) add32(t int, sum reg.VecVirtual, w operand.Op, acc reg.VecVirtual) {
	m.VCVTDQ2PS(sum, sum)
	x := m.bcastf(t, block8Scale)
	m.VMULPS(w, x, x)
	m.VMULPS(x, sum, sum)
	m.VADDPS(sum, acc, acc)
}

// gemm32 is for blocks of 32 whose weights have 2^bits added, or nothing if bits
// is 0. A tile's block is a register of scales and eight steps.
func (g *gen) gemm32(name string, bits, limit int) {
	doc := "is for blocks of 32 with signed weights."
	if bits > 0 {
		doc = fmt.Sprintf("is for blocks of 32 with %d added to the weights.", 1<<bits)
	}
	g.gemm(name, doc, 9, block8Bytes, func(m *gemm, acc []reg.VecVirtual) {
		sums := m.each()
		if g.vnni {
			for t := range sums {
				m.VPSLLD_BCST(operand.U8(bits), m.at(t, block8NSum), sums[t])
			}
			m.dotsVNNI(1, 8, 0, sums)
		} else {
			ones := m.bytes32(words(1)...)
			m.dots(1, 8, 0, limit, true, func(t int, p reg.VecVirtual, fresh bool) {
				if fresh {
					m.VPMADDWD(ones, p, sums[t])
					return
				}
				m.VPMADDWD(ones, p, p)
				m.VPADDD(p, sums[t], sums[t])
			})
			for t := range sums {
				if bits == 0 {
					break
				}
				n := m.bcast(t, block8NSum)
				m.VPSLLD(operand.U8(bits), n, n)
				m.VPADDD(n, sums[t], sums[t])
			}
		}
		for t := range sums {
			m.add32(t, sums[t], m.in(0), acc[t])
		}
	})
}

// gemmMin is for blocks of 32 that have a minimum: a tile's block is a register
// of scales, one of minima, and eight steps.
func (g *gen) gemmMin() {
	g.gemm("Min", "is for blocks of 32 with minima.", 10, block8Bytes, func(m *gemm, acc []reg.VecVirtual) {
		sums := m.each()
		if g.vnni {
			for t := range sums {
				m.clear(sums[t])
			}
			m.dotsVNNI(2, 8, 0, sums)
		} else {
			ones := m.bytes32(words(1)...)
			m.dots(2, 8, 0, 31, true, func(t int, p reg.VecVirtual, fresh bool) {
				if fresh {
					m.VPMADDWD(ones, p, sums[t])
					return
				}
				m.VPMADDWD(ones, p, p)
				m.VPADDD(p, sums[t], sums[t])
			})
		}
		for t := range sums {
			m.VCVTDQ2PS(sums[t], sums[t])
			x := m.bcastf(t, block8Scale)
			m.VMULPS(m.in(0), x, x)
			m.VMULPS(x, sums[t], sums[t])
			s := m.bcastf(t, block8S)
			m.VMULPS(m.in(1), s, s)
			m.VADDPS(s, sums[t], sums[t])
			m.VADDPS(sums[t], acc[t], acc[t])
		}
	})
}

// superTile is the layout of a tile's superblock, in registers: the scales d;
// with minima, their factors; pairs of int16 that weigh the vector's sums;
// then each group's scales, as pairs of the same int16, and its steps.
type superTile struct {
	group int  // entries of a group: 16 or 32
	mins  bool // the pairs are minima, with their own factor; else a correction
}

func (s superTile) pairs() int { return 128 / s.group }
func (s superTile) first() int { // the first pair
	if s.mins {
		return 2
	}
	return 1
}
func (s superTile) scale(j int) int { return s.first() + s.pairs() + j*(1+s.group/4) }
func (s superTile) size() int       { return s.scale(256 / s.group) }

// sums is where the vector has the sums of such groups.
func (s superTile) sums() int {
	if s.group == 16 {
		return blockKSum16
	}
	return blockKSum32
}

// gemmK is for superblocks.
func (g *gen) gemmK(name, doc string, l superTile, limit int) {
	g.gemm(name, doc, l.size(), blockKBytes, func(m *gemm, acc []reg.VecVirtual) {
		sums := m.each()
		if g.vnni {
			for t := range sums {
				m.clear(sums[t])
			}
		}
		for j := range 256 / l.group {
			if g.vnni {
				dots := m.each()
				for t := range dots {
					m.clear(dots[t])
				}
				m.dotsVNNI(l.scale(j)+1, l.group/4, l.group*j, dots)
				scale := m.vec()
				m.VPSRAD(operand.U8(16), m.in(l.scale(j)), scale)
				for t := range dots {
					m.VPMULLD(scale, dots[t], dots[t])
					m.VPADDD(dots[t], sums[t], sums[t])
				}
				continue
			}
			m.dots(l.scale(j)+1, l.group/4, l.group*j, limit, j == 0, func(t int, p reg.VecVirtual, fresh bool) {
				if fresh {
					m.VPMADDWD(m.in(l.scale(j)), p, sums[t])
					return
				}
				m.VPMADDWD(m.in(l.scale(j)), p, p)
				m.VPADDD(p, sums[t], sums[t])
			})
		}
		for t := range sums {
			into := sums[t]
			if l.mins {
				into = m.vec()
				m.clear(into)
			}
			for k := range l.pairs() {
				if g.vnni {
					p := m.vec()
					m.VMOVDQU32(m.in(l.first()+k), p)
					m.VPDPWSSD_BCST(m.at(t, l.sums()+4*k), p, into)
					continue
				}
				s := m.bcast(t, l.sums()+4*k)
				m.VPMADDWD(m.in(l.first()+k), s, s)
				m.VPADDD(s, into, into)
			}
			x := m.bcastf(t, blockKScale)
			d := m.vec()
			m.VMULPS(m.in(0), x, d)
			m.VCVTDQ2PS(sums[t], sums[t])
			m.VMULPS(d, sums[t], sums[t])
			if l.mins {
				m.VMULPS(m.in(1), x, d)
				m.VCVTDQ2PS(into, into)
				m.VMULPS(d, into, into)
				m.VSUBPS(into, sums[t], sums[t])
			}
			m.VADDPS(sums[t], acc[t], acc[t])
		}
	})
}

// gemms writes the kernels, for as many vectors as the registers have room for;
// with AVX-512 also for half as many, since the last vectors of an expert are
// seldom a full set.
func (g *gen) gemms() {
	g.tokens = 4
	if !g.vnni {
		g.gemm32("32", 4, 31)
		g.gemm32("Signed", 0, -1)
		g.gemmMin()
		g.gemmK("K32Min", "is for superblocks with scales and minima of groups of 32.", superTile{32, true}, 31)
		g.gemmK("K16Min", "is for superblocks with scales and minima of groups of 16.", superTile{16, true}, 3)
		g.gemmK("K16", "is for superblocks with scales of groups of 16.", superTile{16, false}, 63)
		g.gemmK("K32Signed", "is for superblocks with scales of groups of 32 and signed codes.", superTile{32, false}, -1)
		g.gemmK("K16Wide", "is for superblocks with scales of groups of 16 and codes up to 126.", superTile{16, false}, 126)
		return
	}
	for _, g.tokens = range []int{8, 4} {
		g.gemm32("32", 7, 255)
		g.gemmMin()
		g.gemmK("K32Min", "is for superblocks with scales and minima of groups of 32.", superTile{32, true}, 255)
		g.gemmK("K16Min", "is for superblocks with scales and minima of groups of 16.", superTile{16, true}, 255)
		g.gemmK("K32", "is for superblocks with scales of groups of 32.", superTile{32, false}, 255)
		g.gemmK("K16", "is for superblocks with scales of groups of 16.", superTile{16, false}, 255)
	}
}
