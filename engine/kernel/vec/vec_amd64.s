//go:build !noasm

#include "textflag.h"

// Rows of ·expTable, 32 bytes each.
#define HIGH   0(R8)
#define LOW    32(R8)
#define LOG2E  64(R8)
#define MAGIC  96(R8)
#define LN2HI  128(R8)
#define LN2LO  160(R8)
#define C6     192(R8)
#define C5     224(R8)
#define C4     256(R8)
#define C3     288(R8)
#define C2     320(R8)
#define ONE    352(R8)
#define BIAS   384(R8)
#define SIGN   416(R8)

// EXP replaces x by e^x, as Exp32 does, operation by operation, except for the
// upper limit. MAX returns its second source if one is NaN, so NaN stays. t, k
// and p are clobbered.
#define EXP(x, t, k, p) \
	VMOVUPS LOW, t;       \
	VMAXPS  x, t, x;      \
	VMULPS  LOG2E, x, t;  \
	VADDPS  MAGIC, t, t;  \
	VSUBPS  MAGIC, t, k;  \
	VMULPS  LN2HI, k, p;  \
	VSUBPS  p, x, x;      \
	VMULPS  LN2LO, k, p;  \
	VSUBPS  p, x, x;      \
	VMULPS  C6, x, p;     \
	VADDPS  C5, p, p;     \
	VMULPS  p, x, p;      \
	VADDPS  C4, p, p;     \
	VMULPS  p, x, p;      \
	VADDPS  C3, p, p;     \
	VMULPS  p, x, p;      \
	VADDPS  C2, p, p;     \
	VMULPS  x, x, k;      \
	VMULPS  k, p, p;      \
	VADDPS  x, p, p;      \
	VADDPS  ONE, p, p;    \
	VPSUBD  MAGIC, t, t;  \
	VPSRAD  $1, t, k;     \
	VPSUBD  k, t, t;      \
	VPADDD  BIAS, k, k;   \
	VPADDD  BIAS, t, t;   \
	VPSLLD  $23, k, k;    \
	VPSLLD  $23, t, t;    \
	VMULPS  k, p, p;      \
	VMULPS  t, p, x

