//go:build !noasm

package kernel

import (
	"math/bits"

	"bmoe/engine/quant"
)

// What only the arm64 kernels look up.
var (
	// weightsIQ1 has eight times each value plus 1, then eight times less 1.
	weightsIQ1 [2 * 2048]uint64
	// signsAll has bytes of 255 where bits of the index are set, signsEven the same
	// of seven bits and the eighth that makes their number even.
	signsAll  [256]uint64
	signsEven [128]uint64
)

func fillOwnBooks() {
	fillBook(weightsIQ1[:2048], quant.IQ1_S, 8, 1)
	fillBook(weightsIQ1[2048:], quant.IQ1_S, 8, -1)
	for i := range signsAll {
		signsAll[i] = spreadBits[i] * 255
	}
	for i := range signsEven {
		signsEven[i] = signsAll[i|bits.OnesCount(uint(i))%2<<7]
	}
}
