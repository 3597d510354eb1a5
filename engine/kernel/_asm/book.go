package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Kernels for the code-book types. Eight weights (four in the IQ3 types) are an
// entry of a table, so a row needs a load for its index and a load for its entry,
// and no vector instruction does that faster: a gather takes a dozen steps
// itself, on the processors that were measured. What is left goes through vectors:
// indices of more than eight bits, signs and scales are taken apart for a whole
// superblock at a time. They go over memory, for eight rows before the first of
// them is multiplied: a load that follows too soon on a wider store is slow.

// bookType is what differs between the code-book types.
type bookType struct {
	name, doc string
	bytes     int
	table     string  // the Go variable with the code book
	factor    float32 // times the f16 is what the integers are scaled by
	half      int     // where that f16 stands
	area      int     // bytes for what is taken apart of a row: 64, 128 or 256
	setup     func(b *book) bookRow
}

// bookRow emits the parts of a row's block.
type bookRow struct {
	// block is done once for the eight rows of a gemv kernel.
	block func()
	// row takes apart what stands beside the codes, into the area.
	row func()
	// codes returns group k's 32 entries of the code book.
	codes func(k int) reg.VecVirtual
	// signs is where group k's signs are in the area, see signed.
	signs func(k int) operand.Mem
	// scale returns what multiplies group k's sums: pairs of words.
	scale func(k int) operand.Op
	// rest returns what is to be added to eight times the sum of the products of
	// codes. weights turns a group's codes into weights. They are nil where a code
	// with its sign is the weight.
	rest    func() reg.VecVirtual
	weights func(k int, q reg.VecVirtual)
	// scales returns the sixteen scales in their order.
	scales func() reg.VecVirtual
	// factor brings the block's f16 in a register's lowest word, factors those of
	// eight rows as floats. They are nil if it stands in one piece.
	factor, factors func() reg.VecVirtual
}

// book is the state of a kernel that goes through blocks of rows one at a time.
type book struct {
	*super
	block reg.GPVirtual // the row's current one
	table reg.GPVirtual
	area  func(off int) operand.Mem // the row's area

	scale8 reg.VecVirtual // the scales of a type that keeps them in a register

	spread, select8 reg.VecVirtual // constants: see minus
}

func newBook(s *super, t bookType) *book {
	b := &book{super: s, block: s.GP64(), table: s.GP64()}
	s.LEAQ(operand.NewDataAddr(operand.Symbol{Name: "·" + t.table}, 0), b.table)
	return b
}

// mem is the memory off bytes into the row's block.
func (b *book) mem(off int) operand.Mem { return at(b.block, off) }

// numbers returns the indices of size bytes each that stand at m, one after the
// other. They are loaded some at a time and taken apart in general registers:
// loads are what these kernels have most of.
func (b *book) numbers(size int, m operand.Mem, n int) func() reg.GPVirtual {
	var word reg.GPVirtual
	left, per := 0, min(n, 8/size)
	return func() reg.GPVirtual {
		if left == 0 {
			word, left = b.GP64(), per
			if per*size == 4 {
				b.MOVL(m, word.As32())
			} else {
				b.MOVQ(m, word)
			}
			m = m.Offset(per * size)
		} else {
			b.SHRQ(operand.U8(8*size), word)
		}
		left--
		if left == 0 {
			return word
		}
		r := b.GP64()
		if size == 1 {
			b.MOVBLZX(word.As8(), r.As32())
		} else {
			b.MOVWLZX(word.As16(), r.As32())
		}
		return r
	}
}

// eights joins four entries of eight bytes, whose indices of size bytes stand at
// m; scale is the bytes of an entry for each step of an index.
func (b *book) eights(size int, scale uint8, m operand.Mem) reg.VecVirtual {
	next := b.numbers(size, m, 4)
	q, hi := b.YMM(), b.YMM()
	for _, r := range []reg.VecVirtual{q, hi} {
		b.entries2(r, scale, next)
	}
	b.VINSERTI128(operand.U8(1), hi.AsX(), q, q)
	return q
}

// entries2 loads two entries into the lower half of r.
func (b *book) entries2(r reg.VecVirtual, scale uint8, next func() reg.GPVirtual) {
	b.clearing("VMOVQ", r, operand.Mem{Base: b.table, Index: next(), Scale: scale})
	b.VMOVHPS(operand.Mem{Base: b.table, Index: next(), Scale: scale}, r.AsX(), r.AsX())
}

