package main

// armGemm is the state of a kernel that multiplies a tile of eight rows, two
// registers, with four vectors. The tile is packed by the Go code of
// tile_arm64.go; its codes are signed, so that nothing has to be taken off.
type armGemm struct {
	*arm
	acc [4][2]v // unused where the sums take too many registers
}

// General registers: R0 the first dst, R1 the tile, R2 the blocks left, R4 to R7
// the vectors' current blocks, R8 to R11 where each vector's results go.
const (
	rTile = 1
	rVec  = 4
	rOut  = 8
)

// gemm writes a kernel; see gen.gemm. With inMemory the results are kept in
// dst from block to block.
func (a *arm) gemm(name, doc string, wBlock, xBlock int, inMemory bool, body func(g *armGemm)) {
	a.function("gemm"+name+"DotProd", doc+twins, "dst *float32, stride int, tile *byte, blocks int, x *[8]*byte", 40)
	a.line("MOVD dst+0(FP), R8")
	a.line("MOVD stride+8(FP), R3")
	a.line("MOVD tile+16(FP), R1")
	a.line("MOVD blocks+24(FP), R2")
	a.line("MOVD x+32(FP), R0")
	for t := range 4 {
		a.line("MOVD %d(R0), R%d", 8*t, rVec+t)
		if t > 0 {
			a.line("ADD R3<<2, R%d, R%d", rOut+t-1, rOut+t)
		}
	}
	g := &armGemm{arm: a}
	if inMemory {
		z := a.get()
		a.movi(z, 0)
		for t := range 4 {
			a.stqU(z, rOut+t, 0)
			a.stqU(z, rOut+t, 16)
		}
		a.put(z)
	} else {
		for t := range g.acc {
			for h := range g.acc[t] {
				g.acc[t][h] = a.get()
				a.movi(g.acc[t][h], 0)
			}
		}
	}
	loop := a.label("block")
	a.at(loop)
	body(g)
	a.line("ADD $%d, R1, R1", wBlock)
	for t := range 4 {
		a.line("ADD $%d, R%d, R%d", xBlock, rVec+t, rVec+t)
	}
	a.line("SUBS $1, R2, R2")
	a.line("BNE %s", loop)
	if !inMemory {
		for t := range 4 {
			a.stqU(g.acc[t][0], rOut+t, 0)
			a.stqU(g.acc[t][1], rOut+t, 16)
		}
	}
	a.line("RET")
}

// stqU stores 16 bytes at any small offset.
func (a *arm) stqU(s v, base, off int) {
	a.word(0x3c800000|uint32(off&0x1ff)<<12|uint32(base)<<5|uint32(s), "stur q%d, [x%d, #%d]", s, base, off)
}

func (g *armGemm) pairs(fresh bool) (s [4][2]v) {
	for t := range s {
		for h := range s[t] {
			s[t][h] = g.get()
			if fresh {
				g.movi(s[t][h], 0)
			}
		}
	}
	return s
}

func (g *armGemm) putPairs(s [4][2]v) {
	for t := range s {
		g.put(s[t][0], s[t][1])
	}
}

// dots adds to sums the products of 16 entries: four steps of the tile from
// byte off on with the vectors' codes from byte code on.
func (g *armGemm) dots(sums [4][2]v, off, code int) {
	x, w := g.gets(4), g.gets(2)
	for t := range x {
		g.ldq(x[t], rVec+t, code)
	}
	for s := range 4 {
		g.ldq(w[0], rTile, off+32*s)
		g.ldq(w[1], rTile, off+32*s+16)
		for t := range x {
			g.sdotE(sums[t][0], w[0], x[t], s)
			g.sdotE(sums[t][1], w[1], x[t], s)
		}
	}
	g.put(x...)
	g.put(w...)
}

