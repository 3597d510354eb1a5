//go:build !(amd64 || arm64) || noasm

package vec

// There are no kernels, and the generic forms do all the work.

func (ops) siluMul(dst, gate, up []float32) int                  { return 0 }
func (ops) sigmoidMul(dst, gate, up []float32) int               { return 0 }
func (ops) mulRows(dst, m, w []float32) bool                     { return false }
func (ops) renew(dst, m, decay, k, q, d []float32) bool          { return false }
func (ops) sumSquares16(sum *[Partials]float64, x []float32) int { return 0 }
func (ops) scaleMul(dst, x, w []float32, scale float32) int      { return 0 }
func (ops) ropeNeox(lo, hi, cos, sin []float32) int              { return 0 }
func (ops) addScaled(dst, x []float32, w float32) int            { return 0 }
func (ops) toHalfPart(dst []uint16, src []float32) int           { return 0 }
func (ops) roundHalfPart(dst, src []float32) int                 { return 0 }
func (ops) addProductsPart(dst, a, b []float32) int              { return 0 }
func (ops) products16Part(dst, a, b []float32) int               { return 0 }
func (ops) rescalePart(x []float32, f float32) int               { return 0 }
func (ops) blendPart(dst, x []float32, a, b float32) int         { return 0 }

func (ops) softmaxBlock(s *[SoftmaxLen]float32, scale, m float32, half bool) (top, sum float32) {
	return softmaxBlockGeneric(s, scale, m, half)
}
