//go:build !(amd64 || arm64) || noasm

package attn

func (t tile) f32(dst, a, b []float32)          { t.f32Generic(dst, a, b) }
func (t tile) f16(dst, a []float32, b []uint16) { t.f16Generic(dst, a, b) }
func (t tile) i8(dst, a []float32, b []int8)    { t.i8Generic(dst, a, b) }
