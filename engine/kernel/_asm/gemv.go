package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gemv is the state of a kernel that multiplies groups of eight rows with one
// vector. The elements of its accumulator are the rows, so that each row's block
// sums are added in order, one after the other.
type gemv struct {
	eight
	acc   reg.VecVirtual
	x     reg.GPVirtual // the vector's current block
	ahead reg.GPVirtual // where the next prefetches begin
}

// Offsets in block8 and blockK of the Go code.
const (
	block8Bytes = 48
	block8Scale = 32
	block8NSum  = 36
	block8S     = 40

	blockKBytes = 320
	blockKSum16 = 256
	blockKSum32 = 288
	blockKScale = 304
)

// prefetchAhead is added to the distance of a group. Measured on Zen 4: 4 to 16
// KiB are the same within noise.
const prefetchAhead = 8192

// gemv writes a kernel. setup emits what is done once (constants to keep in
// registers) and returns what emits the work of one block: that adds to acc and
// leaves all pointers alone.
func (g *gen) gemv(name, doc string, wBytes, xBytes int, setup func(*gemv) func()) {
	doc += twin(name)
	name = "gemv" + name + g.suffix()
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.Doc(lines(name + " " + doc)...)
	g.SignatureExpr("func(dst *float32, w *byte, rowBytes, blocks, groups int, x *byte)")
	dst, w, rb := g.GP64(), g.GP64(), g.GP64()
	groups := g.GP64()
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("w"), w)
	g.Load(g.Param("rowBytes"), rb)
	g.Load(g.Param("groups"), groups)
	s3 := g.GP64()
	g.LEAQ(operand.Mem{Base: rb, Index: rb, Scale: 2}, s3)

	v := &gemv{eight: eight{gen: g}, acc: g.YMM(), x: g.GP64()}
	body := setup(v)
	group, step := g.label("group"), g.label("block")
	g.Label(group)
	blocks, base, base4 := g.GP64(), g.GP64(), g.GP64()
	v.rows = rows{base: base, base4: base4, s: rb, s3: s3}
	g.Load(g.Param("x"), v.x)
	g.Load(g.Param("blocks"), blocks)
	g.MOVQ(w, base)
	g.LEAQ(operand.Mem{Base: w, Index: rb, Scale: 4}, base4)
	// Eight rows side by side are eight streams, which no hardware prefetcher
	// follows well: memory would deliver a fifth of its rate. Asking for the
	// bytes of the next group in the order of their addresses, while this one
	// is computed, reaches what a plain read does.
	ahead := g.GP64()
	v.ahead = ahead
	g.LEAQ(operand.Mem{Base: w, Index: rb, Scale: 8, Disp: prefetchAhead}, ahead)
	g.VXORPS(v.acc, v.acc, v.acc)
	g.Label(step)
	g.pending = nil
	for o := 0; o < 8*wBytes; o += 64 {
		g.pending = append(g.pending, at(ahead, o))
	}
	g.perRow = (len(g.pending) + 7) / 8
	body()
	g.prefetch(len(g.pending))
	g.ADDQ(operand.I32(8*wBytes), ahead)
	g.ADDQ(operand.I32(wBytes), base)
	g.ADDQ(operand.I32(wBytes), base4)
	g.ADDQ(operand.I32(xBytes), v.x)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef(step))
	g.VMOVUPS(v.acc, at(dst, 0))
	g.ADDQ(operand.I8(32), dst)
	g.LEAQ(operand.Mem{Base: w, Index: rb, Scale: 8}, w)
	g.DECQ(groups)
	g.JNZ(operand.LabelRef(group))
	g.VZEROUPPER()
	g.RET()
}

// keep loads a constant into a register.
func (g *gen) keep(m operand.Mem) reg.VecVirtual {
	r := g.YMM()
	g.VMOVDQU(m, r)
	return r
}

// hadd adds neighbouring int32: in each half, the pair sums of a, then of b.
func (g *gen) hadd(a, b reg.VecVirtual) reg.VecVirtual {
	d := g.YMM()
	g.VPHADDD(b, a, d)
	return d
}

// prefetch emits up to n of the block's prefetches.
func (g *gen) prefetch(n int) {
	for ; n > 0 && len(g.pending) > 0; n-- {
		g.PREFETCHT1(g.pending[0])
		g.pending = g.pending[1:]
	}
}

