//go:build !noasm

package kernel

import "bmoe/engine/quant"

// bookIQ1 holds the values plus 1.
var bookIQ1 [2048]uint64

func fillOwnBooks() { fillBook(bookIQ1[:], quant.IQ1_S, 1, 1) }
