package main

// armPrep is prep for arm64.
type armPrep struct {
	*arm
	abs, most, tiny, finite, nan v
}

func (a *arm) prep() *armPrep {
	return &armPrep{a,
		a.keep(dwords(0x7fffffff)...),
		a.keep(dwords(0x42fe0000)...), // 127.0
		a.keep(dwords(0x0d7fffff)...), // just below 2^-100
		a.keep(dwords(0x7f800000)...), // infinity
		a.keep(dwords(0x7fc00000)...),
	}
}

// fold puts the largest element of m into all elements.
func (p *armPrep) fold(m v) {
	p.un(umaxv, m, m)
	p.line("VDUP V%d.S[0], V%d.S4", m, m)
}

// factors returns from the largest magnitude: 127/m, the mask of blocks that
// are neither tiny nor broken, and NaN for broken ones. It gives m back.
func (p *armPrep) factors(m v) (inv, valid, broken v) {
	inv, valid, broken = p.get(), p.get(), p.get()
	p.do(fdiv, inv, p.most, m)
	p.do(cmgtS, broken, p.finite, m) // finite, for now
	p.do(cmgtS, valid, m, p.tiny)
	p.do(and, valid, valid, broken)
	p.do(bic, broken, p.nan, broken)
	p.put(m)
	return inv, valid, broken
}

// codes turns four registers of floats into one of codes.
func (p *armPrep) codes(f []v, inv, valid v) v {
	for _, r := range f {
		p.do(fmul, r, r, inv)
		p.un(fcvtns, r, r)
	}
	for k := 0; k < 4; k += 2 {
		p.un(sqxtnS, f[k], f[k])
		p.un(sqxtn2S, f[k], f[k+1])
	}
	q := p.get()
	p.un(sqxtnH, q, f[0])
	p.un(sqxtn2H, q, f[2])
	p.do(and, q, q, valid)
	return q
}

func (a *arm) prepareQ8() {
	a.function("prepareQ8Vec", "quantises blocks of 32 as prepareQ8Generic does.", "dst *byte, x *float32, blocks int", 24)
	a.line("MOVD dst+0(FP), R0")
	a.line("MOVD x+8(FP), R1")
	a.line("MOVD blocks+16(FP), R2")
	p := a.prep()
	loop := a.label("block")
	a.at(loop)
	x, m, t := a.gets(8), a.get(), a.get()
	for k, r := range x {
		a.ldq(r, 1, 16*k)
		if k == 0 {
			a.do(and, m, r, p.abs)
			continue
		}
		a.do(and, t, r, p.abs)
		a.do(umaxS, m, m, t)
	}
	p.fold(m)
	d := a.get()
	a.do(fdiv, d, m, p.most)
	inv, valid, broken := p.factors(m)
	a.do(and, d, d, valid)
	a.do(orr, d, d, broken)
	lo, hi := p.codes(x[:4], inv, valid), p.codes(x[4:], inv, valid)
	a.stq(lo, 0, 0)
	a.stq(hi, 0, 16)
	// The sum of the codes: two of them fit an int16.
	a.un(saddlpB, lo, lo)
	a.un(saddlpB, hi, hi)
	a.un(saddlpH, lo, lo)
	a.un(sadalpH, lo, hi)
	a.un(addv, lo, lo)
	a.un(negS, hi, lo)
	a.line("FMOVS F%d, %d(R0)", hi, block8NSum)
	a.un(scvtf, lo, lo)
	a.do(fmul, lo, lo, d)
	for _, r := range []v{d, lo} {
		a.un(fcvtn, r, r)
		a.un(fcvtl, r, r)
	}
	a.line("FMOVS F%d, %d(R0)", d, block8Scale)
	a.line("FMOVS F%d, %d(R0)", lo, block8S)
	a.line("ADD $128, R1, R1")
	a.line("ADD $%d, R0, R0", block8Bytes)
	a.line("SUBS $1, R2, R2")
	a.line("BNE %s", loop)
	a.line("RET")
}

func (a *arm) prepareQ8K() {
	a.function("prepareQ8KVec", "quantises blocks of 256 as prepareQ8KGeneric does.", "dst *byte, x *float32, blocks int", 24)
	a.line("MOVD dst+0(FP), R0")
	a.line("MOVD x+8(FP), R1")
	a.line("MOVD blocks+16(FP), R2")
	p := a.prep()
	one := a.keep(dwords(0x3f800000)...)
	loop := a.label("block")
	a.at(loop)
	m, t, f := a.get(), a.get(), a.gets(4)
	for k := range 64 {
		if k == 0 {
			a.ldq(m, 1, 0)
			a.do(and, m, m, p.abs)
			continue
		}
		a.ldq(f[k%4], 1, 16*k)
		a.do(and, t, f[k%4], p.abs)
		a.do(umaxS, m, m, t)
	}
	p.fold(m)
	inv, valid, broken := p.factors(m)
	d := a.get()
	a.do(fdiv, d, one, inv)
	a.do(and, d, d, valid)
	a.do(orr, d, d, broken)
	a.line("MOVD $%d, R3", blockKScale)
	a.line("ADD R0, R3, R3")
	a.line("FMOVS F%d, (R3)", d)
	// Sums of 16 codes, four at a time, and from them sums of 32.
	var groups []v
	for half := range 2 {
		var eights []v
		for pair := range 2 {
			var fours []v
			for k := range 4 {
				e := 128*half + 64*pair + 16*k
				for i, r := range f {
					a.ldq(r, 1, 4*e+16*i)
				}
				q := p.codes(f, inv, valid)
				a.stq(q, 0, e)
				a.un(saddlpB, q, q)
				a.un(saddlpH, q, q)
				fours = append(fours, q)
			}
			eights = append(eights, a.across(fours))
		}
		a.un(sqxtnS, eights[0], eights[0])
		a.un(sqxtn2S, eights[0], eights[1])
		a.stq(eights[0], 0, blockKSum16+16*half)
		a.put(eights[1])
		groups = append(groups, eights[0])
	}
	a.do(addpH, groups[0], groups[0], groups[1])
	a.stq(groups[0], 0, blockKSum32)
	a.line("ADD $1024, R1, R1")
	a.line("ADD $%d, R0, R0", blockKBytes)
	a.line("SUBS $1, R2, R2")
	a.line("BNE %s", loop)
	a.line("RET")
}

func (a *arm) roundF16() {
	a.function("roundF16Vec", "rounds 8*steps floats to half precision, as quant.F32ToF16 and quant.F16ToF32 do.", "dst, x *float32, steps int", 24)
	a.line("MOVD dst+0(FP), R0")
	a.line("MOVD x+8(FP), R1")
	a.line("MOVD steps+16(FP), R2")
	r := a.gets(2)
	loop := a.label("step")
	a.at(loop)
	for k := range r {
		a.ldq(r[k], 1, 16*k)
		a.un(fcvtn, r[k], r[k])
		a.un(fcvtl, r[k], r[k])
		a.stq(r[k], 0, 16*k)
	}
	a.line("ADD $32, R1, R1")
	a.line("ADD $32, R0, R0")
	a.line("SUBS $1, R2, R2")
	a.line("BNE %s", loop)
	a.line("RET")
}
