//go:build !noasm

#include "textflag.h"
#include "neon_arm64.h"

// EXPCONST loads the constants of ·expTable, whose rows are 32 bytes apart:
// V16 upper and V17 lower limit, V18 log2(e), V19 1.5 * 2^23, V20 and V21 ln 2,
// V22 to V26 the coefficients, the highest first, V27 1, V28 the exponent's bias.
#define CONSTANT(v) \
	VLD1R (R9), [v]; \
	ADD   $32, R9, R9

#define EXPCONST \
	MOVD $·expTable(SB), R9; \
	CONSTANT(V16.S4); \
	CONSTANT(V17.S4); \
	CONSTANT(V18.S4); \
	CONSTANT(V19.S4); \
	CONSTANT(V20.S4); \
	CONSTANT(V21.S4); \
	CONSTANT(V22.S4); \
	CONSTANT(V23.S4); \
	CONSTANT(V24.S4); \
	CONSTANT(V25.S4); \
	CONSTANT(V26.S4); \
	CONSTANT(V27.S4); \
	CONSTANT(V28.S4)

// EXP replaces Vx by e^x, as Exp32 does, operation by operation, except for the
// upper limit. V29, V30 and V31 are clobbered. VX is Vx.S4.
#define EXP(x) \
	FMAX4S(x, x, 17);    \
	FMUL4S(29, x, 18);   \
	FADD4S(29, 29, 19);  \
	FSUB4S(30, 29, 19);  \
	FMUL4S(31, 30, 20);  \
	FSUB4S(x, x, 31);    \
	FMUL4S(31, 30, 21);  \
	FSUB4S(x, x, 31);    \
	FMUL4S(31, x, 22);   \
	FADD4S(31, 31, 23);  \
	FMUL4S(31, 31, x);   \
	FADD4S(31, 31, 24);  \
	FMUL4S(31, 31, x);   \
	FADD4S(31, 31, 25);  \
	FMUL4S(31, 31, x);   \
	FADD4S(31, 31, 26);  \
	FMUL4S(30, x, x);    \
	FMUL4S(31, 31, 30);  \
	FADD4S(31, 31, x);   \
	FADD4S(31, 31, 27);  \
	VSUB V19.S4, V29.S4, V29.S4; \
	SSHR1_4S(30, 29);    \
	VSUB V30.S4, V29.S4, V29.S4; \
	VADD V28.S4, V30.S4, V30.S4; \
	VADD V28.S4, V29.S4, V29.S4; \
	VSHL $23, V30.S4, V30.S4;    \
	VSHL $23, V29.S4, V29.S4;    \
	FMUL4S(31, 31, 30);  \
	FMUL4S(x, 31, 29)

// func siluMulVec(dst, gate, up *float32, n int)
// n is a positive multiple of 8.
TEXT ·siluMulVec(SB), NOSPLIT, $0-32
	EXPCONST
	VLD1R (R9), [V15.S4] // the sign bit
	MOVD dst+0(FP), R0
	MOVD gate+8(FP), R1
	MOVD up+16(FP), R2
	MOVD n+24(FP), R3
silu:
	VLD1.P 16(R1), [V0.S4]
	VLD1.P 16(R2), [V2.S4]
	VEOR V15.B16, V0.B16, V1.B16
	FMIN4S(1, 1, 16)
	EXP(1)
	FADD4S(1, 1, 27)
	FDIV4S(0, 0, 1)
	FMUL4S(0, 0, 2)
	VST1.P [V0.S4], 16(R0)
	SUBS $4, R3, R3
	BNE silu
	RET

// func sigmoidMulVec(dst, gate, up *float32, n int)
// n is a positive multiple of 8.
TEXT ·sigmoidMulVec(SB), NOSPLIT, $0-32
	EXPCONST
	VLD1R (R9), [V15.S4] // the sign bit
	MOVD dst+0(FP), R0
	MOVD gate+8(FP), R1
	MOVD up+16(FP), R2
	MOVD n+24(FP), R3
sigmoid:
	VLD1.P 16(R1), [V0.S4]
	VLD1.P 16(R2), [V2.S4]
	VEOR V15.B16, V0.B16, V1.B16
	FMIN4S(1, 1, 16)
	EXP(1)
	FADD4S(1, 1, 27)
	FDIV4S(2, 2, 1)
	VST1.P [V2.S4], 16(R0)
	SUBS $4, R3, R3
	BNE sigmoid
	RET

// WEIGHTS turns V0 to V3 into weights. V8 is the maximum.
#define WEIGHTS \
	FSUB4S(0, 0, 8); \
	FSUB4S(1, 1, 8); \
	FSUB4S(2, 2, 8); \
	FSUB4S(3, 3, 8); \
	EXP(0); \
	EXP(1); \
	EXP(2); \
	EXP(3)

