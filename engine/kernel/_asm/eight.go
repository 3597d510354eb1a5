package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// eight collects what stands beside the codes in the blocks of eight rows.
type eight struct {
	*gen
	rows
}

// gather puts the 16 bits (or 8) at off of each row's block side by side. It
// does so in general registers, which have nothing else to do: inserting into
// vectors would keep the ports busy that shuffle.
func (v *eight) gather(off, bits int) reg.VecVirtual {
	half := func(first, n int) reg.GPVirtual {
		r := v.GP64()
		for i := first + n - 1; i >= first; i-- {
			switch {
			case i == first+n-1 && bits == 8:
				v.MOVBLZX(v.at(i, off), r.As32())
			case i == first+n-1:
				v.MOVWLZX(v.at(i, off), r.As32())
			case bits == 8:
				v.SHLQ(operand.U8(8), r)
				v.MOVB(v.at(i, off), r.As8())
			default:
				v.SHLQ(operand.U8(16), r)
				v.MOVW(v.at(i, off), r.As16())
			}
		}
		return r
	}
	x := v.XMM()
	if bits == 8 {
		v.VMOVQ(half(0, 8), x)
		return x
	}
	v.VMOVQ(half(0, 4), x)
	v.VPINSRQ(operand.U8(1), half(4, 4), x, x)
	return x
}

// halves turns the f16 at off of each row's block into floats.
func (v *eight) halves(off int) reg.VecVirtual {
	f := v.YMM()
	v.VCVTPH2PS(v.gather(off, 16), f)
	return f
}

// floats gathers the floats at off of each row's block.
func (v *eight) floats(off int) reg.VecVirtual {
	var four [2]reg.VecVirtual
	for k := range four {
		w := v.XMM()
		v.VMOVD(v.at(4*k, off), w)
		for i := 1; i < 4; i++ {
			v.VPINSRD(operand.U8(i), v.at(4*k+i, off), w, w)
		}
		four[k] = w
	}
	f := v.YMM()
	v.VINSERTI128(operand.U8(1), four[1], four[0].AsY(), f)
	return f
}

// halfPairs gathers the two f16 at off of each row's block.
func (v *eight) halfPairs(off int) (a, b reg.VecVirtual) {
	split := v.bytes32(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)
	var four [2]reg.VecVirtual
	for k := range four {
		w := v.XMM()
		v.VMOVD(v.at(4*k, off), w)
		for i := 1; i < 4; i++ {
			v.VPINSRD(operand.U8(i), v.at(4*k+i, off), w, w)
		}
		v.VPSHUFB(split, w, w)
		four[k] = w
	}
	x, y := v.XMM(), v.XMM()
	a, b = v.YMM(), v.YMM()
	v.VPUNPCKLQDQ(four[1], four[0], x)
	v.VPUNPCKHQDQ(four[1], four[0], y)
	v.VCVTPH2PS(x, a)
	v.VCVTPH2PS(y, b)
	return a, b
}

// powers is what turns bytes e into the floats 2^(e-128). The float with
// exponent bits e-1 is right from e = 2 on; below, the numbers are subnormal.
type powers struct{ one, two, small operand.Mem }

func (g *gen) powers() powers {
	return powers{g.bytes32(dwords(1)...), g.bytes32(dwords(2)...), g.bytes32(dwords(0x00200000)...)}
}

// gather does it with the byte at off of each row.
func (p powers) gather(v *eight, off int) reg.VecVirtual {
	b := v.gather(off, 8)
	e, d, s := v.YMM(), v.YMM(), v.YMM()
	v.VPMOVZXBD(b, e)
	v.VPSUBD(p.one, e, d)
	v.VPSLLD(operand.U8(23), d, d)
	v.VMOVDQU(p.small, s)
	v.VPSLLVD(e, s, s)
	two := v.keep(p.two)
	v.VPCMPGTD(e, two, e)
	v.VPBLENDVB(e, s, d, d)
	return d
}
