package main

import "math"

// The code-book and ternary types, and NVFP4. Indices and signs are taken apart
// in general registers; signs come from a table too.

const (
	rTable = 10 // the code book
	rSigns = 11 // masks of 255 for each byte that is negated
	rIndex = 12
	rPart  = 13
	rAddr  = 14
)

// armBook is a code-book type. codes brings the 16 entries from e on of row i.
type armBook struct {
	name, table, signs string
	bytes, group       int
	setup              func(*armGemv) (s armSuper)
}

// eight puts the entry of eight bytes with index rIndex into half k of d.
func (a *arm) eight(d v, k, table int) {
	if k == 0 {
		a.line("FMOVD (R%d)(R%d<<3), F%d", table, rIndex, d)
		return
	}
	a.line("ADD R%d<<3, R%d, R%d", rIndex, table, rAddr)
	a.line("VLD1 (R%d), V%d.D[1]", rAddr, d)
}

// four puts an entry of four bytes into element k of d.
func (a *arm) four(d v, k int) {
	if k == 0 {
		a.line("FMOVS (R%d)(R%d<<2), F%d", rTable, rIndex, d)
		return
	}
	a.line("ADD R%d<<2, R%d, R%d", rIndex, rTable, rAddr)
	a.line("VLD1 (R%d), V%d.S[%d]", rAddr, d, k)
}

// negate negates the bytes of q where those of m are 255, and gives m back.
func (a *arm) negate(q, m v) {
	a.do(eor, q, q, m)
	a.do(subB, q, q, m)
	a.put(m)
}

// negateEven negates the entries from e on of 32 whose signs are the four times
// seven bits at off of row i.
func (a *arm) negateEven(q v, i, off, e int) {
	m := a.get()
	a.line("MOVWU %d(R%d), R%d", off, rRow+i, rPart)
	for h := range 2 {
		a.line("UBFX $%d, R%d, $7, R%d", 7*(e%32/8+h), rPart, rIndex)
		a.eight(m, h, rSigns)
	}
	a.negate(q, m)
}

// negateBytes does so with the signs of eight entries in each byte.
func (a *arm) negateBytes(q v, i, off int) {
	m := a.get()
	for h := range 2 {
		a.line("MOVBU %d(R%d), R%d", off+h, rRow+i, rIndex)
		a.eight(m, h, rSigns)
	}
	a.negate(q, m)
}

// index loads the byte at off of row i, and for its high bits n of the byte at
// high, from bit from on.
func (a *arm) index(i, off, high, from, n int) {
	a.line("MOVBU %d(R%d), R%d", off, rRow+i, rIndex)
	if n > 0 {
		a.line("MOVBU %d(R%d), R%d", high, rRow+i, rPart)
		a.line("UBFX $%d, R%d, $%d, R%d", from, rPart, n, rPart)
		a.line("ORR R%d<<8, R%d, R%d", rPart, rIndex, rIndex)
	}
}

// odd returns 2s+1 for the elements s of r; one holds ones.
func (a *arm) odd(size int, r, one v) v {
	a.shl(size, r, r, 1)
	a.do(orr, r, r, one)
	return r
}

// oddNibbles returns 2s+1 for nibbles, low ones first, of the upper 8 bytes of the
// 16 at off of row i.
func (a *arm) oddNibbles(i, off int, low, one v) v {
	lo, hi := a.nibbles(low, i, off)
	a.do(zip2B, lo, lo, hi)
	a.put(hi)
	return a.odd(8, lo, one)
}

// topScales returns 2s+1 for the top four bits s of dwords.
func (a *arm) topScales(one v, r ...v) []v {
	for _, s := range r {
		a.ushr(32, s, s, 28)
		a.odd(32, s, one)
	}
	return r
}

func (g *armGemv) load(i, off int) v {
	r := g.get()
	g.ldq(r, rRow+i, off)
	return r
}

