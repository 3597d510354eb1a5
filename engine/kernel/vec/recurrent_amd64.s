//go:build !noasm

#include "textflag.h"

// func mulRowsVec(dst, m, w *float32, rows int)
TEXT ·mulRowsVec(SB), NOSPLIT, $0-32
	MOVQ   dst+0(FP), DI
	MOVQ   m+8(FP), SI
	MOVQ   w+16(FP), DX
	MOVQ   rows+24(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
mulrows:
	VBROADCASTSS (DX), Y4
	VMULPS       (SI), Y4, Y5
	VMULPS       32(SI), Y4, Y6
	VMULPS       64(SI), Y4, Y7
	VMULPS       96(SI), Y4, Y8
	VADDPS       Y5, Y0, Y0
	VADDPS       Y6, Y1, Y1
	VADDPS       Y7, Y2, Y2
	VADDPS       Y8, Y3, Y3
	ADDQ         $4, DX
	ADDQ         $128, SI
	DECQ         CX
	JNZ          mulrows
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VZEROUPPER
	RET

// RENEWED makes the new entries at off of a row, and adds them, each times Y10, to
// the sum. d are the entries that are added times Y9; Y8 is the decay.
#define RENEWED(off, sum, d, x, y) \
	VMULPS  off(SI), Y8, x; \
	VMULPS  d, Y9, y;       \
	VADDPS  y, x, x;        \
	VMOVUPS x, off(SI);     \
	VMULPS  x, Y10, x;      \
	VADDPS  x, sum, sum

// func renewVec(dst, m, decay, k, q, d *float32, rows, step int)
TEXT ·renewVec(SB), NOSPLIT, $0-64
	MOVQ    dst+0(FP), DI
	MOVQ    m+8(FP), SI
	MOVQ    decay+16(FP), R8
	MOVQ    k+24(FP), R9
	MOVQ    q+32(FP), R10
	MOVQ    d+40(FP), DX
	MOVQ    rows+48(FP), CX
	MOVQ    step+56(FP), R11
	VXORPS  Y0, Y0, Y0
	VXORPS  Y1, Y1, Y1
	VXORPS  Y2, Y2, Y2
	VXORPS  Y3, Y3, Y3
	VMOVUPS (DX), Y4
	VMOVUPS 32(DX), Y5
	VMOVUPS 64(DX), Y6
	VMOVUPS 96(DX), Y7
renew:
	VBROADCASTSS (R8), Y8
	VBROADCASTSS (R9), Y9
	VBROADCASTSS (R10), Y10
	RENEWED(0, Y0, Y4, Y11, Y12)
	RENEWED(32, Y1, Y5, Y13, Y14)
	RENEWED(64, Y2, Y6, Y11, Y12)
	RENEWED(96, Y3, Y7, Y13, Y14)
	ADDQ         R11, R8
	ADDQ         $4, R9
	ADDQ         $4, R10
	ADDQ         $128, SI
	DECQ         CX
	JNZ          renew
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VZEROUPPER
	RET