// fours joins eight entries of four bytes. Each load brings four bytes too many.
func (b *book) fours(size int, m operand.Mem) reg.VecVirtual {
	next := b.numbers(size, m, 8)
	var r [4]reg.VecVirtual
	for i := range r {
		r[i] = b.YMM()
		b.entries2(r[i], 4, next)
	}
	b.VINSERTI128(operand.U8(1), r[2].AsX(), r[0], r[0])
	b.VINSERTI128(operand.U8(1), r[3].AsX(), r[1], r[1])
	b.VSHUFPS(operand.U8(0x88), r[1], r[0], r[0])
	return r[0]
}

// join loads four times eight bytes into a register.
func (g *gen) join(m func(k int) operand.Mem) reg.VecVirtual {
	r, hi := g.YMM(), g.XMM()
	g.clearing("VMOVQ", r, m(0))
	g.VMOVHPS(m(1), r.AsX(), r.AsX())
	g.VMOVQ(m(2), hi)
	g.VMOVHPS(m(3), hi, hi)
	g.VINSERTI128(operand.U8(1), hi, r, r)
	return r
}

// setSigns prepares minus.
func (b *book) setSigns() {
	b.select8 = b.keep(b.bytes32(words(128, 32, 8, 2)...))
	order := make([]byte, 32)
	for i := range order {
		order[i] = byte(i/8 + i%2*4)
	}
	b.spread = b.keep(b.bytes32(order...))
}

// minus returns a register whose bytes have their top bit set where a weight is
// negative. Its signs are at m: the 32 bits, and the same four bytes shifted down
// by 1. A word of the register gets a byte of each, so that one multiplication
// moves two neighbouring bits to the tops of its bytes.
func (b *book) minus(m operand.Mem) reg.VecVirtual {
	s := b.YMM()
	b.VPBROADCASTQ(m, s)
	b.VPSHUFB(b.spread, s, s)
	b.VPMULLW(b.select8, s, s)
	return s
}

// putSigns stores 32 bytes of signs for minus from off on, eight bytes for each
// group. Groups that are in order become joined, and the other way round.
func (b *book) putSigns(off int, s reg.VecVirtual) {
	t, u := b.YMM(), b.YMM()
	b.VPSRLW(operand.U8(1), s, t)
	b.VPUNPCKLDQ(t, s, u)
	b.VMOVDQU(u, b.area(off))
	b.VPUNPCKHDQ(t, s, u)
	b.VMOVDQU(u, b.area(off+32))
}

// joined is the order of eight groups after two vectors of them were joined half
// by half: group k's place.
var joined = [8]int{0, 1, 4, 5, 2, 3, 6, 7}

// evenSigns completes bytes of seven bits: the eighth makes the number of bits
// even.
func (b *book) evenSigns(s reg.VecVirtual) {
	p := b.YMM()
	b.VPSRLW(operand.U8(4), s, p)
	b.VPXOR(s, p, p)
	b.VPAND(b.low, p, p)
	parity := make([]byte, 16)
	for i := range parity {
		parity[i] = byte(i^i>>1^i>>2^i>>3) << 7
	}
	c := b.YMM()
	b.VMOVDQU(b.bytes32(parity...), c)
	b.VPSHUFB(p, c, p)
	b.VPOR(p, s, s)
}

// signsAndScales takes dwords of four times seven bits of signs and a scale s of
// four bits apart: pairs of 2s+1 go to the beginning of the area, signs behind.
func (b *book) signsAndScales(t reg.VecVirtual) {
	s, u := b.YMM(), b.YMM()
	b.VPSRLD(operand.U8(27), t, s)
	b.VPSHUFB(b.bytes32(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13), s, s)
	b.VPAND(b.bytes32(words(0x1e)...), s, s)
	b.VPOR(b.bytes32(words(1)...), s, s)
	b.VMOVDQU(s, b.area(0))
	// The 28 bits, first 14 to each word, then 7 to each byte.
	b.VPSLLD(operand.U8(2), t, u)
	b.VPBLENDW(operand.U8(0xaa), u, t, t)
	b.VPSLLW(operand.U8(1), t, u)
	b.VPAND(b.bytes32(words(0x7f00)...), u, u)
	b.VPAND(b.bytes32(words(0x007f)...), t, t)
	b.VPOR(u, t, t)
	b.evenSigns(t)
	b.putSigns(32, t)
}

// nibbles16 puts 2s+1 for the sixteen scales of four bits at from into the area,
// as words in even-odd order.
func (b *book) nibbles16(from, off int) {
	s, h := b.YMM(), b.XMM()
	b.clearing("VPMOVZXBW", s, b.mem(from))
	b.VPSRLW(operand.U8(4), s.AsX(), h)
	b.VPAND(b.low.AsX(), s.AsX(), s.AsX())
	b.VINSERTI128(operand.U8(1), h, s, s)
	b.VPADDW(s, s, s)
	b.VPOR(b.bytes32(words(1)...), s, s)
	b.VMOVDQU(s, b.area(off))
}

