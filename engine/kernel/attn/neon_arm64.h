// Vector instructions that the assembler lacks, by their encodings (Arm
// Architecture Reference Manual, C7.2). d, n and m are register numbers; a
// suffix names the arrangement of the result.

#define FADD4S(d, n, m)  WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d))
#define FMUL4S(d, n, m)  WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))
#define FMLA4S(d, n, m)  WORD $(0x4E20CC00 | (m)<<16 | (n)<<5 | (d))

// Half to single precision (the low or high four), single to double (the low or
// high two), single to half (into the low or high four).
#define FCVTL4S(d, n)  WORD $(0x0E217800 | (n)<<5 | (d))
#define FCVTL24S(d, n) WORD $(0x4E217800 | (n)<<5 | (d))

// Sign extension of the low or high half.
#define SXTL8H(d, n)  WORD $(0x0F08A400 | (n)<<5 | (d))
#define SXTL28H(d, n) WORD $(0x4F08A400 | (n)<<5 | (d))
#define SXTL4S(d, n)  WORD $(0x0F10A400 | (n)<<5 | (d))
#define SXTL24S(d, n) WORD $(0x4F10A400 | (n)<<5 | (d))

#define SCVTF4S(d, n)   WORD $(0x4E21D800 | (n)<<5 | (d))