// sum8 adds up each of eight vectors of int32, given one after the other by
// next, into the elements of one.
func (g *gen) sum8(next func(i int) reg.VecVirtual) reg.VecVirtual {
	row := func(i int) reg.VecVirtual {
		g.prefetch(g.perRow)
		return next(i)
	}
	four := func(i int) reg.VecVirtual {
		a := g.hadd(row(i), row(i+1))
		b := g.hadd(row(i+2), row(i+3))
		return g.hadd(a, b)
	}
	a := four(0)
	b := four(4)
	lo, hi := g.YMM(), g.YMM()
	g.VPERM2I128(operand.U8(0x20), b, a, lo)
	g.VPERM2I128(operand.U8(0x31), b, a, hi)
	g.VPADDD(hi, lo, lo)
	return lo
}

// packAdd does the same as hadd where all sums fit an int16, cheaper.
func (g *gen) packAdd(a, b, ones reg.VecVirtual) reg.VecVirtual {
	d := g.YMM()
	g.VPACKSSDW(b, a, d)
	g.VPMADDWD(ones, d, d)
	return d
}

// sum4x2 is sum8 for four vectors whose halves belong to rows i and i+4.
// Each of their elements is a sum of eight products, of magnitude 127*largest at
// most.
func (g *gen) sum4x2(largest int, ones reg.VecVirtual, next func(i int) reg.VecVirtual) reg.VecVirtual {
	add := func(products int, a, b reg.VecVirtual) reg.VecVirtual {
		if products*127*largest <= 32767 {
			return g.packAdd(a, b, ones)
		}
		return g.hadd(a, b)
	}
	two := func(i int) reg.VecVirtual {
		g.prefetch(2 * g.perRow)
		return next(i)
	}
	a := add(8, two(0), two(1))
	b := add(8, two(2), two(3))
	return add(16, a, b)
}

// accumulate adds float(sum) * (w * x) to the accumulator, x being the
// vector's scale, off bytes into its block.
func (v *gemv) accumulate(sum, w reg.VecVirtual, off int) {
	v.VCVTDQ2PS(sum, sum)
	x := v.YMM()
	v.VBROADCASTSS(at(v.x, off), x)
	v.VMULPS(x, w, w)
	v.VMULPS(w, sum, sum)
	v.VADDPS(sum, v.acc, v.acc)
}

// shifted subtracts from each element the vector's sum of codes times 2^bits:
// what unsigned weights have too much.
func (v *gemv) shifted(sum reg.VecVirtual, bits int) {
	s := v.YMM()
	v.VPBROADCASTD(at(v.x, block8NSum), s)
	v.VPSLLD(operand.U8(bits), s, s)
	v.VPADDD(s, sum, sum)
}

func init() {
	files = append(files, file{"prepare_avx2_amd64", func(g *gen) {
		g.prepareQ8()
		g.prepareQ8K()
		g.roundF16()
	}}, file{"gemvf_avx2_amd64", (*gen).gemvFloats}, file{"gemv32_avx2_amd64", (*gen).gemv32}, file{"gemvk_avx2_amd64", (*gen).gemvK},
		file{"gemm_avx2_amd64", (*gen).gemms}, file{"pack_avx2_amd64", (*gen).packs},
		file{"gemm_avx512_amd64", func(g *gen) {
			g.vnni = true
			g.gemms()
		}}, file{"pack_avx512_amd64", func(g *gen) {
			g.vnni = true
			g.packs()
		}},
		file{"gemv32_avx512_amd64", func(g *gen) {
			g.vnni = true
			g.gemv32()
		}})
}

// gemv32 writes the kernels for blocks of 32.
func (g *gen) gemv32() {
	g.gemvQ8_0()
	g.gemvQ4_0()
	g.gemvQ4_1()
	g.gemvQ5_0()
	g.gemvQ5_1()
	g.gemvIQ4NL()
	g.gemvMXFP4()
	g.gemvNVFP4()
}

// gemvK writes the kernels for superblocks. AVX-512 has no faster way to do
// their arithmetic at this width: VPDPWSSD for a multiplication and an addition
// measured 2 to 5% slower on Zen 4.
func (g *gen) gemvK() {
	g.gemvQ2K()
	g.gemvQ3K()
	g.gemvQ4K()
	g.gemvQ5K()
	g.gemvQ6K()
	g.gemvIQ4XS()
}

func (g *gen) packs() {
	g.pack32()
	g.packK()
}