// inOrder brings words of the area in even-odd order into their own.
func (b *book) inOrder(off int) reg.VecVirtual {
	even, lo, hi := b.XMM(), b.YMM(), b.XMM()
	b.VMOVDQU(b.area(off), even)
	b.clearing("VPUNPCKLWD", lo, b.area(off+16), even)
	b.VPUNPCKHWD(b.area(off+16), even, hi)
	b.VINSERTI128(operand.U8(1), hi, lo, lo)
	return lo
}

// high adds to sixteen bytes of indices at qs, extended to words, bits from a
// vector whose byte order puts into each word; they are moved by a
// multiplication and selected by mask. The words go to the area, from off on.
func (b *book) high(off, qs int, times2 bool, from reg.VecVirtual, order []byte, factors []uint16, mask uint16) {
	q, h := b.YMM(), b.YMM()
	b.VPMOVZXBW(b.mem(qs), q)
	if times2 {
		b.VPADDW(q, q, q)
	}
	b.VPSHUFB(b.bytes32(order...), from, h)
	b.VPMULLW(b.bytes32(words(factors...)...), h, h)
	b.VPAND(b.bytes32(words(mask)...), h, h)
	b.VPOR(h, q, q)
	b.VMOVDQU(q, b.area(off))
}

// books are the types of two and three bits.
var books = []bookType{
	{"IQ2XXS", "IQ2_XXS", 66, "bookIQ2XXS", 0.125, 0, 128, func(b *book) bookRow {
		return bookRow{
			row: func() {
				t, u := b.YMM(), b.YMM()
				b.VMOVUPS(b.mem(2), t)
				b.VMOVUPS(b.mem(34), u)
				b.VSHUFPS(operand.U8(0xdd), u, t, t) // joined
				b.signsAndScales(t)
			},
			codes: func(k int) reg.VecVirtual {
				return b.eights(1, 8, b.mem(2+8*k))
			},
			signs: func(k int) operand.Mem { return b.area(32 + 8*k) },
			scale: func(k int) operand.Op { return b.pair(4 * joined[k]) },
			scales: func() reg.VecVirtual {
				s := b.pairs(0)
				b.VPERMQ(operand.U8(0xd8), s, s)
				return s
			},
		}
	}},
	{"IQ2XS", "IQ2_XS", 74, "bookIQ2XS", 0.125, 0, 256, func(b *book) bookRow {
		return bookRow{
			row: func() {
				var sign [2]reg.VecVirtual
				for k := range 2 {
					q := b.YMM()
					b.VMOVDQU(b.mem(2+32*k), q)
					sign[k] = b.YMM()
					b.VPSRLW(operand.U8(9), q, sign[k])
					b.VPAND(b.bytes32(words(511)...), q, q)
					b.VMOVDQU(q, b.area(32*k))
				}
				b.VPACKUSWB(sign[1], sign[0], sign[0]) // joined
				b.evenSigns(sign[0])
				b.putSigns(64, sign[0])
				b.nibbles16(66, 128)
			},
			codes:  func(k int) reg.VecVirtual { return b.eights(2, 8, b.area(8*k)) },
			signs:  func(k int) operand.Mem { return b.area(64 + 8*k) },
			scale:  func(k int) operand.Op { return b.oddEven(128, k) },
			scales: func() reg.VecVirtual { return b.inOrder(128) },
		}
	}},
	{"IQ2S", "IQ2_S", 82, "bookIQ2S", 0.125, 0, 256, func(b *book) bookRow {
		z := byte(0x80)
		order := []byte{0, z, 0, z, 0, z, 0, z, 1, z, 1, z, 1, z, 1, z, 2, z, 2, z, 2, z, 2, z, 3, z, 3, z, 3, z, 3, z}
		return bookRow{
			row: func() {
				for k := range 2 {
					h := b.YMM()
					b.VPBROADCASTD(b.mem(66+4*k), h)
					b.high(32*k, 2+16*k, false, h, order, []uint16{256, 64, 16, 4}, 0x300)
				}
				s := b.YMM()
				b.VMOVDQU(b.mem(34), s)
				b.putSigns(64, s)
				b.nibbles16(74, 128)
			},
			codes:  func(k int) reg.VecVirtual { return b.eights(2, 8, b.area(8*k)) },
			signs:  func(k int) operand.Mem { return b.area(64 + 8*joined[k]) },
			scale:  func(k int) operand.Op { return b.oddEven(128, k) },
			scales: func() reg.VecVirtual { return b.inOrder(128) },
		}
	}},
	{"IQ3XXS", "IQ3_XXS", 98, "bookIQ3XXS", 0.25, 0, 128, func(b *book) bookRow {
		return bookRow{
			row: func() {
				t := b.YMM()
				b.VMOVDQU(b.mem(66), t)
				b.signsAndScales(t)
			},
			codes: func(k int) reg.VecVirtual {
				return b.fours(1, b.mem(2+8*k))
			},
			signs:  func(k int) operand.Mem { return b.area(32 + 8*joined[k]) },
			scale:  func(k int) operand.Op { return b.pair(4 * k) },
			scales: func() reg.VecVirtual { return b.pairs(0) },
		}
	}},
	{"IQ3S", "IQ3_S", 110, "bookIQ3S", 1, 0, 256, func(b *book) bookRow {
		z := byte(0x80)
		return bookRow{
			row: func() {
				h, s := b.YMM(), b.YMM()
				b.VPBROADCASTQ(b.mem(66), h)
				for k := range byte(4) {
					var order []byte
					for i := range byte(16) {
						order = append(order, 2*k+i/8, z)
					}
					b.high(64+32*int(k), 2+16*int(k), false, h, order, []uint16{256, 128, 64, 32, 16, 8, 4, 2}, 0x100)
				}
				b.VPBROADCASTD(b.mem(106), s)
				b.VPSHUFB(b.bytes32(0, z, 0, z, 0, z, 0, z, 1, z, 1, z, 1, z, 1, z, 2, z, 2, z, 2, z, 2, z, 3, z, 3, z, 3, z, 3, z), s, s)
				b.VPSRLVD(b.bytes32(dwords(0, 4)...), s, s)
				b.VPAND(b.bytes32(words(15)...), s, s)
				b.VPADDW(s, s, s)
				b.VPOR(b.bytes32(words(1)...), s, s)
				b.VMOVDQU(s, b.area(192))
				t := b.YMM()
				b.VMOVDQU(b.mem(74), t)
				b.putSigns(0, t)
			},
			codes:  func(k int) reg.VecVirtual { return b.fours(2, b.area(64+16*k)) },
			signs:  func(k int) operand.Mem { return b.area(8 * joined[k]) },
			scale:  func(k int) operand.Op { return b.pair(192 + 4*k) },
			scales: func() reg.VecVirtual { return b.pairs(192) },
		}
	}},
}

