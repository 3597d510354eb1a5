//go:build (amd64 || arm64) && !noasm

package kernel

import (
	"sync"
	"unsafe"

	"bmoe/engine/quant"
)

// The code books as the kernels read them: an entry's values as bytes, the first
// in the lowest. They are filled before the first kernel runs.
var (
	bookIQ2XXS [256]uint64
	bookIQ2XS  [512]uint64
	bookIQ2S   [1024]uint64
	// Entries of four values are loaded as eight bytes, so one more must follow.
	bookIQ3XXS [256 + 1]uint32
	bookIQ3S   [512 + 1]uint32
)

var fillBooks = sync.OnceFunc(func() {
	fillBook(bookIQ2XXS[:], quant.IQ2_XXS, 1, 0)
	fillBook(bookIQ2XS[:], quant.IQ2_XS, 1, 0)
	fillBook(bookIQ2S[:], quant.IQ2_S, 1, 0)
	fillBook(bookIQ3XXS[:], quant.IQ3_XXS, 1, 0)
	fillBook(bookIQ3S[:], quant.IQ3_S, 1, 0)
	fillOwnBooks()
})

// fillBook writes the values of type t, times mul, plus add.
func fillBook[E uint32 | uint64](book []E, t quant.Type, mul, add int8) {
	size := int(unsafe.Sizeof(book[0]))
	for i, v := range quant.CodeBook(t) {
		book[i/size] |= E(uint8(v*mul+add)) << (8 * (i % size))
	}
}
