//go:build !noasm

#include "textflag.h"

// The tiles mirror tile.f32Generic, f16Generic and i8Generic: one chain of
// sums for each number, the terms in order. depth and n are not 0.
//
// DI dst, SI a, DX b's panel, CX columns left, R8 ldd, R9 3 ldd, R10 lda,
// R11 3 lda, R12 ldb, all in bytes. In the loop AX runs along a's rows, BX down
// the panel, R13 counts.

#define ENTER(bshift) \
	MOVQ dst+0(FP), DI;    \
	MOVQ a+8(FP), SI;      \
	MOVQ b+16(FP), DX;     \
	MOVQ n+24(FP), CX;     \
	MOVQ ldd+40(FP), R8;   \
	SHLQ $2, R8;           \
	LEAQ (R8)(R8*2), R9;   \
	MOVQ lda+48(FP), R10;  \
	SHLQ $2, R10;          \
	LEAQ (R10)(R10*2), R11; \
	MOVQ ldb+56(FP), R12;  \
	SHLQ $bshift, R12

// Four rows and one panel: the sums are in Y0 to Y7.

#define LOAD4 \
	VMOVUPS (DI), Y0;         \
	VMOVUPS 32(DI), Y1;       \
	VMOVUPS (DI)(R8*1), Y2;   \
	VMOVUPS 32(DI)(R8*1), Y3; \
	VMOVUPS (DI)(R8*2), Y4;   \
	VMOVUPS 32(DI)(R8*2), Y5; \
	VMOVUPS (DI)(R9*1), Y6;   \
	VMOVUPS 32(DI)(R9*1), Y7; \
	MOVQ    SI, AX;           \
	MOVQ    DX, BX;           \
	MOVQ    depth+32(FP), R13

#define STORE4 \
	VMOVUPS Y0, (DI);         \
	VMOVUPS Y1, 32(DI);       \
	VMOVUPS Y2, (DI)(R8*1);   \
	VMOVUPS Y3, 32(DI)(R8*1); \
	VMOVUPS Y4, (DI)(R8*2);   \
	VMOVUPS Y5, 32(DI)(R8*2); \
	VMOVUPS Y6, (DI)(R9*1);   \
	VMOVUPS Y7, 32(DI)(R9*1); \
	ADDQ    $64, DI;          \
	ADDQ    R12, DX;          \
	SUBQ    $16, CX

#define WIDEN_F16(from, to)     VCVTPH2PS from, to
#define WIDEN_I8(from, to)      VPMOVSXBD from, to; VCVTDQ2PS to, to
#define FUSED(b, a, tmp, sum)   VFMADD231PS b, a, sum
#define ROUNDED(b, a, tmp, sum) VMULPS b, a, tmp; VADDPS tmp, sum, sum

#define TERM4(MAC) \
	VBROADCASTSS (AX), Y10;          \
	VBROADCASTSS (AX)(R10*1), Y11;   \
	VBROADCASTSS (AX)(R10*2), Y12;   \
	VBROADCASTSS (AX)(R11*1), Y13;   \
	MAC(Y8, Y10, Y14, Y0);           \
	MAC(Y9, Y10, Y15, Y1);           \
	MAC(Y8, Y11, Y14, Y2);           \
	MAC(Y9, Y11, Y15, Y3);           \
	MAC(Y8, Y12, Y14, Y4);           \
	MAC(Y9, Y12, Y15, Y5);           \
	MAC(Y8, Y13, Y14, Y6);           \
	MAC(Y9, Y13, Y15, Y7);           \
	ADDQ         $4, AX

// func tileF16x4(dst, a *float32, b *uint16, n, depth, ldd, lda, ldb int)
TEXT ·tileF16x4(SB), NOSPLIT, $0-64
	ENTER(1)
f16x4panel:
	LOAD4
f16x4term:
	PREFETCHT0 2048(BX) // the next panel follows this one; 10% at 32k keys
	WIDEN_F16((BX), Y8)
	WIDEN_F16(16(BX), Y9)
	TERM4(FUSED)
	ADDQ $32, BX
	DECQ R13
	JNZ  f16x4term
	STORE4
	JNZ  f16x4panel
	VZEROUPPER
	RET