// pair returns a scale from the area, twice in each dword.
func (b *book) pair(off int) operand.Op {
	r := b.YMM()
	b.VPBROADCASTD(b.area(off), r)
	return r
}

// pairs returns 32 bytes of the area.
func (b *book) pairs(off int) reg.VecVirtual {
	r := b.YMM()
	b.VMOVDQU(b.area(off), r)
	return r
}

// oddEven is scale16 for scales in the area.
func (b *book) oddEven(off, k int) operand.Op {
	if k == 0 {
		b.scale8 = b.pairs(off)
	}
	return b.scale16(b.scale8, k)
}

// gemvBook writes the kernel of a code-book type. It loops over the eight rows of
// a group, so that its code stays small, and keeps each row's sums on the stack.
func (g *gen) gemvBook(t bookType) {
	g.gemv(t.name, "multiplies rows of "+t.doc+" with a Q8_K vector.", t.bytes, blockKBytes, func(v *gemv) func() {
		g.Attributes(0) // its frame is too large for NOSPLIT
		b := newBook(v.super(0), t)
		r := t.setup(b)
		sums, areas, negative := v.AllocLocal(256), v.AllocLocal(8*t.area), operand.Mem{}
		if r.signs != nil {
			b.setSigns()
			negative = v.AllocLocal(256)
		}
		return func() {
			if r.block != nil {
				r.block()
			}
			if r.signs != nil {
				zero := v.YMM()
				v.VPXOR(zero, zero, zero)
				for o := 0; o < 256; o += 32 {
					n := v.YMM()
					v.VPSUBB(b.codes(o), zero, n)
					v.VMOVDQU(n, negative.Offset(o))
				}
			}
			g.pending = nil  // the rows ask for one row's bytes each
			done := g.GP64() // rows, times 32
			b.area = func(off int) operand.Mem {
				m := areas.Offset(off)
				m.Index, m.Scale = done, uint8(t.area/32)
				return m
			}
			sum := sums
			sum.Index, sum.Scale = done, 1
			rows := func(work func()) {
				v.MOVQ(v.base, b.block)
				v.XORL(done.As32(), done.As32())
				row := g.label("row")
				v.Label(row)
				work()
				v.ADDQ(v.s, b.block)
				v.ADDQ(operand.I8(32), done)
				v.CMPQ(done, operand.I32(256))
				v.JNE(operand.LabelRef(row))
			}
			rows(func() {
				for o := 0; o < t.bytes; o += 64 {
					v.PREFETCHT1(at(v.ahead, o))
				}
				v.ADDQ(operand.I8(t.bytes), v.ahead)
				r.row()
				if r.rest != nil {
					v.VMOVDQU(r.rest(), sum)
				}
			})
			v.SUBQ(operand.I32(8*t.bytes), v.ahead)
			rows(func() {
				acc := v.YMM()
				for k := range 8 {
					q := r.codes(k)
					if r.signs != nil {
						x := v.YMM()
						v.VMOVDQU(b.codes(32*k), x)
						v.VPBLENDVB(b.minus(r.signs(k)), negative.Offset(32*k), x, x)
						v.VPMADDUBSW(x, q, q)
					} else {
						v.VPMADDUBSW(b.codes(32*k), q, q)
					}
					b.weigh(acc, q, r.scale(k), k == 0)
				}
				if r.rest != nil {
					v.VPSLLD(operand.U8(3), acc, acc)
					v.VPADDD(sum, acc, acc)
				}
				v.VMOVDQU(acc, sum)
			})

			total := v.sumStack(sums)
			var d reg.VecVirtual
			if r.factors != nil {
				d = r.factors()
			} else {
				d = v.halves(t.half)
			}
			v.VMULPS(v.floats32(t.factor), d, d)
			v.accumulate(total, d, blockKScale)
		}
	})
}

