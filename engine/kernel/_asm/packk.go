package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// shuffled returns r with the bytes of each 128-bit part reordered.
func (p *pack) shuffled(r reg.VecVirtual, order ...byte) reg.VecVirtual {
	d := p.vec()
	p.VPSHUFB(p.constant(order...), r, d)
	return d
}

// doubled returns bytes first to first+3 of each 128-bit part, extended to words, each
// of them twice.
func (p *pack) doubled(r reg.VecVirtual, first byte, signed bool) reg.VecVirtual {
	var order []byte
	for j := first; j < first+4; j++ {
		if signed {
			order = append(order, 0x80, j, 0x80, j)
		} else {
			order = append(order, j, 0x80, j, 0x80)
		}
	}
	d := p.shuffled(r, order...)
	if signed {
		p.VPSRAW(operand.U8(8), d, d)
	}
	return d
}

// scaleMins puts the scales and minima of Q4_K and Q5_K.
func (p *pack) scaleMins(l superTile) {
	z := byte(0x80)
	var s [4]reg.VecVirtual
	for i := range s {
		a := p.quarter(i, 0)
		b := p.shuffled(a, z, z, z, z, 4, 5, 6, 7, z, z, z, z, 8, 9, 10, 11)
		a = p.shuffled(a, 4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)
		p.VPSRLVD(p.constant(dwords(0, 0, 0, 4)...), a, a)
		p.and(p.constant(dwords(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f)...), a, a)
		p.VPSRLD(operand.U8(2), b, b)
		p.and(p.constant(0x30), b, b)
		p.or(b, a, a)
		s[i] = a
	}
	for k := range 2 {
		var r [4]reg.VecVirtual
		for i := range r {
			r[i] = p.doubled(s[i], byte(4*k), false)
		}
		p.transpose(r, func(j int) int { return l.scale(4*k + j) })
	}
	for i := range s {
		s[i] = p.shuffled(s[i], 8, z, 9, z, 10, z, 11, z, 12, z, 13, z, 14, z, 15, z)
	}
	p.transpose(s, from(l.first()))
}

// chunk puts 32 entries of each of two groups of 32 (or of four groups of 16):
// the low halves of 32 bytes at off belong to entries e on, the high ones to
// entries e+32 on. change may add to the codes of 16 entries from e on.
func (p *pack) chunk(l superTile, off, e int, change func(i, e int, q reg.VecVirtual)) {
	for h := range 2 {
		var lo, hi [4]reg.VecVirtual
		for i := range lo {
			lo[i], hi[i] = p.nibbles(p.quarter(i, off+16*h))
			if change != nil {
				change(i, e+16*h, lo[i])
				change(i, e+32+16*h, hi[i])
			}
		}
		p.transpose(lo, p.steps(l, e+16*h))
		p.transpose(hi, p.steps(l, e+32+16*h))
	}
}

// steps returns the slots of the steps from entry e on.
func (p *pack) steps(l superTile, e int) func(int) int {
	return from(l.scale(e/l.group) + 1 + e%l.group/4)
}

// shift moves the bits of every byte of r so that bit from comes to bit to; the
// caller masks.
func (p *pack) shift(r reg.VecVirtual, from, to int) reg.VecVirtual {
	d := p.vec()
	switch {
	case from < to:
		p.VPSLLW(operand.U8(to-from), r, d)
	case from > to:
		p.VPSRLW(operand.U8(from-to), r, d)
	default:
		return r
	}
	return d
}

// addBits ors bits of the 16 bytes at off of row i's part of the register into q.
func (p *pack) addBits(i, off, from, to int, mask byte, q reg.VecVirtual) {
	h := p.shift(p.quarter(i, off), from, to)
	t := p.vec()
	p.and(p.constant(mask), h, t)
	p.or(t, q, q)
}