var armBooks = []armBook{
	{"IQ2XXS", "bookIQ2XXS", "signsEven", 66, 32, func(g *armGemv) armSuper {
		one := g.keep(dwords(1)...)
		return armSuper{d: g.factor(0, 0.125), unpack: func(i int, sum v) ([]v, v) {
			var s []v
			for k := range 2 {
				a, b := g.load(i, 2+32*k), g.load(i, 18+32*k)
				g.do(uzp2S, a, a, b)
				g.put(b)
				s = append(s, a)
			}
			return g.topScales(one, s...), 0
		}, codes: func(i, e int) []v {
			q := g.get()
			for h := range 2 {
				g.index(i, 2+e/32*8+e%32/8+h, 0, 0, 0)
				g.eight(q, h, rTable)
			}
			g.negateEven(q, i, 6+e/32*8, e)
			return []v{q}
		}, step: 1}
	}},
	{"IQ2XS", "bookIQ2XS", "signsEven", 74, 16, func(g *armGemv) armSuper {
		low, one := g.fill(15), g.fill(1)
		return armSuper{d: g.factor(0, 0.125), unpack: func(i int, sum v) ([]v, v) {
			return g.extend(g.oddNibbles(i, 66-8, low, one), 4, false), 0
		}, codes: func(i, e int) []v {
			q, m := g.get(), g.get()
			for h := range 2 {
				g.line("MOVHU %d(R%d), R%d", 2+2*(e/8+h), rRow+i, rPart)
				g.line("AND $511, R%d, R%d", rPart, rIndex)
				g.eight(q, h, rTable)
				g.line("LSR $9, R%d, R%d", rPart, rIndex)
				g.eight(m, h, rSigns)
			}
			g.negate(q, m)
			return []v{q}
		}, step: 1}
	}},
	{"IQ2S", "bookIQ2S", "signsAll", 82, 16, func(g *armGemv) armSuper {
		low, one := g.fill(15), g.fill(1)
		return armSuper{d: g.factor(0, 0.125), unpack: func(i int, sum v) ([]v, v) {
			return g.extend(g.oddNibbles(i, 74-8, low, one), 4, false), 0
		}, codes: func(i, e int) []v {
			q := g.get()
			for h := range 2 {
				n := e/8 + h
				g.index(i, 2+n, 66+n/4, n%4*2, 2)
				g.eight(q, h, rTable)
			}
			g.negateBytes(q, i, 34+e/8)
			return []v{q}
		}, step: 1}
	}},
	{"IQ3XXS", "bookIQ3XXS", "signsEven", 98, 32, func(g *armGemv) armSuper {
		one := g.keep(dwords(1)...)
		return armSuper{d: g.factor(0, 0.25), unpack: func(i int, sum v) ([]v, v) {
			return g.topScales(one, g.load(i, 66), g.load(i, 82)), 0
		}, codes: func(i, e int) []v {
			q := g.get()
			for k := range 4 {
				g.index(i, 2+e/4+k, 0, 0, 0)
				g.four(q, k)
			}
			g.negateEven(q, i, 66+e/32*4, e)
			return []v{q}
		}, step: 1}
	}},
	{"IQ3S", "bookIQ3S", "signsAll", 110, 32, func(g *armGemv) armSuper {
		low, one := g.fill(15), g.fill(1)
		upper := g.keep(8, 9, 10, 11, 12, 13, 14, 15)
		return armSuper{d: g.factor(0, 1), unpack: func(i int, sum v) ([]v, v) {
			s := g.oddNibbles(i, 106-12, low, one)
			g.do(tbl, s, s, upper)
			return g.extend(s, 2, false), 0
		}, codes: func(i, e int) []v {
			q := g.get()
			for k := range 4 {
				n := e/4 + k
				g.index(i, 2+n, 66+n/8, n%8, 1)
				g.four(q, k)
			}
			g.negateBytes(q, i, 74+e/8)
			return []v{q}
		}, step: 1}
	}},
	{"IQ1S", "weightsIQ1", "", 50, 32, func(g *armGemv) armSuper {
		seven, one := g.keep(words(7)...), g.keep(words(1)...)
		return armSuper{d: g.factor(0, 0.125), unpack: func(i int, sum v) ([]v, v) {
			h := g.load(i, 34)
			g.ushr(16, h, h, 12)
			g.do(and, h, h, seven)
			g.odd(16, h, one)
			x, y := g.get(), g.get()
			g.un(sxtlH, x, h)
			g.un(sxtl2H, y, h)
			g.put(h)
			return []v{x, y}, 0
		}, codes: func(i, e int) []v {
			q := g.get()
			for h := range 2 {
				n := e/8 + h
				g.index(i, 2+n, 0, 0, 0)
				g.line("MOVHU %d(R%d), R%d", 34+e/32*2, rRow+i, rPart)
				g.line("UBFX $%d, R%d, $3, R%d", n%4*3, rPart, rAddr)
				g.line("ORR R%d<<8, R%d, R%d", rAddr, rIndex, rIndex)
				g.line("LSR $15, R%d, R%d", rPart, rPart)
				g.line("ORR R%d<<11, R%d, R%d", rPart, rIndex, rIndex)
				g.eight(q, h, rTable)
			}
			return []v{q}
		}, step: 1}
	}},
	{"IQ1M", "weightsIQ1", "", 56, 16, func(g *armGemv) armSuper {
		seven, one := g.keep(dwords(7)...), g.keep(dwords(1)...)
		shift := g.keep(dwords(0, 0xfffffffd, 0xfffffffa, 0xfffffff7)...)
		var word [4]v
		for k := range word {
			n, z := byte(8+2*k), byte(0x80)
			word[k] = g.keep(n, n+1, z, z)
		}
		eighth := g.keep(dwords(math.Float32bits(0.125))...)
		return armSuper{d: func() v {
			// The top nibbles of four words make an f16.
			d := g.get()
			g.movi(d, 0)
			for i := range 4 {
				g.line("MOVD 48(R%d), R%d", rRow+i, rIndex)
				g.line("UBFX $12, R%d, $4, R%d", rIndex, rPart)
				for k, from := range []int{28, 44, 60} {
					g.line("UBFX $%d, R%d, $4, R%d", from, rIndex, rAddr)
					g.line("ORR R%d<<%d, R%d, R%d", rAddr, 4*k+4, rPart, rPart)
				}
				g.line("VMOV R%d, V%d.H[%d]", rPart, d, i)
			}
			g.un(fcvtl, d, d)
			g.do(fmul, d, d, eighth)
			return d
		}, unpack: func(i int, sum v) (s []v, _ v) {
			p := g.load(i, 48-8)
			for k := range word {
				r := g.get()
				g.do(tbl, r, p, word[k])
				g.do(ushlS, r, r, shift)
				g.do(and, r, r, seven)
				s = append(s, g.odd(32, r, one))
			}
			g.put(p)
			return s, 0
		}, codes: func(i, e int) []v {
			q := g.get()
			for h := range 2 {
				n := e/8 + h
				g.index(i, n, 32+n/2, n%2*4, 4)
				g.eight(q, h, rTable)
			}
			return []v{q}
		}, step: 1}
	}},
	{"TQ10", "", "", 54, 32, func(g *armGemv) armSuper {
		one := g.keep(dwords(1)...)
		above0, above1 := g.fill(85), g.fill(170)
		var power [5]v
		for n := 1; n < 5; n++ {
			power[n] = g.fill([]byte{1, 3, 9, 27, 81}[n])
		}
		rest := g.keep(10, 11, 12, 13)
		powers := g.keep(1, 1, 1, 1, 3, 3, 3, 3, 9, 9, 9, 9, 27, 27, 27, 27)
		return armSuper{d: g.factor(52, 1), unpack: g.ones(one), codes: func(i, e int) []v {
			var q v
			n := e / 32
			switch {
			case e < 160:
				q = g.load(i, e%32)
			case e < 240:
				q, n = g.load(i, 32), (e-160)/16
			default:
				q, n = g.load(i, 48-10), 0
				g.do(tbl, q, q, rest)
				g.do(mulB, q, q, powers)
			}
			if n > 0 {
				g.do(mulB, q, q, power[n])
			}
			d := g.get()
			g.do(cmhiB, d, q, above0)
			g.do(cmhiB, q, q, above1)
			g.do(addB, q, q, d)
			g.un(not, q, q)
			g.put(d)
			return []v{q}
		}, step: 1}
	}},
	{"TQ20", "", "", 66, 32, func(g *armGemv) armSuper {
		one, three, less := g.keep(dwords(1)...), g.fill(3), g.fill(1)
		return armSuper{d: g.factor(64, 1), unpack: g.ones(one), codes: func(i, e int) []v {
			q := g.load(i, e/128*32+e%32)
			g.shift(q, q, e/32%4*2, 0)
			g.do(and, q, q, three)
			g.do(subB, q, q, less)
			return []v{q}
		}, step: 1}
	}},
}