// func siluMulVec(dst, gate, up *float32, n int)
// n is a positive multiple of 8.
TEXT ·siluMulVec(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ gate+8(FP), SI
	MOVQ up+16(FP), DX
	MOVQ n+24(FP), CX
	LEAQ ·expTable(SB), R8
silu:
	VMOVUPS (SI), Y0
	VXORPS  SIGN, Y0, Y1
	VMOVUPS HIGH, Y2
	VMINPS  Y1, Y2, Y1
	EXP(Y1, Y2, Y3, Y4)
	VADDPS  ONE, Y1, Y1
	VDIVPS  Y1, Y0, Y0
	VMULPS  (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     silu
	VZEROUPPER
	RET

// func sigmoidMulVec(dst, gate, up *float32, n int)
// n is a positive multiple of 8.
TEXT ·sigmoidMulVec(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ gate+8(FP), SI
	MOVQ up+16(FP), DX
	MOVQ n+24(FP), CX
	LEAQ ·expTable(SB), R8
sigmoid:
	VMOVUPS (SI), Y0
	VXORPS  SIGN, Y0, Y1
	VMOVUPS HIGH, Y2
	VMINPS  Y1, Y2, Y1
	EXP(Y1, Y2, Y3, Y4)
	VADDPS  ONE, Y1, Y1
	VMOVUPS (DX), Y0
	VDIVPS  Y1, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     sigmoid
	VZEROUPPER
	RET

// WEIGHTS turns the scaled scores at off into weights. Y8 is the maximum.
#define WEIGHTS(off, sum) \
	VMOVUPS off(DI), Y0;   \
	VSUBPS  Y8, Y0, Y0;    \
	EXP(Y0, Y1, Y2, Y3);   \
	VMOVUPS Y0, off(DI);   \
	VADDPS  Y0, sum, sum

#define WEIGHTS_HALF(off, sum) \
	VMOVUPS   off(DI), Y0;   \
	VSUBPS    Y8, Y0, Y0;    \
	EXP(Y0, Y1, Y2, Y3);     \
	VCVTPS2PH $0, Y0, X0;    \
	VCVTPH2PS X0, Y0;        \
	VMOVUPS   Y0, off(DI);   \
	VADDPS    Y0, sum, sum

// SCALED multiplies the scores at off by the scale in Y9 and keeps the maximum.
// MAX returns its second source if one is NaN: the maximum ignores NaN.
#define SCALED(off, max) \
	VMULPS  off(DI), Y9, Y0; \
	VMOVUPS Y0, off(DI);     \
	VMAXPS  max, Y0, max

// func softmaxBlockVec(s *float32, scale, m float32, half bool) (top, sum float32)
TEXT ·softmaxBlockVec(SB), NOSPLIT, $0-32
	MOVQ         s+0(FP), DI
	LEAQ         ·expTable(SB), R8
	VBROADCASTSS scale+8(FP), Y9
	VBROADCASTSS m+12(FP), Y8
	VMOVAPS      Y8, Y10
	SCALED(0, Y8)
	SCALED(32, Y10)
	SCALED(64, Y8)
	SCALED(96, Y10)
	SCALED(128, Y8)
	SCALED(160, Y10)
	SCALED(192, Y8)
	SCALED(224, Y10)
	VMAXPS       Y10, Y8, Y8
	VEXTRACTF128 $1, Y8, X0
	VMAXPS       X0, X8, X8
	VPSHUFD      $0x0e, X8, X0
	VMAXPS       X0, X8, X8
	VPSHUFD      $0x01, X8, X0
	VMAXPS       X0, X8, X8
	VMOVSS       X8, top+24(FP)
	VBROADCASTSS X8, Y8
	VXORPS       Y10, Y10, Y10
	VXORPS       Y11, Y11, Y11
	CMPB         half+16(FP), $0
	JNE          half
	WEIGHTS(0, Y10)
	WEIGHTS(32, Y11)
	WEIGHTS(64, Y10)
	WEIGHTS(96, Y11)
	WEIGHTS(128, Y10)
	WEIGHTS(160, Y11)
	WEIGHTS(192, Y10)
	WEIGHTS(224, Y11)
	JMP          fold
half:
	WEIGHTS_HALF(0, Y10)
	WEIGHTS_HALF(32, Y11)
	WEIGHTS_HALF(64, Y10)
	WEIGHTS_HALF(96, Y11)
	WEIGHTS_HALF(128, Y10)
	WEIGHTS_HALF(160, Y11)
	WEIGHTS_HALF(192, Y10)
	WEIGHTS_HALF(224, Y11)
fold:
	VADDPS       Y11, Y10, Y10
	VEXTRACTF128 $1, Y10, X0
	VADDPS       X0, X10, X10
	VPSHUFD      $0x0e, X10, X0
	VADDPS       X0, X10, X10
	VPSHUFD      $0x01, X10, X0
	VADDPS       X0, X10, X10
	VMOVSS       X10, sum+28(FP)
	VZEROUPPER
	RET

// func sumSquaresVec(sum *float64, x *float32, n int)
// n is a positive multiple of 16. The squares are exact, so they may be fused.
TEXT ·sumSquaresVec(SB), NOSPLIT, $0-24
	MOVQ    sum+0(FP), DI
	MOVQ    x+8(FP), SI
	MOVQ    n+16(FP), CX
	VMOVUPD (DI), Y0
	VMOVUPD 32(DI), Y1
	VMOVUPD 64(DI), Y2
	VMOVUPD 96(DI), Y3
squares:
	VCVTPS2PD   (SI), Y4
	VCVTPS2PD   16(SI), Y5
	VCVTPS2PD   32(SI), Y6
	VCVTPS2PD   48(SI), Y7
	VFMADD231PD Y4, Y4, Y0
	VFMADD231PD Y5, Y5, Y1
	VFMADD231PD Y6, Y6, Y2
	VFMADD231PD Y7, Y7, Y3
	ADDQ        $64, SI
	SUBQ        $16, CX
	JNZ         squares
	VMOVUPD Y0, (DI)
	VMOVUPD Y1, 32(DI)
	VMOVUPD Y2, 64(DI)
	VMOVUPD Y3, 96(DI)
	VZEROUPPER
	RET

// func scaleMulVec(dst, x, w *float32, scale float32, n int)
// n is a positive multiple of 8.
TEXT ·scaleMulVec(SB), NOSPLIT, $0-40
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         w+16(FP), DX
	VBROADCASTSS scale+24(FP), Y1
	MOVQ         n+32(FP), CX
scalemul:
	VMULPS  (SI), Y1, Y0
	VMULPS  (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     scalemul
	VZEROUPPER
	RET

// func ropeNeoxVec(lo, hi, cos, sin *float32, n int)
// n is a positive multiple of 8.
TEXT ·ropeNeoxVec(SB), NOSPLIT, $0-40
	MOVQ lo+0(FP), DI
	MOVQ hi+8(FP), SI
	MOVQ cos+16(FP), DX
	MOVQ sin+24(FP), BX
	MOVQ n+32(FP), CX
neox:
	VMOVUPS (DI), Y0
	VMOVUPS (SI), Y1
	VMOVUPS (DX), Y2
	VMOVUPS (BX), Y3
	VMULPS  Y2, Y0, Y4
	VMULPS  Y3, Y1, Y5
	VSUBPS  Y5, Y4, Y4
	VMULPS  Y3, Y0, Y0
	VMULPS  Y2, Y1, Y1
	VADDPS  Y1, Y0, Y0
	VMOVUPS Y4, (DI)
	VMOVUPS Y0, (SI)
	ADDQ    $32, DI
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, BX
	SUBQ    $8, CX
	JNZ     neox
	VZEROUPPER
	RET

// func addScaledVec(dst, x *float32, w float32, n int)
// n is a positive multiple of 8.
TEXT ·addScaledVec(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	VBROADCASTSS w+16(FP), Y1
	MOVQ         n+24(FP), CX
addscaled:
	VMULPS  (SI), Y1, Y0
	VADDPS  (DI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     addscaled
	VZEROUPPER
	RET

// func toHalfVec(dst *uint16, src *float32, n int)
// n is a positive multiple of 8.
TEXT ·toHalfVec(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
tohalf:
	VMOVUPS   (SI), Y0
	VCVTPS2PH $0, Y0, (DI)
	ADDQ      $32, SI
	ADDQ      $16, DI
	SUBQ      $8, CX
	JNZ       tohalf
	VZEROUPPER
	RET

// func roundHalfVec(dst, src *float32, n int)
// n is a positive multiple of 8.
TEXT ·roundHalfVec(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
roundhalf:
	VMOVUPS   (SI), Y0
	VCVTPS2PH $0, Y0, X0
	VCVTPH2PS X0, Y0
	VMOVUPS   Y0, (DI)
	ADDQ      $32, SI
	ADDQ      $32, DI
	SUBQ      $8, CX
	JNZ       roundhalf
	VZEROUPPER
	RET

// func addProductsVec(dst, a, b *float32, n int)
// n is a positive multiple of 8.
TEXT ·addProductsVec(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
addproducts:
	VMOVUPS (SI), Y0
	VMULPS  (DX), Y0, Y0
	VADDPS  (DI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     addproducts
	VZEROUPPER
	RET

// func products16Vec(dst, a, b *float32, n int)
// n is a positive multiple of 8.
TEXT ·products16Vec(SB), NOSPLIT, $0-32
	MOVQ     dst+0(FP), DI
	MOVQ     a+8(FP), SI
	MOVQ     b+16(FP), DX
	MOVQ     n+24(FP), CX
	VPCMPEQD Y1, Y1, Y1 // 0xffffffff
	VPSLLD   $31, Y1, Y2
	VPSRLD   $24, Y2, Y2 // 0x80
	VPSLLD   $8, Y1, Y1  // 0xffffff00
products:
	VMOVUPS (SI), Y0
	VMULPS  (DX), Y0, Y0
	VPADDD  Y2, Y0, Y0
	VPAND   Y1, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DX
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     products
	VZEROUPPER
	RET

// func rescaleVec(x *float32, f float32, n int)
// n is a positive multiple of 8.
TEXT ·rescaleVec(SB), NOSPLIT, $0-24
	MOVQ         x+0(FP), DI
	VBROADCASTSS f+8(FP), Y1
	MOVQ         n+16(FP), CX
	VXORPS       Y2, Y2, Y2
rescale:
	VMULPS  (DI), Y1, Y0
	VADDPS  Y2, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     rescale
	VZEROUPPER
	RET

// func blendVec(dst, x *float32, a, b float32, n int)
// n is a positive multiple of 8.
TEXT ·blendVec(SB), NOSPLIT, $0-32
	MOVQ         dst+0(FP), DI
	MOVQ         x+8(FP), SI
	VBROADCASTSS a+16(FP), Y1
	VBROADCASTSS b+20(FP), Y2
	MOVQ         n+24(FP), CX
blend:
	VMULPS  (DI), Y1, Y0
	VMULPS  (SI), Y2, Y3
	VADDPS  Y3, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     blend
	VZEROUPPER
	RET
