//go:build !noasm

#include "textflag.h"
#include "neon_arm64.h"

// CLEARSUMS zeroes V16 to V23.
#define CLEARSUMS \
	VEOR V16.B16, V16.B16, V16.B16; \
	VEOR V17.B16, V17.B16, V17.B16; \
	VEOR V18.B16, V18.B16, V18.B16; \
	VEOR V19.B16, V19.B16, V19.B16; \
	VEOR V20.B16, V20.B16, V20.B16; \
	VEOR V21.B16, V21.B16, V21.B16; \
	VEOR V22.B16, V22.B16, V22.B16; \
	VEOR V23.B16, V23.B16, V23.B16

// WEIGHED multiplies Vx by Vw and adds the product to the sum.
#define WEIGHED(x, w, sum) \
	FMUL4S(x, x, w);      \
	FADD4S(sum, sum, x)

// func mulRowsVec(dst, m, w *float32, rows int)
TEXT ·mulRowsVec(SB), NOSPLIT, $0-32
	MOVD dst+0(FP), R0
	MOVD m+8(FP), R1
	MOVD w+16(FP), R2
	MOVD rows+24(FP), R3
	CLEARSUMS
mulrows:
	VLD1R (R2), [V8.S4]
	ADD $4, R2, R2
	VLD1.P 64(R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1.P 64(R1), [V4.S4, V5.S4, V6.S4, V7.S4]
	WEIGHED(0, 8, 16)
	WEIGHED(1, 8, 17)
	WEIGHED(2, 8, 18)
	WEIGHED(3, 8, 19)
	WEIGHED(4, 8, 20)
	WEIGHED(5, 8, 21)
	WEIGHED(6, 8, 22)
	WEIGHED(7, 8, 23)
	SUBS $1, R3, R3
	BNE mulrows
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R0)
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (R0)
	RET

// RENEWED makes Vx a new entry from the old and from d, with the factors V8 and V9.
#define RENEWED(x, d) \
	FMUL4S(x, x, 8);   \
	FMUL4S(11, d, 9);  \
	FADD4S(x, x, 11)

// func renewVec(dst, m, decay, k, q, d *float32, rows, step int)
TEXT ·renewVec(SB), NOSPLIT, $0-64
	MOVD dst+0(FP), R0
	MOVD m+8(FP), R1
	MOVD decay+16(FP), R2
	MOVD k+24(FP), R3
	MOVD q+32(FP), R4
	MOVD d+40(FP), R5
	MOVD rows+48(FP), R6
	MOVD step+56(FP), R7
	VLD1.P 64(R5), [V24.S4, V25.S4, V26.S4, V27.S4]
	VLD1 (R5), [V28.S4, V29.S4, V30.S4, V31.S4]
	ADD $64, R1, R8
	CLEARSUMS
renew:
	VLD1R (R2), [V8.S4]
	VLD1R (R3), [V9.S4]
	VLD1R (R4), [V10.S4]
	ADD R7, R2, R2
	ADD $4, R3, R3
	ADD $4, R4, R4
	VLD1 (R1), [V0.S4, V1.S4, V2.S4, V3.S4]
	VLD1 (R8), [V4.S4, V5.S4, V6.S4, V7.S4]
	RENEWED(0, 24)
	RENEWED(1, 25)
	RENEWED(2, 26)
	RENEWED(3, 27)
	RENEWED(4, 28)
	RENEWED(5, 29)
	RENEWED(6, 30)
	RENEWED(7, 31)
	VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R1)
	VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R8)
	ADD $128, R1, R1
	ADD $128, R8, R8
	WEIGHED(0, 10, 16)
	WEIGHED(1, 10, 17)
	WEIGHED(2, 10, 18)
	WEIGHED(3, 10, 19)
	WEIGHED(4, 10, 20)
	WEIGHED(5, 10, 21)
	WEIGHED(6, 10, 22)
	WEIGHED(7, 10, 23)
	SUBS $1, R6, R6
	BNE renew
	VST1.P [V16.S4, V17.S4, V18.S4, V19.S4], 64(R0)
	VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (R0)
	RET