// ones is an unpack for types whose groups have no scales.
func (g *armGemv) ones(one v) func(i int, sum v) ([]v, v) {
	return func(int, v) ([]v, v) {
		s := g.gets(2)
		for _, r := range s {
			g.do(orr, r, one, one)
		}
		return s, 0
	}
}

// factor returns what brings the f16 at off of each row, times f.
func (g *armGemv) factor(off int, f float32) func() v {
	c := v(0)
	if f != 1 {
		c = g.keep(dwords(math.Float32bits(f))...)
	}
	return func() v {
		d := g.halves(off)
		if f != 1 {
			g.do(fmul, d, d, c)
		}
		return d
	}
}

func (a *arm) gemvsLow() {
	for _, b := range armBooks {
		a.gemvK(b.name, b.bytes, b.group, false, func(g *armGemv) armSuper {
			if b.table != "" {
				g.line("MOVD $·%s(SB), R%d", b.table, rTable)
			}
			if b.signs != "" {
				g.line("MOVD $·%s(SB), R%d", b.signs, rSigns)
			}
			return b.setup(g)
		})
	}
	a.gemvNVFP4()
}

func (a *arm) gemvNVFP4() {
	a.gemv("NVFP4", "multiplies rows of NVFP4 with a Q8_0 vector.", 36, 2*block8Bytes, func(g *armGemv) func() {
		low, table := g.fill(15), g.table(e2m1)
		none, mask, scale := g.keep(words(0x7f)...), g.keep(words(0x3f80)...), g.keep(dwords(math.Float32bits(128))...)
		scales := func(off int) v {
			// As gen.eightsE4M3.
			e, z := g.get(), g.get()
			g.movi(e, 0)
			for i := range 4 {
				g.line("VLD1 (%s), V%d.B[%d]", g.pointer(rRow+i, off), e, 2*i)
			}
			g.do(cmeqH, z, e, none)
			g.shl(16, e, e, 7)
			g.do(and, e, e, mask)
			g.do(bic, e, e, z)
			g.un(fcvtl, e, e)
			g.do(fmul, e, e, scale)
			g.put(z)
			return e
		}
		return func() {
			for h := range 2 {
				x0, x1, tail := g.get(), g.get(), g.get()
				g.ldq(x0, rX, block8Bytes*h)
				g.ldq(x1, rX, block8Bytes*h+16)
				g.ldq(tail, rX, block8Bytes*h+32)
				first, second := g.gets(4), g.gets(4)
				for i := range 4 {
					lo, hi := table(g.nibbles(low, i, 4+16*h))
					w := g.get()
					g.do(zip1D, w, lo, hi)
					g.do(zip2D, lo, lo, hi)
					g.dot16(first[i], w, x0, true)
					g.dot16(second[i], lo, x1, true)
					g.put(lo, hi, w)
				}
				g.put(x0, x1)
				g.accumulate(g.across(first), scales(2*h), tail, elemScale)
				g.accumulate(g.across(second), scales(2*h+1), tail, elemScale)
				g.put(tail)
			}
		}
	})
}
