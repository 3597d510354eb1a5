package main

// gemvK writes a kernel for superblocks. unpack brings row i's scales as int32
// (the scale of group j in element j%4 of scales[j/4]); it may start sum, or put
// into mins the products of minima and the vector's sums. codes brings the
// codes of 16 entries from e on of row i.
func (a *arm) gemvK(name string, wBytes, group int, mins bool, setup func(*armGemv) armSuper) {
	a.gemv(name, "multiplies rows of "+name+" with a Q8_K vector.", wBytes, blockKBytes, func(g *armGemv) func() {
		s := setup(g)
		return func() {
			sums, m := g.gets(4), []v(nil)
			for i, sum := range sums {
				g.movi(sum, 0)
				scales, min := s.unpack(i, sum)
				if mins {
					m = append(m, min)
				}
				var dot v
				for e := 0; e < 256; {
					for k, q := range s.codes(i, e) {
						x := g.get()
						g.ldq(x, rX, e+16*k)
						first := (e+16*k)%group == 0
						if first {
							dot = g.get()
						}
						g.dot16(dot, q, x, first)
						g.put(q, x)
						if (e+16*k+16)%group == 0 {
							j := (e + 16*k) / group
							g.mlaE(sum, dot, scales[j/4], j%4)
							g.put(dot)
						}
					}
					e += 16 * s.step
				}
				g.put(scales...)
			}
			sum, x := g.across(sums), g.get()
			g.ldq(x, rX, blockKScale)
			if !mins {
				d := v(0)
				if s.d != nil {
					d = s.d()
				} else {
					d = g.halves(s.scale)
				}
				g.accumulate(sum, d, x, 0)
				g.put(x)
				return
			}
			min := g.across(m)
			d, dmin := g.halfPairs(s.scale)
			g.fmulE(d, d, x, 0)
			g.un(scvtf, sum, sum)
			g.do(fmul, sum, sum, d)
			g.fmulE(dmin, dmin, x, 0)
			g.un(scvtf, min, min)
			g.do(fmul, min, min, dmin)
			g.do(fsub, sum, sum, min)
			g.do(fadd, g.acc, g.acc, sum)
			g.put(sum, min, d, dmin, x)
		}
	})
}

// armSuper is what differs between the superblock types.
type armSuper struct {
	scale  int                                     // where the f16 d stands
	d      func() v                                // brings it, if it is not what stands there
	unpack func(i int, sum v) (scales []v, mins v) // see gemvK
	codes  func(i, e int) []v                      // registers of 16 codes each
	step   int                                     // how many
}

// extend turns 4*n bytes of r, from the lowest on, into int32. It gives r back.
func (a *arm) extend(r v, n int, signed bool) (out []v) {
	lo, hi := uxtlB, uxtl2B
	if signed {
		lo, hi = sxtlB, sxtl2B
	}
	for k := 0; k < n; k += 2 {
		h := a.get()
		if k == 0 {
			a.un(lo, h, r)
		} else {
			a.un(hi, h, r)
		}
		x, y := a.get(), a.get()
		a.un(sxtlH, x, h)
		a.un(sxtl2H, y, h)
		a.put(h)
		out = append(out, x, y)
	}
	a.put(r)
	return out
}

// weigh16 multiplies 16 bytes of r, as int16, with the vector's sums of 16.
func (a *arm) weigh16(r v, signed bool) v {
	d, h, s := a.get(), a.get(), a.get()
	ext := []op2{uxtlB, uxtl2B}
	if signed {
		ext = []op2{sxtlB, sxtl2B}
	}
	for k, o := range ext {
		a.un(o, h, r)
		a.ldq(s, rX, blockKSum16+16*k)
		if k == 0 {
			a.do(smullH, d, h, s)
		} else {
			a.do(smlalH, d, h, s)
		}
		a.do(smlal2H, d, h, s)
	}
	a.put(h, s)
	return d
}

