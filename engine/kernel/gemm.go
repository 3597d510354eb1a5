package kernel

import "unsafe"

// gemmKernel is how a weight type is multiplied with many vectors: rows are
// repacked, a tile at a time, so that the elements of a register are rows, and each
// tile meets all vectors.
type gemmKernel struct {
	// pack writes the blocks of rows rows to a tile, with add added to the codes,
	// which makes them unsigned.
	pack func(tile, w *byte, rowBytes, blocks, add int)
	add  int
	tileKernel
}

// tileKernel multiplies tiles of one layout with vectors.
type tileKernel struct {
	// mul multiplies a tile with several vectors, writing the rows of each to
	// dst and stride elements further. half, if there is one, does so with half
	// as many vectors.
	mul, half mulFunc

	rows   int // of a tile; a register has as many elements of four bytes
	tokens int // vectors that mul takes
	slots  int // registers that a tile's block takes
}

// Slots of a block of 32: its codes, four a slot, the scale and, if there is one,
// the minimum.
const (
	q32Slots    = 8 + 1
	q32MinSlots = 8 + 2
)

type mulFunc func(dst *float32, stride int, tile *byte, blocks int, x *[8]*byte)

const (
	// gemmFrom is the number of vectors from which repacking pays.
	gemmFrom = 4
	// gemmTiles bounds the bytes of tiles that are packed before vectors are
	// gone through, gemmTokens the vectors that are gone through before the next
	// tile: both should stay in a cache of 256 KiB together.
	gemmTiles  = 96 << 10
	gemmTokens = 32
)

// gemm computes the call tile by tile. The matrix has at least k.rows rows. With
// unpack its rows are taken apart first.
func (c *call) gemm(k *gemmKernel, unpack bool) {
	s := getScratch()
	defer putScratch(s)
	_, blocks := s.at(c, 0)
	tileBytes := blocks * k.slots * k.rows * 4
	tiles := max(1, gemmTiles/tileBytes)
	mem := s.bytes(tiles * tileBytes)
	for r := c.r0; r < c.r1; r += tiles * k.rows {
		end := min(r+tiles*k.rows, c.r1)
		for i, q := 0, r; q < end; i, q = i+1, q+k.rows {
			w, rb := c.tileRows(k, s, q, blocks, unpack)
			k.pack(&mem[i*tileBytes], w, rb, blocks, k.add)
		}
		for j0 := 0; j0 < c.n; j0 += gemmTokens {
			n := min(gemmTokens, c.n-j0)
			for j := range s.ptrs {
				s.ptrs[j], _ = s.at(c, j0+min(j, n-1))
			}
			for i, q := 0, r; q < end; i, q = i+1, q+k.rows {
				for j := 0; j < n; j += k.tokens {
					c.mulTile(k, s, &mem[i*tileBytes], blocks, q, min(q+k.rows, end), j0, j, min(k.tokens, n-j))
				}
			}
		}
	}
}

// tileStart returns the first row of the tile that holds row q: q, or earlier
// where the matrix ends too soon after it.
func (c *call) tileStart(k *gemmKernel, q int) int { return min(q, c.w.Rows-k.rows) }

// tileRows returns the rows of that tile and the bytes from one to the next.
func (c *call) tileRows(k *gemmKernel, s *scratch, q, blocks int, unpack bool) (*byte, int) {
	first := c.tileStart(k, q)
	if !unpack {
		rb := c.w.RowBytes()
		return &c.w.Data[first*rb], rb
	}
	rows := s.rows(k.rows * blocks)
	for i := range k.rows {
		c.unpackRow(rows[i*blocks:(i+1)*blocks], first+i)
	}
	return (*byte)(unsafe.Pointer(&rows[0])), blocks * unpackedBytes
}

// at returns where the codes of the call's j-th token start, and its blocks.
func (s *scratch) at(c *call, j int) (*byte, int) {
	n := c.a.cols / c.form.block()
	o := c.token(j) * c.form.stride(c.a.cols)
	b := &c.a.bufs[c.form]
	if c.form == FormQ8_K {
		return (*byte)(unsafe.Pointer(&b.k[o])), n
	}
	return (*byte)(unsafe.Pointer(&b.q8[o])), n
}

// mulTile multiplies a tile, of whose rows q to end are wanted, with n tokens
// from the j-th of the group that starts at j0.
func (c *call) mulTile(k *gemmKernel, s *scratch, tile *byte, blocks, q, end, j0, j, n int) {
	x := (*[8]*byte)(s.ptrs[j:])
	mul, tokens := k.mul, k.tokens
	if k.half != nil && n <= k.tokens/2 {
		mul, tokens = k.half, k.tokens/2
	}
	if n == tokens && end-q == k.rows {
		mul(&c.dst[(j0+j)*c.stride+q-c.row0], c.stride, tile, blocks, x)
		return
	}
	mul(&s.out[0], k.rows, tile, blocks, x)
	skip := q - c.tileStart(k, q)
	for t := range n {
		copy(c.dst[(j0+j+t)*c.stride+q-c.row0:][:end-q], s.out[t*k.rows+skip:])
	}
}
