package main

// armGemv is the state of a kernel that multiplies groups of four rows with one
// vector. As on amd64 the elements of its accumulator are the rows.
type armGemv struct {
	*arm
	acc v
}

// General registers of the gemv kernels.
const (
	rDst, rW, rRowBytes, rGroups = 0, 1, 2, 3
	rRow                         = 4 // R4 to R7: the rows' current blocks
	rX                           = 8 // the vector's current block
	rSteps                       = 9
)

// gemv writes a kernel, as gen.gemv does for amd64.
func (a *arm) gemv(name, doc string, wBytes, xBytes int, setup func(*armGemv) func()) {
	a.function("gemv"+name+a.suffix(), doc+twin(name), "dst *float32, w *byte, rowBytes, blocks, groups int, x *byte", 48)
	a.line("MOVD dst+0(FP), R0")
	a.line("MOVD w+8(FP), R1")
	a.line("MOVD rowBytes+16(FP), R2")
	a.line("MOVD groups+32(FP), R3")
	g := &armGemv{a, a.get()}
	body := setup(g)
	group, step := a.label("group"), a.label("block")
	a.at(group)
	a.rowPointers()
	a.line("MOVD x+40(FP), R8")
	a.line("MOVD blocks+24(FP), R9")
	a.movi(g.acc, 0)
	a.at(step)
	body()
	for i := range 4 {
		a.line("ADD $%d, R%d, R%d", wBytes, rRow+i, rRow+i)
	}
	a.line("ADD $%d, R8, R8", xBytes)
	a.line("SUBS $1, R9, R9")
	a.line("BNE %s", step)
	a.stq(g.acc, rDst, 0)
	a.line("ADD $16, R0, R0")
	a.line("ADD R2<<2, R1, R1")
	a.line("SUBS $1, R3, R3")
	a.line("BNE %s", group)
	a.line("RET")
}

// rowPointers points R4 to R7 to the rows of the group at R1.
func (a *arm) rowPointers() {
	a.line("MOVD R1, R4")
	for i := range 3 {
		a.line("ADD R2, R%d, R%d", rRow+i, rRow+i+1)
	}
}

// dot16 adds to sum's elements the products of 16 signed bytes, or starts it.
func (a *arm) dot16(sum, w, x v, fresh bool) {
	if a.dot {
		if fresh {
			a.movi(sum, 0)
		}
		a.do(sdot, sum, w, x)
		return
	}
	// Two products of at most 128 * 127 fit an int16.
	t := a.get()
	a.do(smull, t, w, x)
	a.do(smlal2, t, w, x)
	if fresh {
		a.un(saddlpH, sum, t)
	} else {
		a.un(sadalpH, sum, t)
	}
	a.put(t)
}

// across adds up the elements of each of four registers into the elements of the
// first, which it returns.
func (a *arm) across(r []v) v {
	a.do(addpS, r[0], r[0], r[1])
	a.do(addpS, r[2], r[2], r[3])
	a.do(addpS, r[0], r[0], r[2])
	a.put(r[1:]...)
	return r[0]
}

// halves turns the f16 at off of each row's block into floats.
func (a *arm) halves(off int) v {
	r := a.get()
	for i := range 4 {
		a.line("VLD1 (%s), V%d.H[%d]", a.pointer(rRow+i, off), r, i)
	}
	a.un(fcvtl, r, r)
	return r
}

// halfPairs does so with two f16 at off.
func (a *arm) halfPairs(off int) (x, y v) {
	x, y = a.get(), a.get()
	for i := range 4 {
		a.line("VLD1 (%s), V%d.S[%d]", a.pointer(rRow+i, off), x, i)
	}
	a.do(uzp2H, y, x, x)
	a.do(uzp1H, x, x, x)
	a.un(fcvtl, x, x)
	a.un(fcvtl, y, y)
	return x, y
}

// accumulate adds float(sum) * (w * x) to acc; x is element i of a register.
// It gives sum and w back.
func (g *armGemv) accumulate(sum, w, x v, i int) {
	g.un(scvtf, sum, sum)
	g.fmulE(w, w, x, i)
	g.do(fmul, sum, sum, w)
	g.do(fadd, g.acc, g.acc, sum)
	g.put(sum, w)
}

// Elements of the 16 bytes behind the codes of a block8.
const (
	elemScale = 0
	elemNSum  = 1
	elemS     = 2
)