// scaleMins unpacks the scales and minima of Q4_K and Q5_K.
func (a *arm) scaleMins() func(i int, sum v) ([]v, v) {
	z := byte(0x80)
	high := a.keep(z, z, z, z, 4, 5, 6, 7, z, z, z, z, 8, 9, 10, 11)
	low := a.keep(4, 5, 6, 7, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15)
	shift := a.keep(dwords(0, 0, 0, 0xfffffffc)...)
	mask := a.keep(dwords(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f)...)
	top := a.keep(0x30)
	return func(i int, sum v) ([]v, v) {
		p, q := a.get(), a.get()
		a.ldq(p, rRow+i, 0)
		a.do(tbl, q, p, high)
		a.do(tbl, p, p, low)
		a.do(ushlS, p, p, shift)
		a.do(and, p, p, mask)
		a.ushr(32, q, q, 2)
		a.do(and, q, q, top)
		a.do(orr, p, p, q)
		// Eight scales, then eight minima.
		m := a.get()
		a.un(uxtl2B, q, p)
		s := a.get()
		a.ldq(s, rX, blockKSum32)
		a.do(smullH, m, q, s)
		a.do(smlal2H, m, q, s)
		a.put(q, s)
		return a.extend(p, 2, false), m
	}
}

// pairsAt brings the nibbles of 32 bytes at off(e) of row i: low halves of 32
// bytes are entries e on, high ones e+32 on.
func (a *arm) pairsAt(low v, off func(e int) int) func(i, e int) []v {
	return func(i, e int) []v {
		l0, h0 := a.nibbles(low, i, off(e))
		l1, h1 := a.nibbles(low, i, off(e)+16)
		return []v{l0, l1, h0, h1}
	}
}

// shift moves the bits of each byte so that bit from comes to bit to.
func (a *arm) shift(d, s v, from, to int) v {
	switch {
	case from < to:
		a.shl(8, d, s, to-from)
	case from > to:
		a.ushr(8, d, s, from-to)
	default:
		return s
	}
	return d
}

// orBits ors into q the bits under mask of the 16 bytes at off of row i, after
// a shift.
func (a *arm) orBits(q v, i, off, from, to int, mask v) {
	h := a.get()
	a.ldq(h, rRow+i, off)
	a.shift(h, h, from, to)
	a.do(and, h, h, mask)
	a.do(orr, q, q, h)
	a.put(h)
}

func (a *arm) fill(b byte) v {
	r := a.get()
	a.movi(r, b)
	return r
}