// func tileI8x4(dst, a *float32, b *int8, n, depth, ldd, lda, ldb int)
TEXT ·tileI8x4(SB), NOSPLIT, $0-64
	ENTER(0)
i8x4panel:
	LOAD4
i8x4term:
	WIDEN_I8((BX), Y8)
	WIDEN_I8(8(BX), Y9)
	TERM4(FUSED)
	ADDQ $16, BX
	DECQ R13
	JNZ  i8x4term
	STORE4
	JNZ  i8x4panel
	VZEROUPPER
	RET

// func tileF32x4(dst, a, b *float32, n, depth, ldd, lda, ldb int)
TEXT ·tileF32x4(SB), NOSPLIT, $0-64
	ENTER(2)
f32x4panel:
	LOAD4
f32x4term:
	VMOVUPS (BX), Y8
	VMOVUPS 32(BX), Y9
	TERM4(ROUNDED)
	ADDQ $64, BX
	DECQ R13
	JNZ  f32x4term
	STORE4
	JNZ  f32x4panel
	VZEROUPPER
	RET

// One row: four panels at once while there are as many, so that eight chains
// run side by side, then one panel at a time. R8, R9, R10 are b's panels 1 to 3.

#define LOAD1 \
	VMOVUPS (DI), Y0;  \
	VMOVUPS 32(DI), Y1; \
	MOVQ    SI, AX;    \
	MOVQ    DX, BX;    \
	MOVQ    depth+32(FP), R13

#define LOAD1WIDE \
	LOAD1;                 \
	VMOVUPS 64(DI), Y2;    \
	VMOVUPS 96(DI), Y3;    \
	VMOVUPS 128(DI), Y4;   \
	VMOVUPS 160(DI), Y5;   \
	VMOVUPS 192(DI), Y6;   \
	VMOVUPS 224(DI), Y7;   \
	LEAQ    (BX)(R12*1), R8; \
	LEAQ    (BX)(R12*2), R9; \
	LEAQ    (R8)(R12*2), R10

#define STORE1 \
	VMOVUPS Y0, (DI);   \
	VMOVUPS Y1, 32(DI); \
	ADDQ    $64, DI;    \
	ADDQ    R12, DX;    \
	SUBQ    $16, CX

#define STORE1WIDE \
	VMOVUPS Y0, (DI);      \
	VMOVUPS Y1, 32(DI);    \
	VMOVUPS Y2, 64(DI);    \
	VMOVUPS Y3, 96(DI);    \
	VMOVUPS Y4, 128(DI);   \
	VMOVUPS Y5, 160(DI);   \
	VMOVUPS Y6, 192(DI);   \
	VMOVUPS Y7, 224(DI);   \
	ADDQ    $256, DI;      \
	LEAQ    (DX)(R12*4), DX; \
	SUBQ    $64, CX