#define SUMS \
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0); \
	FADD4S(4, 4, 0); \
	FADD4S(5, 5, 1); \
	FADD4S(6, 6, 2); \
	FADD4S(7, 7, 3); \
	SUBS $1, R3, R3

#define HALF(x) \
	FCVTN4H(x, x); \
	FCVTL4S(x, x)

// func softmaxBlockVec(s *float32, scale, m float32, half bool) (top, sum float32)
TEXT ·softmaxBlockVec(SB), NOSPLIT, $0-32
	MOVD s+0(FP), R0
	EXPCONST
	MOVD $scale+8(FP), R1
	VLD1R (R1), [V9.S4]
	MOVD $m+12(FP), R1
	VLD1R (R1), [V8.S4]
	MOVD R0, R2
	MOVD $4, R3
scaled:
	VLD1 (R2), [V0.S4, V1.S4, V2.S4, V3.S4]
	FMUL4S(0, 0, 9)
	FMUL4S(1, 1, 9)
	FMUL4S(2, 2, 9)
	FMUL4S(3, 3, 9)
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R2)
	FMAXNM4S(0, 0, 1)
	FMAXNM4S(2, 2, 3)
	FMAXNM4S(8, 8, 0)
	FMAXNM4S(8, 8, 2)
	SUBS $1, R3, R3
	BNE scaled
	VEXT $8, V8.B16, V8.B16, V0.B16
	FMAXNM4S(8, 8, 0)
	VDUP V8.S[1], V0.S4
	FMAXNM4S(8, 8, 0)
	VDUP V8.S[0], V8.S4
	FMOVS F8, top+24(FP)
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	MOVD $4, R3
	MOVBU half+16(FP), R4
	CBNZ R4, half