// gemm32 is for blocks of 32: scales, minima if there are any, and eight steps.
func (a *arm) gemm32(name string, mins bool) {
	first := 32
	if mins {
		first = 64
	}
	a.gemm(name, "is for blocks of 32. It takes 4 vectors.", first+256, block8Bytes, false, func(g *armGemm) {
		sums := g.pairs(true)
		g.dots(sums, first, 0)
		g.dots(sums, first+128, 16)
		d, m := g.gets(2), []v(nil)
		for h := range d {
			g.ldq(d[h], rTile, 16*h)
		}
		if mins {
			m = g.gets(2)
			for h := range m {
				g.ldq(m[h], rTile, 32+16*h)
			}
		}
		x, p := g.get(), g.get()
		for t := range sums {
			g.ldq(x, rVec+t, block8Scale)
			for h, s := range sums[t] {
				g.un(scvtf, s, s)
				g.fmulE(p, d[h], x, elemScale)
				g.do(fmul, s, s, p)
				if mins {
					g.fmulE(p, m[h], x, elemS)
					g.do(fadd, s, s, p)
				}
				g.do(fadd, g.acc[t][h], g.acc[t][h], s)
			}
		}
	})
}

// gemmK is for superblocks. A tile's superblock: the scales d; with minima, their
// factors, and then for each group its minima as int16; for each group its
// scales as int32 and its steps.
func (a *arm) gemmK(name string, group int, mins bool) {
	groups := 256 / group
	first := 32
	if mins {
		first = 64 + 16*groups
	}
	stride := 32 + 8*group
	a.gemm(name, "is for superblocks. It takes 4 vectors.", first+groups*stride, blockKBytes, true, func(g *armGemm) {
		g.high = true
		sums := g.pairs(true)
		for j := range groups {
			dots := g.pairs(true)
			base := first + j*stride
			for e := 0; e < group; e += 16 {
				g.dots(dots, base+32+8*e, group*j+e)
			}
			sc := g.gets(2)
			for h := range sc {
				g.ldq(sc[h], rTile, base+16*h)
			}
			for t := range sums {
				for h := range sc {
					g.do(mlaS, sums[t][h], dots[t][h], sc[h])
				}
			}
			g.put(sc...)
			g.putPairs(dots)
		}
		var low [4][2]v
		if mins {
			low = g.pairs(true)
			for part := range groups / 8 {
				// Element numbers of int16 need a register below 16.
				var x [4]v
				for t := range x {
					x[t] = g.getLow()
					off := blockKSum32
					if group == 16 {
						off = blockKSum16 + 16*part
					}
					g.ldq(x[t], rVec+t, off)
				}
				for j := range 8 {
					m := g.get()
					g.ldq(m, rTile, 64+16*(8*part+j))
					for t := range x {
						g.smlalE(low[t][0], m, x[t], j, false)
						g.smlalE(low[t][1], m, x[t], j, true)
					}
					g.put(m)
				}
				g.put(x[:]...)
			}
		}
		x, p, d := g.get(), g.get(), g.get()
		for t := range sums {
			g.ldq(x, rVec+t, blockKScale)
			for h, s := range sums[t] {
				g.ldq(d, rTile, 16*h)
				g.fmulE(p, d, x, 0)
				g.un(scvtf, s, s)
				g.do(fmul, s, s, p)
				if mins {
					g.ldq(d, rTile, 32+16*h)
					g.fmulE(p, d, x, 0)
					g.un(scvtf, low[t][h], low[t][h])
					g.do(fmul, p, low[t][h], p)
					g.do(fsub, s, s, p)
				}
				g.ldq(p, rOut+t, 16*h)
				g.do(fadd, p, p, s)
				g.stqU(p, rOut+t, 16*h)
			}
		}
	})
}

// getLow takes a free register below 16.
func (a *arm) getLow() v {
	for i, r := range a.free {
		if r < 16 {
			a.free = append(a.free[:i:i], a.free[i+1:]...)
			return r
		}
	}
	panic("out of low vector registers")
}

// smlalE adds four (or with high the last four) int16 of n times int16 i of m.
func (a *arm) smlalE(d, n, m v, i int, high bool) {
	enc, name := uint32(0x0f402000), "smlal"
	if high {
		enc, name = 0x4f402000, "smlal2"
	}
	a.word(enc|uint32(i>>2)<<11|uint32(i>>1&1)<<21|uint32(i&1)<<20|uint32(m)<<16|uint32(n)<<5|uint32(d),
		"%s v%d.4s, v%d, v%d.h[%d]", name, d, n, m, i)
}

func (a *arm) gemms() {
	a.gemm32("32", false)
	a.gemm32("Min", true)
	a.gemmK("K32Min", 32, true)
	a.gemmK("K32", 32, false)
	a.gemmK("K16Min", 16, true)
	a.gemmK("K16", 16, false)
}