// gemv32 writes a kernel for blocks of 32: load brings the codes of row i, 16
// at a time; what it adds to them, bias, is taken off again.
func (a *arm) gemv32(name string, wBytes, bias int, setup func(*armGemv) (load func(i int) (lo, hi v), scales func() v)) {
	a.gemv(name, "multiplies rows of "+name+" with a Q8_0 vector.", wBytes, block8Bytes, func(g *armGemv) func() {
		load, scales := setup(g)
		var eight v
		if bias > 0 {
			eight = g.keep(dwords(uint32(bias))...)
		}
		return func() {
			x0, x1, tail := g.get(), g.get(), g.get()
			g.ldq(x0, rX, 0)
			g.ldq(x1, rX, 16)
			g.ldq(tail, rX, 32)
			sums := g.gets(4)
			for i, s := range sums {
				lo, hi := load(i)
				g.dot16(s, lo, x0, true)
				g.dot16(s, hi, x1, false)
				g.put(lo, hi)
			}
			g.put(x0, x1)
			sum := g.across(sums)
			if bias > 0 {
				g.mlaE(sum, eight, tail, elemNSum)
			}
			g.accumulate(sum, scales(), tail, elemScale)
			g.put(tail)
		}
	})
}

// gemv32Min is gemv32 for types with minima.
func (a *arm) gemv32Min(name string, wBytes int, setup func(*armGemv) func(i int) (lo, hi v)) {
	a.gemv(name, "multiplies rows of "+name+" with a Q8_1 vector.", wBytes, block8Bytes, func(g *armGemv) func() {
		load := setup(g)
		return func() {
			x0, x1, tail := g.get(), g.get(), g.get()
			g.ldq(x0, rX, 0)
			g.ldq(x1, rX, 16)
			g.ldq(tail, rX, 32)
			sums := g.gets(4)
			for i, s := range sums {
				lo, hi := load(i)
				g.dot16(s, lo, x0, true)
				g.dot16(s, hi, x1, false)
				g.put(lo, hi)
			}
			sum := g.across(sums)
			d, m := g.halfPairs(0)
			g.un(scvtf, sum, sum)
			g.fmulE(d, d, tail, elemScale)
			g.do(fmul, sum, sum, d)
			g.fmulE(m, m, tail, elemS)
			g.do(fadd, sum, sum, m)
			g.do(fadd, g.acc, g.acc, sum)
			g.put(x0, x1, tail, sum, d, m)
		}
	})
}

// nibbles splits 16 bytes at off of row i.
func (a *arm) nibbles(low v, i, off int) (lo, hi v) {
	lo, hi = a.get(), a.get()
	a.ldq(lo, rRow+i, off)
	a.ushr(8, hi, lo, 4)
	a.do(and, lo, lo, low)
	return lo, hi
}

// fifths adds 16 to the entries whose bit is set in the 32 bits at off.
func (a *arm) fifths(off int) func(i int, lo, hi v) {
	bit, ten := a.keep(1, 2, 4, 8, 16, 32, 64, 128), a.get()
	a.movi(ten, 16)
	var spread [2]v
	for k := range spread {
		b := make([]byte, 16)
		for j := range b {
			b[j] = byte(2*k + j/8)
		}
		spread[k] = a.keep(b...)
	}
	return func(i int, lo, hi v) {
		h, t := a.get(), a.get()
		a.line("VLD1R (%s), [V%d.S4]", a.pointer(rRow+i, off), h)
		for k, q := range []v{lo, hi} {
			a.do(tbl, t, h, spread[k])
			a.do(cmtst, t, t, bit)
			a.do(and, t, t, ten)
			a.do(orr, q, q, t)
		}
		a.put(h, t)
	}
}

// table replaces codes by entries.
func (a *arm) table(t [16]int) func(lo, hi v) (v, v) {
	r := a.keep((&gen{}).entries(t, 0)...)
	return func(lo, hi v) (v, v) {
		a.do(tbl, lo, r, lo)
		a.do(tbl, hi, r, hi)
		return lo, hi
	}
}