single:
	VLD1 (R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	WEIGHTS
	SUMS
	BNE single
	B fold
half:
	VLD1 (R0), [V0.S4, V1.S4, V2.S4, V3.S4]
	WEIGHTS
	HALF(0)
	HALF(1)
	HALF(2)
	HALF(3)
	SUMS
	BNE half
fold:
	FADD4S(4, 4, 6)
	FADD4S(5, 5, 7)
	FADD4S(4, 4, 5)
	VEXT $8, V4.B16, V4.B16, V0.B16
	FADD4S(4, 4, 0)
	VDUP V4.S[1], V0.S4
	FADD4S(4, 4, 0)
	FMOVS F4, sum+28(FP)
	RET

// func sumSquaresVec(sum *float64, x *float32, n int)
// n is a positive multiple of 16. The squares are exact, so they may be fused.
TEXT ·sumSquaresVec(SB), NOSPLIT, $0-24
	MOVD sum+0(FP), R0
	MOVD x+8(FP), R1
	MOVD n+16(FP), R3
	ADD $64, R0, R2
	VLD1 (R0), [V0.D2, V1.D2, V2.D2, V3.D2]
	VLD1 (R2), [V4.D2, V5.D2, V6.D2, V7.D2]
squares:
	VLD1.P 64(R1), [V16.S4, V17.S4, V18.S4, V19.S4]
	FCVTL2D(20, 16)
	FCVTL22D(21, 16)
	FCVTL2D(22, 17)
	FCVTL22D(23, 17)
	FCVTL2D(24, 18)
	FCVTL22D(25, 18)
	FCVTL2D(26, 19)
	FCVTL22D(27, 19)
	FMLA2D(0, 20, 20)
	FMLA2D(1, 21, 21)
	FMLA2D(2, 22, 22)
	FMLA2D(3, 23, 23)
	FMLA2D(4, 24, 24)
	FMLA2D(5, 25, 25)
	FMLA2D(6, 26, 26)
	FMLA2D(7, 27, 27)
	SUBS $16, R3, R3
	BNE squares
	VST1 [V0.D2, V1.D2, V2.D2, V3.D2], (R0)
	VST1 [V4.D2, V5.D2, V6.D2, V7.D2], (R2)
	RET

// func scaleMulVec(dst, x, w *float32, scale float32, n int)
// n is a positive multiple of 8.
TEXT ·scaleMulVec(SB), NOSPLIT, $0-40
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	MOVD w+16(FP), R2
	MOVD $scale+24(FP), R4
	VLD1R (R4), [V4.S4]
	MOVD n+32(FP), R3
scalemul:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FMUL4S(0, 0, 4)
	FMUL4S(1, 1, 4)
	FMUL4S(0, 0, 2)
	FMUL4S(1, 1, 3)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3, R3
	BNE scalemul
	RET

// func ropeNeoxVec(lo, hi, cos, sin *float32, n int)
// n is a positive multiple of 8.
TEXT ·ropeNeoxVec(SB), NOSPLIT, $0-40
	MOVD lo+0(FP), R0
	MOVD hi+8(FP), R1
	MOVD cos+16(FP), R2
	MOVD sin+24(FP), R4
	MOVD n+32(FP), R3
neox:
	VLD1 (R0), [V0.S4]
	VLD1 (R1), [V1.S4]
	VLD1.P 16(R2), [V2.S4]
	VLD1.P 16(R4), [V3.S4]
	FMUL4S(4, 0, 2)
	FMUL4S(5, 1, 3)
	FSUB4S(4, 4, 5)
	FMUL4S(0, 0, 3)
	FMUL4S(1, 1, 2)
	FADD4S(0, 0, 1)
	VST1.P [V4.S4], 16(R0)
	VST1.P [V0.S4], 16(R1)
	SUBS $4, R3, R3
	BNE neox
	RET

// func addScaledVec(dst, x *float32, w float32, n int)
// n is a positive multiple of 8.
TEXT ·addScaledVec(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	MOVD $w+16(FP), R4
	VLD1R (R4), [V4.S4]
	MOVD n+24(FP), R3
addscaled:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1 (R0), [V2.S4, V3.S4]
	FMUL4S(0, 0, 4)
	FMUL4S(1, 1, 4)
	FADD4S(0, 0, 2)
	FADD4S(1, 1, 3)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3, R3
	BNE addscaled
	RET

// func toHalfVec(dst *uint16, src *float32, n int)
// n is a positive multiple of 8.
TEXT ·toHalfVec(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R3
tohalf:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	FCVTN4H(2, 0)
	FCVTN28H(2, 1)
	VST1.P [V2.H8], 16(R0)
	SUBS $8, R3, R3
	BNE tohalf
	RET

// func roundHalfVec(dst, src *float32, n int)
// n is a positive multiple of 8.
TEXT ·roundHalfVec(SB), NOSPLIT, $0-24
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R3
roundhalf:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	HALF(0)
	HALF(1)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3, R3
	BNE roundhalf
	RET

// func addProductsVec(dst, a, b *float32, n int)
// n is a positive multiple of 8.
TEXT ·addProductsVec(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD n+24(FP), R3
addproducts:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	VLD1 (R0), [V4.S4, V5.S4]
	FMUL4S(0, 0, 2)
	FMUL4S(1, 1, 3)
	FADD4S(0, 0, 4)
	FADD4S(1, 1, 5)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3, R3
	BNE addproducts
	RET

// func products16Vec(dst, a, b *float32, n int)
// n is a positive multiple of 8.
TEXT ·products16Vec(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD a+8(FP), R1
	MOVD b+16(FP), R2
	MOVD n+24(FP), R3
	MOVD $0x80, R4
	VDUP R4, V4.S4
	MOVD $0xffffff00, R4
	VDUP R4, V5.S4
products:
	VLD1.P 32(R1), [V0.S4, V1.S4]
	VLD1.P 32(R2), [V2.S4, V3.S4]
	FMUL4S(0, 0, 2)
	FMUL4S(1, 1, 3)
	VADD V4.S4, V0.S4, V0.S4
	VADD V4.S4, V1.S4, V1.S4
	VAND V5.B16, V0.B16, V0.B16
	VAND V5.B16, V1.B16, V1.B16
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3, R3
	BNE products
	RET

// func rescaleVec(x *float32, f float32, n int)
// n is a positive multiple of 8.
TEXT ·rescaleVec(SB), NOSPLIT, $0-24
	MOVD x+0(FP), R0
	MOVD $f+8(FP), R4
	VLD1R (R4), [V4.S4]
	MOVD n+16(FP), R3
	VEOR V5.B16, V5.B16, V5.B16
rescale:
	VLD1 (R0), [V0.S4, V1.S4]
	FMUL4S(0, 0, 4)
	FMUL4S(1, 1, 4)
	FADD4S(0, 0, 5)
	FADD4S(1, 1, 5)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3, R3
	BNE rescale
	RET

// func blendVec(dst, x *float32, a, b float32, n int)
// n is a positive multiple of 8.
TEXT ·blendVec(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD x+8(FP), R1
	MOVD $a+16(FP), R4
	VLD1R (R4), [V4.S4]
	MOVD $b+20(FP), R4
	VLD1R (R4), [V5.S4]
	MOVD n+24(FP), R3
blend:
	VLD1 (R0), [V0.S4, V1.S4]
	VLD1.P 32(R1), [V2.S4, V3.S4]
	FMUL4S(0, 0, 4)
	FMUL4S(1, 1, 4)
	FMUL4S(2, 2, 5)
	FMUL4S(3, 3, 5)
	FADD4S(0, 0, 2)
	FADD4S(1, 1, 3)
	VST1.P [V0.S4, V1.S4], 32(R0)
	SUBS $8, R3, R3
	BNE blend
	RET
