//go:build !(amd64 || arm64) || noasm

package vec

// There are no kernels, and the generic forms do all the work.

func siluMul(dst, gate, up []float32) int                  { return 0 }
func sigmoidMul(dst, gate, up []float32) int               { return 0 }
func mulRows(dst, m, w []float32) bool                     { return false }
func renew(dst, m, decay, k, q, d []float32) bool          { return false }
func sumSquares16(sum *[Partials]float64, x []float32) int { return 0 }
func scaleMul(dst, x, w []float32, scale float32) int      { return 0 }
func ropeNeox(lo, hi, cos, sin []float32) int              { return 0 }
func addScaled(dst, x []float32, w float32) int            { return 0 }
func toHalfPart(dst []uint16, src []float32) int           { return 0 }
func roundHalfPart(dst, src []float32) int                 { return 0 }
func addProductsPart(dst, a, b []float32) int              { return 0 }
func products16Part(dst, a, b []float32) int               { return 0 }
func rescalePart(x []float32, f float32) int               { return 0 }
func blendPart(dst, x []float32, a, b float32) int         { return 0 }

func softmaxBlock(s *[SoftmaxLen]float32, scale, m float32, half bool) (top, sum float32) {
	return softmaxBlockGeneric(s, scale, m, half)
}