func (g *gen) packK() {
	k32 := superTile{32, true}
	g.pack("Q4K", "repacks Q4_K.", 144, k32.size(), func(p *pack) func() {
		return func() {
			p.halfPairs(0, 0)
			p.scaleMins(k32)
			for a := range 4 {
				p.chunk(k32, 16+32*a, 64*a, nil)
			}
		}
	})
	g.pack("Q5K", "repacks Q5_K.", 176, k32.size(), func(p *pack) func() {
		return func() {
			p.halfPairs(0, 0)
			p.scaleMins(k32)
			for a := range 4 {
				p.chunk(k32, 48+32*a, 64*a, func(i, e int, q reg.VecVirtual) {
					p.addBits(i, 16+e%32, e/32, 4, 0x10, q)
				})
			}
		}
	})
	k16m, k16 := superTile{16, true}, superTile{16, false}
	g.pack("Q2K", "repacks Q2_K.", 84, k16m.size(), func(p *pack) func() {
		return func() {
			p.halfPairs(0, 80)
			p.scales16(k16m, func(i int) (scales, mins reg.VecVirtual) { return p.nibbles(p.quarter(i, 0)) })
			p.twoBits(k16m, 16, nil)
		}
	})
	g.pack("Q3K", "repacks Q3_K.", 110, k16.size(), func(p *pack) func() {
		return func() {
			p.halves(0, 108)
			p.scales16(k16, p.scalesQ3K)
			p.twoBits(k16, 32, func(i, e int, q reg.VecVirtual) {
				p.addBits(i, e%32, e/32, 2, 4, q)
			})
		}
	})
	g.pack("Q6K", "repacks Q6_K.", 210, k16.size(), func(p *pack) func() {
		return func() {
			p.halves(0, 208)
			p.scales16(k16, func(i int) (scales, none reg.VecVirtual) { return p.quarter(i, 192), nil })
			for a := range 2 {
				for b := range 2 {
					// Bytes 64a+32b on hold entries 128a+32b in their low halves and
					// 64 further in the high ones.
					for h := range 2 {
						var lo, hi [4]reg.VecVirtual
						for i := range lo {
							lo[i], hi[i] = p.nibbles(p.quarter(i, 64*a+32*b+16*h))
							p.addBits(i, 128+32*a+16*h, 2*b, 4, 0x30, lo[i])
							p.addBits(i, 128+32*a+16*h, 4+2*b, 4, 0x30, hi[i])
						}
						p.transpose(lo, p.steps(k16, 128*a+32*b+16*h))
						p.transpose(hi, p.steps(k16, 128*a+64+32*b+16*h))
					}
				}
			}
		}
	})
	g.pack("Unpacked", "repacks quant.Unpacked.", unpackedBytes, k16.size(), func(p *pack) func() {
		return func() {
			p.both(0, func(e *eight) reg.VecVirtual { return e.floats(unpackedD) })
			for k := range 4 {
				var r [4]reg.VecVirtual
				for i := range r {
					var order []byte
					for j := byte(k % 2 * 8); j < byte(k%2*8+8); j += 2 {
						order = append(order, j, j+1, j, j+1)
					}
					r[i] = p.shuffled(p.quarter(i, unpackedScales+k/2*16), order...)
				}
				p.transpose(r, func(j int) int { return k16.scale(4*k + j) })
			}
			for k := range 2 {
				var r [4]reg.VecVirtual
				for i := range r {
					r[i] = p.quarter(i, unpackedScales+16*k)
					p.VPMULLW(p.minus, r[i], r[i])
				}
				p.transpose(r, from(k16.first()+4*k))
			}
			for e := 0; e < 256; e += 16 {
				var r [4]reg.VecVirtual
				for i := range r {
					r[i] = p.quarter(i, e)
					p.VPADDB(p.add, r[i], r[i])
				}
				p.transpose(r, p.steps(k16, e))
			}
		}
	})
	k32c := superTile{32, false}
	g.pack("IQ4XS", "repacks IQ4_XS.", 136, k32c.size(), func(p *pack) func() {
		table := p.load(p.constant(p.entries(nl4, 0)...))
		return func() {
			p.halves(0, 0)
			p.scalesIQ4XS(k32c)
			for j := range 8 {
				var lo, hi [4]reg.VecVirtual
				for i := range lo {
					lo[i], hi[i] = p.nibbles(p.quarter(i, 8+16*j))
					p.VPSHUFB(lo[i], table, lo[i])
					p.VPSHUFB(hi[i], table, hi[i])
					p.VPADDB(p.add, lo[i], lo[i])
					p.VPADDB(p.add, hi[i], hi[i])
				}
				p.transpose(lo, p.steps(k32c, 32*j))
				p.transpose(hi, p.steps(k32c, 32*j+16))
			}
		}
	})
}