// func tileF16x1(dst, a *float32, b *uint16, n, depth, ldb int)
TEXT ·tileF16x1(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ ldb+40(FP), R12
	SHLQ $1, R12
f16x1wide:
	CMPQ CX, $64
	JLT  f16x1rest
	LOAD1WIDE
f16x1wideterm:
	VBROADCASTSS (AX), Y15
	WIDEN_F16((BX), Y8)
	WIDEN_F16(16(BX), Y9)
	WIDEN_F16((R8), Y10)
	WIDEN_F16(16(R8), Y11)
	FUSED(Y8, Y15, Y14, Y0)
	FUSED(Y9, Y15, Y14, Y1)
	WIDEN_F16((R9), Y8)
	WIDEN_F16(16(R9), Y9)
	FUSED(Y10, Y15, Y14, Y2)
	FUSED(Y11, Y15, Y14, Y3)
	WIDEN_F16((R10), Y10)
	WIDEN_F16(16(R10), Y11)
	FUSED(Y8, Y15, Y14, Y4)
	FUSED(Y9, Y15, Y14, Y5)
	FUSED(Y10, Y15, Y14, Y6)
	FUSED(Y11, Y15, Y14, Y7)
	ADDQ $4, AX
	ADDQ $32, BX
	ADDQ $32, R8
	ADDQ $32, R9
	ADDQ $32, R10
	DECQ R13
	JNZ  f16x1wideterm
	STORE1WIDE
	JMP  f16x1wide
f16x1rest:
	TESTQ CX, CX
	JZ   f16x1done
	LOAD1
f16x1term:
	VBROADCASTSS (AX), Y15
	WIDEN_F16((BX), Y8)
	WIDEN_F16(16(BX), Y9)
	FUSED(Y8, Y15, Y14, Y0)
	FUSED(Y9, Y15, Y14, Y1)
	ADDQ $4, AX
	ADDQ $32, BX
	DECQ R13
	JNZ  f16x1term
	STORE1
	JMP  f16x1rest
f16x1done:
	VZEROUPPER
	RET

// func tileI8x1(dst, a *float32, b *int8, n, depth, ldb int)
TEXT ·tileI8x1(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ ldb+40(FP), R12
i8x1wide:
	CMPQ CX, $64
	JLT  i8x1rest
	LOAD1WIDE
i8x1wideterm:
	VBROADCASTSS (AX), Y15
	WIDEN_I8((BX), Y8)
	WIDEN_I8(8(BX), Y9)
	WIDEN_I8((R8), Y10)
	WIDEN_I8(8(R8), Y11)
	FUSED(Y8, Y15, Y14, Y0)
	FUSED(Y9, Y15, Y14, Y1)
	WIDEN_I8((R9), Y8)
	WIDEN_I8(8(R9), Y9)
	FUSED(Y10, Y15, Y14, Y2)
	FUSED(Y11, Y15, Y14, Y3)
	WIDEN_I8((R10), Y10)
	WIDEN_I8(8(R10), Y11)
	FUSED(Y8, Y15, Y14, Y4)
	FUSED(Y9, Y15, Y14, Y5)
	FUSED(Y10, Y15, Y14, Y6)
	FUSED(Y11, Y15, Y14, Y7)
	ADDQ $4, AX
	ADDQ $16, BX
	ADDQ $16, R8
	ADDQ $16, R9
	ADDQ $16, R10
	DECQ R13
	JNZ  i8x1wideterm
	STORE1WIDE
	JMP  i8x1wide
i8x1rest:
	TESTQ CX, CX
	JZ   i8x1done
	LOAD1
i8x1term:
	VBROADCASTSS (AX), Y15
	WIDEN_I8((BX), Y8)
	WIDEN_I8(8(BX), Y9)
	FUSED(Y8, Y15, Y14, Y0)
	FUSED(Y9, Y15, Y14, Y1)
	ADDQ $4, AX
	ADDQ $16, BX
	DECQ R13
	JNZ  i8x1term
	STORE1
	JMP  i8x1rest
i8x1done:
	VZEROUPPER
	RET

// func tileF32x1(dst, a, b *float32, n, depth, ldb int)
TEXT ·tileF32x1(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ ldb+40(FP), R12
	SHLQ $2, R12
f32x1wide:
	CMPQ CX, $64
	JLT  f32x1rest
	LOAD1WIDE
f32x1wideterm:
	VBROADCASTSS (AX), Y15
	ROUNDED((BX), Y15, Y8, Y0)
	ROUNDED(32(BX), Y15, Y9, Y1)
	ROUNDED((R8), Y15, Y10, Y2)
	ROUNDED(32(R8), Y15, Y11, Y3)
	ROUNDED((R9), Y15, Y12, Y4)
	ROUNDED(32(R9), Y15, Y13, Y5)
	ROUNDED((R10), Y15, Y14, Y6)
	ROUNDED(32(R10), Y15, Y8, Y7)
	ADDQ $4, AX
	ADDQ $64, BX
	ADDQ $64, R8
	ADDQ $64, R9
	ADDQ $64, R10
	DECQ R13
	JNZ  f32x1wideterm
	STORE1WIDE
	JMP  f32x1wide
f32x1rest:
	TESTQ CX, CX
	JZ   f32x1done
	LOAD1
f32x1term:
	VBROADCASTSS (AX), Y15
	ROUNDED((BX), Y15, Y8, Y0)
	ROUNDED(32(BX), Y15, Y9, Y1)
	ADDQ $4, AX
	ADDQ $64, BX
	DECQ R13
	JNZ  f32x1term
	STORE1
	JMP  f32x1rest
f32x1done:
	VZEROUPPER
	RET
