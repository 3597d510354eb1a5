//go:build !noasm

#include "textflag.h"
#include "neon_arm64.h"

// The tiles mirror tile.f32Generic, f16Generic and i8Generic: one chain of
// sums for each number, the terms in order. depth and n are not 0.

// A term of a panel in V18 to V21, widened to float32; R19 runs down the panel.
#define PANEL_F16 \
	VLD1.P 32(R19), [V16.H8, V17.H8]; \
	FCVTL4S(18, 16);  \
	FCVTL24S(19, 16); \
	FCVTL4S(20, 17);  \
	FCVTL24S(21, 17)

#define PANEL_I8 \
	VLD1.P 16(R19), [V16.B16]; \
	SXTL8H(17, 16);   \
	SXTL28H(16, 16);  \
	SXTL4S(18, 17);   \
	SXTL24S(19, 17);  \
	SXTL4S(20, 16);   \
	SXTL24S(21, 16);  \
	SCVTF4S(18, 18);  \
	SCVTF4S(19, 19);  \
	SCVTF4S(20, 20);  \
	SCVTF4S(21, 21)

#define PANEL_F32 VLD1.P 64(R19), [V18.S4, V19.S4, V20.S4, V21.S4]

#define FUSED(sum, b, a, tmp)   FMLA4S(sum, b, a)
#define ROUNDED(sum, b, a, tmp) FMUL4S(tmp, b, a); FADD4S(sum, sum, tmp)

// Four rows and one panel: the sums are in V0 to V15, a's rows at R12 to R15.

#define ENTER4(bshift) \
	MOVD dst+0(FP), R0;   \
	MOVD a+8(FP), R1;     \
	MOVD b+16(FP), R2;    \
	MOVD n+24(FP), R3;    \
	MOVD depth+32(FP), R4; \
	MOVD ldd+40(FP), R5;  \
	MOVD lda+48(FP), R6;  \
	MOVD ldb+56(FP), R7;  \
	LSL  $2, R5, R5;      \
	LSL  $2, R6, R6;      \
	LSL  $bshift, R7, R7

#define ENTER1(bshift) \
	MOVD dst+0(FP), R0;    \
	MOVD a+8(FP), R1;      \
	MOVD b+16(FP), R2;     \
	MOVD n+24(FP), R3;     \
	MOVD depth+32(FP), R4; \
	MOVD ldb+40(FP), R7;   \
	LSL  $bshift, R7, R7

#define LOAD4 \
	MOVD R0, R8;       \
	ADD  R5, R8, R9;   \
	ADD  R5, R9, R10;  \
	ADD  R5, R10, R11; \
	VLD1 (R8), [V0.S4, V1.S4, V2.S4, V3.S4];      \
	VLD1 (R9), [V4.S4, V5.S4, V6.S4, V7.S4];      \
	VLD1 (R10), [V8.S4, V9.S4, V10.S4, V11.S4];   \
	VLD1 (R11), [V12.S4, V13.S4, V14.S4, V15.S4]; \
	MOVD R1, R12;       \
	ADD  R6, R12, R13;  \
	ADD  R6, R13, R14;  \
	ADD  R6, R14, R15;  \
	MOVD R2, R19;       \
	MOVD R4, R20

#define STORE4 \
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R8);      \
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R9);      \
	VST1 [V8.S4, V9.S4, V10.S4, V11.S4], (R10);   \
	VST1 [V12.S4, V13.S4, V14.S4, V15.S4], (R11); \
	ADD  $64, R0, R0; \
	ADD  R7, R2, R2;  \
	SUBS $16, R3, R3

#define TERM4(MAC) \
	VLD1R.P 4(R12), [V22.S4]; \
	VLD1R.P 4(R13), [V23.S4]; \
	VLD1R.P 4(R14), [V24.S4]; \
	VLD1R.P 4(R15), [V25.S4]; \
	MAC(0, 18, 22, 26);  \
	MAC(1, 19, 22, 27);  \
	MAC(2, 20, 22, 28);  \
	MAC(3, 21, 22, 29);  \
	MAC(4, 18, 23, 26);  \
	MAC(5, 19, 23, 27);  \
	MAC(6, 20, 23, 28);  \
	MAC(7, 21, 23, 29);  \
	MAC(8, 18, 24, 26);  \
	MAC(9, 19, 24, 27);  \
	MAC(10, 20, 24, 28); \
	MAC(11, 21, 24, 29); \
	MAC(12, 18, 25, 26); \
	MAC(13, 19, 25, 27); \
	MAC(14, 20, 25, 28); \
	MAC(15, 21, 25, 29); \
	SUBS $1, R20, R20

// func tileF16x4(dst, a *float32, b *uint16, n, depth, ldd, lda, ldb int)
TEXT ·tileF16x4(SB), NOSPLIT, $0-64
	ENTER4(1)
f16x4panel:
	LOAD4
f16x4term:
	PANEL_F16
	TERM4(FUSED)
	BNE f16x4term
	STORE4
	BNE f16x4panel
	RET