// twoBits puts codes of 2 bits, 64 bytes from off on, after change.
func (p *pack) twoBits(l superTile, off int, change func(i, e int, q reg.VecVirtual)) {
	for a := range 2 {
		for b := range 4 {
			for h := range 2 {
				e := 128*a + 32*b + 16*h
				var q [4]reg.VecVirtual
				for i := range q {
					r := p.shift(p.quarter(i, off+32*a+16*h), 2*b, 0)
					q[i] = p.vec()
					p.and(p.constant(3), r, q[i])
					if change != nil {
						change(i, e, q[i])
					}
				}
				p.transpose(q, p.steps(l, e))
			}
		}
	}
}

// scales16 puts the scales of sixteen groups, and the pairs that weigh the
// vector's sums: the minima where there are any, else the scales times minus
// what the type's codes have too much. load returns the scales of rows i, i+4,
// ... as bytes, and the minima.
func (p *pack) scales16(l superTile, load func(i int) (scales, mins reg.VecVirtual)) {
	signed := !l.mins
	for k := range 4 {
		var r [4]reg.VecVirtual
		for i := range r {
			s, _ := load(i)
			r[i] = p.doubled(s, byte(4*k), signed)
		}
		p.transpose(r, func(j int) int { return l.scale(4*k + j) })
	}
	for k := range 2 {
		var r [4]reg.VecVirtual
		for i := range r {
			s, m := load(i)
			if l.mins {
				s = m
			}
			var order []byte
			for j := byte(8 * k); j < byte(8*k+8); j++ {
				if signed {
					order = append(order, 0x80, j)
				} else {
					order = append(order, j, 0x80)
				}
			}
			r[i] = p.shuffled(s, order...)
			if signed {
				p.VPSRAW(operand.U8(8), r[i], r[i])
				p.VPMULLW(p.minus, r[i], r[i])
			}
		}
		p.transpose(r, from(l.first()+4*k))
	}
}

// scalesQ3K unpacks the scales of rows i, i+4, ...
func (p *pack) scalesQ3K(i int) (scales, none reg.VecVirtual) {
	a := p.quarter(i, 94) // the scales are bytes 2 to 13 of what is loaded
	b := p.shuffled(a, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13)
	a = p.shuffled(a, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9)
	p.VPSRLVD(p.constant(dwords(0, 0, 4, 4)...), a, a)
	p.and(p.low, a, a)
	p.VPSRLVD(p.constant(dwords(0, 2, 4, 6)...), b, b)
	p.and(p.constant(3), b, b)
	p.VPSLLD(operand.U8(4), b, b)
	p.or(b, a, a)
	p.VPSUBB(p.constant(32), a, a)
	return a, nil
}

// scalesIQ4XS puts the scales, and the corrections for codes plus 128.
func (p *pack) scalesIQ4XS(l superTile) {
	z := byte(0x80)
	var first [4]reg.VecVirtual
	for k := range 2 {
		var r, c [4]reg.VecVirtual
		for i := range r {
			a := p.quarter(i, 0) // d, 2 bytes of high bits, 4 bytes of nibbles
			b := p.shuffled(a, 2, 3, z, z, 2, 3, z, z, 2, 3, z, z, 2, 3, z, z)
			n := byte(4 + 2*k)
			a = p.shuffled(a, n, z, z, z, n, z, z, z, n+1, z, z, z, n+1, z, z, z)
			p.VPSRLVD(p.constant(dwords(0, 4, 0, 4)...), a, a)
			p.and(p.constant(dwords(15)...), a, a)
			h := uint32(8 * k)
			p.VPSRLVD(p.constant(dwords(h, h+2, h+4, h+6)...), b, b)
			p.and(p.constant(dwords(3)...), b, b)
			p.VPSLLD(operand.U8(4), b, b)
			p.or(b, a, a)
			p.VPSUBD(p.constant(dwords(32)...), a, a)
			r[i] = p.shuffled(a, 0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13)
			c[i] = a
		}
		p.transpose(r, func(j int) int { return l.scale(4*k + j) })
		if k == 0 {
			first = c
			continue
		}
		for i := range c {
			p.VPACKSSDW(c[i], first[i], c[i])
			p.VPMULLW(p.minus, c[i], c[i])
		}
		p.transpose(c, from(l.first()))
	}
}
