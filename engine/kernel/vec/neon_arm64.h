// Vector instructions that the assembler lacks, by their encodings (Arm
// Architecture Reference Manual, C7.2). d, n and m are register numbers; a
// suffix names the arrangement of the result.

#define FADD4S(d, n, m)  WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d))
#define FSUB4S(d, n, m)  WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d))
#define FMUL4S(d, n, m)  WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))
#define FDIV4S(d, n, m)  WORD $(0x6E20FC00 | (m)<<16 | (n)<<5 | (d))
#define FMLA2D(d, n, m)  WORD $(0x4E60CC00 | (m)<<16 | (n)<<5 | (d))

// FMAX4S and FMIN4S give NaN if either operand is, FMAXNM4S the other one.
#define FMAX4S(d, n, m)   WORD $(0x4E20F400 | (m)<<16 | (n)<<5 | (d))
#define FMIN4S(d, n, m)   WORD $(0x4EA0F400 | (m)<<16 | (n)<<5 | (d))
#define FMAXNM4S(d, n, m) WORD $(0x4E20C400 | (m)<<16 | (n)<<5 | (d))

// Half to single precision (the low or high four), single to double (the low or
// high two), single to half (into the low or high four).
#define FCVTL4S(d, n)  WORD $(0x0E217800 | (n)<<5 | (d))
#define FCVTL2D(d, n)  WORD $(0x0E617800 | (n)<<5 | (d))
#define FCVTL22D(d, n) WORD $(0x4E617800 | (n)<<5 | (d))
#define FCVTN4H(d, n)  WORD $(0x0E216800 | (n)<<5 | (d))
#define FCVTN28H(d, n) WORD $(0x4E216800 | (n)<<5 | (d))

#define SSHR1_4S(d, n)  WORD $(0x4F3F0400 | (n)<<5 | (d))