func (a *arm) gemvs32() {
	a.gemv32("Q8_0", 34, 0, func(g *armGemv) (func(i int) (v, v), func() v) {
		return func(i int) (v, v) {
			lo, hi := g.get(), g.get()
			g.ldq(lo, rRow+i, 2)
			g.ldq(hi, rRow+i, 18)
			return lo, hi
		}, func() v { return g.halves(0) }
	})
	a.gemv32("Q4_0", 18, 8, func(g *armGemv) (func(i int) (v, v), func() v) {
		low := g.get()
		g.movi(low, 15)
		return func(i int) (v, v) { return g.nibbles(low, i, 2) }, func() v { return g.halves(0) }
	})
	a.gemv32("Q5_0", 22, 16, func(g *armGemv) (func(i int) (v, v), func() v) {
		low := g.get()
		g.movi(low, 15)
		fifths := g.fifths(2)
		return func(i int) (v, v) {
			lo, hi := g.nibbles(low, i, 6)
			fifths(i, lo, hi)
			return lo, hi
		}, func() v { return g.halves(0) }
	})
	a.gemv32("IQ4NL", 18, 0, func(g *armGemv) (func(i int) (v, v), func() v) {
		low := g.get()
		g.movi(low, 15)
		table := g.table(nl4)
		return func(i int) (v, v) { return table(g.nibbles(low, i, 2)) }, func() v { return g.halves(0) }
	})
	a.gemv32("MXFP4", 17, 0, func(g *armGemv) (func(i int) (v, v), func() v) {
		low := g.get()
		g.movi(low, 15)
		table := g.table(e2m1)
		one, two, small := g.keep(dwords(1)...), g.keep(dwords(2)...), g.keep(dwords(0x00200000)...)
		return func(i int) (v, v) { return table(g.nibbles(low, i, 1)) }, func() v {
			// As powers.gather: exponent bits e-1, and below 2 a subnormal.
			e, d, s := g.get(), g.get(), g.get()
			g.movi(e, 0)
			for i := range 4 {
				g.line("VLD1 (R%d), V%d.B[%d]", rRow+i, e, 4*i)
			}
			g.do(subS, d, e, one)
			g.shl(32, d, d, 23)
			g.do(ushlS, s, small, e)
			g.do(cmgtS, e, two, e)
			g.do(and, s, s, e)
			g.do(bic, d, d, e)
			g.do(orr, d, d, s)
			g.put(e, s)
			return d
		}
	})
	a.gemv32Min("Q4_1", 20, func(g *armGemv) func(i int) (v, v) {
		low := g.get()
		g.movi(low, 15)
		return func(i int) (v, v) { return g.nibbles(low, i, 4) }
	})
	a.gemv32Min("Q5_1", 24, func(g *armGemv) func(i int) (v, v) {
		low := g.get()
		g.movi(low, 15)
		fifths := g.fifths(4)
		return func(i int) (v, v) {
			lo, hi := g.nibbles(low, i, 8)
			fifths(i, lo, hi)
			return lo, hi
		}
	})
}

// gemvFloat is gen.gemvFloat for arm64: sixteen partial sums a row are four
// registers. load brings 16 weights of row i as floats.
func (a *arm) gemvFloat(name string, size int, load func(i int, w []v)) {
	a.function("gemv"+name+"NEON", "multiplies groups of four rows of 16*steps floats with a vector."+twin(name), "dst *float32, w *byte, rowBytes, steps, groups int, x *float32", 48)
	a.line("MOVD dst+0(FP), R0")
	a.line("MOVD w+8(FP), R1")
	a.line("MOVD rowBytes+16(FP), R2")
	a.line("MOVD groups+32(FP), R3")
	var acc [4][]v
	for i := range acc {
		acc[i] = a.gets(4)
	}
	x, w := a.gets(4), a.gets(4)
	group, step := a.label("group"), a.label("step")
	a.at(group)
	a.rowPointers()
	a.line("MOVD x+40(FP), R8")
	a.line("MOVD steps+24(FP), R9")
	for i := range acc {
		for _, r := range acc[i] {
			a.movi(r, 0)
		}
	}
	a.at(step)
	for k := range x {
		a.ldq(x[k], rX, 16*k)
	}
	for i := range acc {
		load(i, w)
		for k := range w {
			a.do(fmul, w[k], w[k], x[k])
			a.do(fadd, acc[i][k], acc[i][k], w[k])
		}
	}
	for i := range 4 {
		a.line("ADD $%d, R%d, R%d", 16*size, rRow+i, rRow+i)
	}
	a.line("ADD $64, R8, R8")
	a.line("SUBS $1, R9, R9")
	a.line("BNE %s", step)
	var f [4]v
	for i, r := range acc {
		a.do(fadd, r[0], r[0], r[2])
		a.do(fadd, r[1], r[1], r[3])
		a.do(fadd, r[0], r[0], r[1])
		f[i] = r[0]
	}
	for i := 0; i < 4; i += 2 {
		a.do(zip1D, w[0], f[i], f[i+1])
		a.do(zip2D, w[1], f[i], f[i+1])
		a.do(fadd, f[i], w[0], w[1])
	}
	a.do(faddp, f[0], f[0], f[2])
	a.stq(f[0], rDst, 0)
	a.line("ADD $16, R0, R0")
	a.line("ADD R2<<2, R1, R1")
	a.line("SUBS $1, R3, R3")
	a.line("BNE %s", group)
	a.line("RET")
}

func (a *arm) gemvFloats() {
	a.gemvFloat("F32", 4, func(i int, w []v) {
		for k := range w {
			a.ldq(w[k], rRow+i, 16*k)
		}
	})
	a.gemvFloat("F16", 2, func(i int, w []v) {
		a.ldq(w[0], rRow+i, 0)
		a.ldq(w[2], rRow+i, 16)
		a.un(fcvtl2, w[1], w[0])
		a.un(fcvtl, w[0], w[0])
		a.un(fcvtl2, w[3], w[2])
		a.un(fcvtl, w[2], w[2])
	})
	a.gemvFloat("BF16", 2, func(i int, w []v) {
		a.ldq(w[0], rRow+i, 0)
		a.ldq(w[2], rRow+i, 16)
		a.un(shll2H, w[1], w[0])
		a.un(shllH, w[0], w[0])
		a.un(shll2H, w[3], w[2])
		a.un(shllH, w[2], w[2])
	})
}