func (a *arm) gemvsK() {
	a.gemvK("Q4K", 144, 32, true, func(g *armGemv) armSuper {
		low := g.fill(15)
		return armSuper{0, nil, g.scaleMins(), g.pairsAt(low, func(e int) int { return 16 + e/2 }), 4}
	})
	a.gemvK("Q5K", 176, 32, true, func(g *armGemv) armSuper {
		low, ten := g.fill(15), g.fill(16)
		pairs := g.pairsAt(low, func(e int) int { return 48 + e/2 })
		return armSuper{0, nil, g.scaleMins(), func(i, e int) []v {
			q := pairs(i, e)
			for k, r := range q {
				g.orBits(r, i, 16+k%2*16, (e+16*k)/32, 4, ten)
			}
			return q
		}, 4}
	})
	// twoBits brings codes of 2 bits, 64 bytes from off on.
	twoBits := func(g *armGemv, off int) func(i, e int) []v {
		three := g.fill(3)
		return func(i, e int) []v {
			var q []v
			for k := range 2 {
				r := g.get()
				g.ldq(r, rRow+i, off+e/128*32+16*k)
				g.shift(r, r, e/32%4*2, 0)
				g.do(and, r, r, three)
				q = append(q, r)
			}
			return q
		}
	}
	a.gemvK("Q2K", 84, 16, true, func(g *armGemv) armSuper {
		low := g.fill(15)
		return armSuper{80, nil, func(i int, sum v) ([]v, v) {
			s, m := g.nibbles(low, i, 0)
			mins := g.weigh16(m, false)
			g.put(m)
			return g.extend(s, 4, false), mins
		}, twoBits(g, 16), 2}
	})
	a.gemvK("Q3K", 110, 16, false, func(g *armGemv) armSuper {
		low, four, three := g.fill(15), g.fill(4), g.fill(3)
		hi := g.keep(10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13)
		lo := g.keep(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9)
		m4 := uint32(0xfffffffc)
		loShift := g.keep(dwords(0, 0, m4, m4)...)
		hiShift := g.keep(dwords(0, 0xfffffffe, m4, 0xfffffffa)...)
		bias := g.fill(32)
		two := twoBits(g, 32)
		return armSuper{108, nil, func(i int, sum v) ([]v, v) {
			p, q := g.get(), g.get()
			g.ldq(p, rRow+i, 94)
			g.do(tbl, q, p, hi)
			g.do(tbl, p, p, lo)
			g.do(ushlS, p, p, loShift)
			g.do(and, p, p, low)
			g.do(ushlS, q, q, hiShift)
			g.do(and, q, q, three)
			g.shl(8, q, q, 4)
			g.do(orr, p, p, q)
			g.do(subB, p, p, bias)
			g.put(q)
			g.unbias(sum, p, 2)
			return g.extend(p, 4, true), 0
		}, func(i, e int) []v {
			q := two(i, e)
			for k, r := range q {
				g.orBits(r, i, 16*k, e/32, 2, four)
			}
			return q
		}, 2}
	})
	a.gemvK("Q6K", 210, 16, false, func(g *armGemv) armSuper {
		low, top := g.fill(15), g.fill(0x30)
		return armSuper{208, nil, func(i int, sum v) ([]v, v) {
			p := g.get()
			g.ldq(p, rRow+i, 192)
			g.unbias(sum, p, 5)
			return g.extend(p, 4, true), 0
		}, func(i, e int) (q []v) {
			h, b := e/128, e/32%4
			for k := range 2 {
				lo, hi := g.nibbles(low, i, 64*h+b%2*32+16*k)
				if b >= 2 {
					lo, hi = hi, lo
				}
				g.put(hi)
				g.orBits(lo, i, 128+32*h+16*k, 2*b, 4, top)
				q = append(q, lo)
			}
			return q
		}, 2}
	})
	a.gemvK("IQ4XS", 136, 32, false, func(g *armGemv) armSuper {
		low, table, fifteen, three, bias := g.fill(15), g.table(nl4), g.keep(dwords(15)...), g.keep(dwords(3)...), g.keep(dwords(32)...)
		z := byte(0x80)
		var lo, hi, hiShift [2]v
		loShift := g.keep(dwords(0, 0xfffffffc, 0, 0xfffffffc)...)
		both := g.keep(2, 3, z, z)
		for k := range lo {
			n := byte(4 + 2*k)
			lo[k] = g.keep(n, z, z, z, n, z, z, z, n+1, z, z, z, n+1, z, z, z)
			hi[k] = both
			s := uint32(-8 * k)
			hiShift[k] = g.keep(dwords(s, s-2, s-4, s-6)...)
		}
		return armSuper{0, nil, func(i int, sum v) (scales []v, _ v) {
			p, q := g.get(), g.get()
			g.ldq(p, rRow+i, 0)
			for k := range lo {
				r := g.get()
				g.do(tbl, r, p, lo[k])
				g.do(ushlS, r, r, loShift)
				g.do(and, r, r, fifteen)
				g.do(tbl, q, p, hi[k])
				g.do(ushlS, q, q, hiShift[k])
				g.do(and, q, q, three)
				g.shl(32, q, q, 4)
				g.do(orr, r, r, q)
				g.do(subS, r, r, bias)
				scales = append(scales, r)
			}
			g.put(p, q)
			return scales, 0
		}, func(i, e int) []v {
			l, h := table(g.nibbles(low, i, 8+e/2))
			return []v{l, h}
		}, 2}
	})
}

// unbias takes from sum what codes that are stored plus 2^bits have too much;
// p holds the sixteen scales.
func (a *arm) unbias(sum, p v, bits int) {
	c := a.weigh16(p, true)
	a.shl(32, c, c, bits)
	a.do(subS, sum, sum, c)
	a.put(c)
}