// func tileI8x4(dst, a *float32, b *int8, n, depth, ldd, lda, ldb int)
TEXT ·tileI8x4(SB), NOSPLIT, $0-64
	ENTER4(0)
i8x4panel:
	LOAD4
i8x4term:
	PANEL_I8
	TERM4(FUSED)
	BNE i8x4term
	STORE4
	BNE i8x4panel
	RET

// func tileF32x4(dst, a, b *float32, n, depth, ldd, lda, ldb int)
TEXT ·tileF32x4(SB), NOSPLIT, $0-64
	ENTER4(2)
f32x4panel:
	LOAD4
f32x4term:
	PANEL_F32
	TERM4(ROUNDED)
	BNE f32x4term
	STORE4
	BNE f32x4panel
	RET

// One row: two panels at once, or the last one. The sums are in V0 to V7; the
// second panel is at R21.

#define LOAD1 \
	VLD1 (R0), [V0.S4, V1.S4, V2.S4, V3.S4]; \
	MOVD R1, R12; \
	MOVD R2, R19; \
	MOVD R4, R20

#define LOAD1WIDE \
	LOAD1; \
	ADD  $64, R0, R8; \
	VLD1 (R8), [V4.S4, V5.S4, V6.S4, V7.S4]; \
	ADD  R7, R2, R21

#define STORE1 \
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0); \
	ADD  R7, R2, R2

#define STORE1WIDE \
	VST1.P [V0.S4, V1.S4, V2.S4, V3.S4], 64(R0); \
	VST1.P [V4.S4, V5.S4, V6.S4, V7.S4], 64(R0); \
	ADD  R7<<1, R2, R2; \
	SUB  $32, R3, R3

#define SWAP \
	MOVD R19, R22; \
	MOVD R21, R19; \
	MOVD R22, R21

#define TERM1(MAC) \
	MAC(0, 18, 22, 26); \
	MAC(1, 19, 22, 27); \
	MAC(2, 20, 22, 28); \
	MAC(3, 21, 22, 29)

#define TERM1SECOND(MAC) \
	MAC(4, 18, 22, 26); \
	MAC(5, 19, 22, 27); \
	MAC(6, 20, 22, 28); \
	MAC(7, 21, 22, 29)

// func tileF16x1(dst, a *float32, b *uint16, n, depth, ldb int)
TEXT ·tileF16x1(SB), NOSPLIT, $0-48
	ENTER1(1)
f16x1wide:
	CMP $32, R3
	BLT f16x1rest
	LOAD1WIDE
f16x1wideterm:
	VLD1R.P 4(R12), [V22.S4]
	PANEL_F16
	TERM1(FUSED)
	SWAP
	PANEL_F16
	TERM1SECOND(FUSED)
	SWAP
	SUBS $1, R20, R20
	BNE f16x1wideterm
	STORE1WIDE
	B f16x1wide
f16x1rest:
	CBZ R3, f16x1done
	LOAD1
f16x1term:
	VLD1R.P 4(R12), [V22.S4]
	PANEL_F16
	TERM1(FUSED)
	SUBS $1, R20, R20
	BNE f16x1term
	STORE1
f16x1done:
	RET

// func tileI8x1(dst, a *float32, b *int8, n, depth, ldb int)
TEXT ·tileI8x1(SB), NOSPLIT, $0-48
	ENTER1(0)
i8x1wide:
	CMP $32, R3
	BLT i8x1rest
	LOAD1WIDE
i8x1wideterm:
	VLD1R.P 4(R12), [V22.S4]
	PANEL_I8
	TERM1(FUSED)
	SWAP
	PANEL_I8
	TERM1SECOND(FUSED)
	SWAP
	SUBS $1, R20, R20
	BNE i8x1wideterm
	STORE1WIDE
	B i8x1wide
i8x1rest:
	CBZ R3, i8x1done
	LOAD1
i8x1term:
	VLD1R.P 4(R12), [V22.S4]
	PANEL_I8
	TERM1(FUSED)
	SUBS $1, R20, R20
	BNE i8x1term
	STORE1
i8x1done:
	RET

// func tileF32x1(dst, a, b *float32, n, depth, ldb int)
TEXT ·tileF32x1(SB), NOSPLIT, $0-48
	ENTER1(2)
f32x1wide:
	CMP $32, R3
	BLT f32x1rest
	LOAD1WIDE
f32x1wideterm:
	VLD1R.P 4(R12), [V22.S4]
	PANEL_F32
	TERM1(ROUNDED)
	SWAP
	PANEL_F32
	TERM1SECOND(ROUNDED)
	SWAP
	SUBS $1, R20, R20
	BNE f32x1wideterm
	STORE1WIDE
	B f32x1wide
f32x1rest:
	CBZ R3, f32x1done
	LOAD1
f32x1term:
	VLD1R.P 4(R12), [V22.S4]
	PANEL_F32
	TERM1(ROUNDED)
	SUBS $1, R20, R20
	BNE f32x1term
	STORE1
f32x1done:
	RET