// sumStack is sum8 for vectors that lie on the stack.
func (g *gen) sumStack(m operand.Mem) reg.VecVirtual {
	return g.sum8(func(i int) reg.VecVirtual {
		r := g.YMM()
		g.VMOVDQU(m.Offset(32*i), r)
		return r
	})
}

// unpack writes a kernel that does what quant.Unpack does. work emits it for a
// block; it leaves D to be stored: it returns an f16 in a register's lowest word,
// which is multiplied by factor.
func (g *gen) unpack(name, doc string, bytes int, factor float32, setup func(block reg.GPVirtual) (work func(dst reg.GPVirtual) reg.VecVirtual)) {
	name = "unpack" + name + g.suffix()
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.Doc(name + " takes blocks of " + doc + " apart into quant.Unpacked.")
	g.SignatureExpr("func(dst, w *byte, blocks int)")
	dst, block, blocks := g.GP64(), g.GP64(), g.GP64()
	work := setup(block)
	g.Load(g.Param("dst"), dst)
	g.Load(g.Param("w"), block)
	g.Load(g.Param("blocks"), blocks)
	loop := g.label("block")
	g.Label(loop)
	d := work(dst)
	g.VCVTPH2PS(d, d)
	g.VMULSS(g.floats32(factor), d, d)
	g.VMOVSS(d, at(dst, unpackedD))
	g.ADDQ(operand.I32(unpackedBytes), dst)
	g.ADDQ(operand.I8(bytes), block)
	g.DECQ(blocks)
	g.JNZ(operand.LabelRef(loop))
	g.VZEROUPPER()
	g.RET()
}

func (g *gen) unpackBook(t bookType) {
	g.unpack(t.name, t.doc, t.bytes, t.factor, func(block reg.GPVirtual) func(dst reg.GPVirtual) reg.VecVirtual {
		v := &gemv{eight: eight{gen: g}}
		b := newBook(v.super(0), t)
		b.block = block
		r := t.setup(b)
		if r.signs != nil {
			b.setSigns()
		}
		area := g.AllocLocal(t.area)
		b.area = func(off int) operand.Mem { return area.Offset(off) }
		return func(dst reg.GPVirtual) reg.VecVirtual {
			r.row()
			for k := range 8 {
				q := r.codes(k)
				if r.signs != nil {
					s := b.minus(r.signs(k))
					g.VPOR(g.bytes32(1), s, s) // a zero would make a zero
					g.VPSIGNB(s, q, q)
				}
				if r.weights != nil {
					r.weights(k, q)
				}
				g.VMOVDQU(q, at(dst, 32*k))
			}
			g.VMOVDQU(r.scales(), at(dst, unpackedScales))
			if r.factor != nil {
				return r.factor()
			}
			d := g.XMM()
			g.VPBROADCASTW(b.mem(t.half), d)
			return d
		}
	})
}
