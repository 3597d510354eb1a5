package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// arm writes arm64 kernels. The Go assembler lacks most integer vector
// instructions, so they are written as words; the encodings are those of the
// Arm Architecture Reference Manual, chapter C7.2. The comment beside a word is
// its instruction.
type arm struct {
	strings.Builder
	dot    bool // with the dot product instructions
	labels int
	free   []v  // vector registers not in use
	high   bool // take the highest first: some instructions need low ones

	consts map[string]string // names of constants, by their bytes
	data   strings.Builder
	stubs  strings.Builder
}

// v is a vector register's number.
type v uint32

func newArm(dot bool) *arm {
	return &arm{dot: dot, consts: map[string]string{}}
}

func (a *arm) suffix() string {
	if a.dot {
		return "DotProd"
	}
	return "NEON"
}

// line writes an instruction in the Go assembler's own language.
func (a *arm) line(format string, args ...any) { fmt.Fprintf(a, "\t"+format+"\n", args...) }

func (a *arm) word(enc uint32, format string, args ...any) {
	fmt.Fprintf(a, "\tWORD $%#08x // %s\n", enc, fmt.Sprintf(format, args...))
}

func (a *arm) label(s string) string {
	a.labels++
	return fmt.Sprintf("%s%d", s, a.labels)
}

func (a *arm) at(label string) { fmt.Fprintf(a, "\n%s:\n", label) }

// get takes a free register, put gives registers back.
func (a *arm) get() v {
	if len(a.free) == 0 {
		panic("out of vector registers")
	}
	k := 0
	if a.high {
		k = slices.Index(a.free, slices.Max(a.free))
	}
	r := a.free[k]
	a.free = slices.Delete(a.free, k, k+1)
	return r
}

func (a *arm) gets(n int) (rs []v) {
	for range n {
		rs = append(rs, a.get())
	}
	return rs
}

func (a *arm) put(rs ...v) { a.free = append(a.free, rs...) }

// Instructions with three vector operands: name, encoding, arrangements.
type op3 struct {
	name string
	enc  uint32
	arr  [3]string
}

func same(name string, enc uint32, arr string) op3 { return op3{name, enc, [3]string{arr, arr, arr}} }

var (
	sdot   = op3{"sdot", 0x4e809400, [3]string{"4s", "16b", "16b"}}
	smull  = op3{"smull", 0x0e20c000, [3]string{"8h", "8b", "8b"}}
	smlal2 = op3{"smlal2", 0x4e208000, [3]string{"8h", "16b", "16b"}}
	// the same of int16
	smullH  = op3{"smull", 0x0e60c000, [3]string{"4s", "4h", "4h"}}
	smlalH  = op3{"smlal", 0x0e608000, [3]string{"4s", "4h", "4h"}}
	smlal2H = op3{"smlal2", 0x4e608000, [3]string{"4s", "8h", "8h"}}

	subB  = same("sub", 0x6e208400, "16b")
	subS  = same("sub", 0x6ea08400, "4s")
	mlaS  = same("mla", 0x4ea09400, "4s")
	addpS = same("addp", 0x4ea0bc00, "4s")
	addpH = same("addp", 0x4e60bc00, "8h")
	umaxS = same("umax", 0x6ea06400, "4s")
	cmgtS = same("cmgt", 0x4ea03400, "4s")
	cmtst = same("cmtst", 0x4e208c00, "16b")
	ushlS = same("ushl", 0x6ea04400, "4s")
	and   = same("and", 0x4e201c00, "16b")
	orr   = same("orr", 0x4ea01c00, "16b")
	bic   = same("bic", 0x4e601c00, "16b")
	tbl   = op3{"tbl", 0x4e000000, [3]string{"16b", "16b", "16b"}} // one table register
	uzp1H = same("uzp1", 0x4e401800, "8h")
	uzp2H = same("uzp2", 0x4e405800, "8h")
	zip1D = same("zip1", 0x4ec03800, "2d")
	zip2D = same("zip2", 0x4ec07800, "2d")

	eor   = same("eor", 0x6e201c00, "16b")
	addB  = same("add", 0x4e208400, "16b")
	mulB  = same("mul", 0x4e209c00, "16b")
	cmhiB = same("cmhi", 0x6e203400, "16b")
	cmeqH = same("cmeq", 0x6e608c00, "8h")
	zip2B = same("zip2", 0x4e007800, "16b")
	uzp2S = same("uzp2", 0x4e805800, "4s")

	fmul  = same("fmul", 0x6e20dc00, "4s")
	fadd  = same("fadd", 0x4e20d400, "4s")
	fsub  = same("fsub", 0x4ea0d400, "4s")
	fdiv  = same("fdiv", 0x6e20fc00, "4s")
	faddp = same("faddp", 0x6e20d400, "4s")
)

func (a *arm) do(o op3, d, n, m v) {
	a.word(o.enc|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s, v%d.%s", o.name, d, o.arr[0], n, o.arr[1], m, o.arr[2])
}

// Instructions with two vector operands.
type op2 struct {
	name string
	enc  uint32
	arr  [2]string
}

var (
	sadalpH = op2{"sadalp", 0x4e606800, [2]string{"4s", "8h"}}
	saddlpH = op2{"saddlp", 0x4e602800, [2]string{"4s", "8h"}}
	saddlpB = op2{"saddlp", 0x4e202800, [2]string{"8h", "16b"}}
	sxtlB   = op2{"sxtl", 0x0f08a400, [2]string{"8h", "8b"}}
	sxtl2B  = op2{"sxtl2", 0x4f08a400, [2]string{"8h", "16b"}}
	uxtlB   = op2{"uxtl", 0x2f08a400, [2]string{"8h", "8b"}}
	uxtl2B  = op2{"uxtl2", 0x6f08a400, [2]string{"8h", "16b"}}
	sxtlH   = op2{"sxtl", 0x0f10a400, [2]string{"4s", "4h"}}
	sxtl2H  = op2{"sxtl2", 0x4f10a400, [2]string{"4s", "8h"}}
	shllH   = op2{"shll #16", 0x2e613800, [2]string{"4s", "4h"}}
	shll2H  = op2{"shll2 #16", 0x6e613800, [2]string{"4s", "8h"}}
	scvtf   = op2{"scvtf", 0x4e21d800, [2]string{"4s", "4s"}}
	fcvtns  = op2{"fcvtns", 0x4e21a800, [2]string{"4s", "4s"}}
	fcvtl   = op2{"fcvtl", 0x0e217800, [2]string{"4s", "4h"}}
	fcvtl2  = op2{"fcvtl2", 0x4e217800, [2]string{"4s", "8h"}}
	fcvtn   = op2{"fcvtn", 0x0e216800, [2]string{"4h", "4s"}}
	sqxtnS  = op2{"sqxtn", 0x0e614800, [2]string{"4h", "4s"}}
	sqxtn2S = op2{"sqxtn2", 0x4e614800, [2]string{"8h", "4s"}}
	sqxtnH  = op2{"sqxtn", 0x0e214800, [2]string{"8b", "8h"}}
	sqxtn2H = op2{"sqxtn2", 0x4e214800, [2]string{"16b", "8h"}}
	negS    = op2{"neg", 0x6ea0b800, [2]string{"4s", "4s"}}
	umaxv   = op2{"umaxv", 0x6eb0a800, [2]string{"s", "4s"}}
	not     = op2{"not", 0x6e205800, [2]string{"16b", "16b"}}
	addv    = op2{"addv", 0x4eb1b800, [2]string{"s", "4s"}}
)

func (a *arm) un(o op2, d, n v) {
	a.word(o.enc|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s", o.name, d, o.arr[0], n, o.arr[1])
}

// Shifts by n of bytes (size 8), words (16) or dwords (32).
func (a *arm) ushr(size int, d, s v, n int) {
	a.word(0x6f000400|uint32(2*size-n)<<16|uint32(s)<<5|uint32(d), "ushr v%d, v%d, #%d of %d bits", d, s, n, size)
}

func (a *arm) shl(size int, d, s v, n int) {
	a.word(0x4f005400|uint32(size+n)<<16|uint32(s)<<5|uint32(d), "shl v%d, v%d, #%d of %d bits", d, s, n, size)
}

// movi fills the bytes of d.
func (a *arm) movi(d v, b byte) {
	a.word(0x4f00e400|uint32(b>>5)<<16|uint32(b&31)<<5|uint32(d), "movi v%d.16b, #%d", d, b)
}

// byElement is an instruction on four elements of 32 bits and element i of m.
func (a *arm) byElement(name string, enc uint32, d, n, m v, i int) {
	a.word(enc|uint32(i&1)<<21|uint32(i>>1)<<11|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d, v%d, v%d[%d]", name, d, n, m, i)
}

func (a *arm) fmulE(d, n, m v, i int) { a.byElement("fmul.4s", 0x4f809000, d, n, m, i) }
func (a *arm) mlaE(d, n, m v, i int)  { a.byElement("mla.4s", 0x6f800000, d, n, m, i) }
func (a *arm) sdotE(d, n, m v, i int) { a.byElement("sdot.4b", 0x4f80e000, d, n, m, i) }

// ldq loads 16 bytes at off(base), where base is the number of a general
// register. R16 is clobbered if the offset needs it.
func (a *arm) ldq(d v, base, off int) {
	switch {
	case off%16 == 0 && off >= 0 && off < 65536:
		a.word(0x3dc00000|uint32(off/16)<<10|uint32(base)<<5|uint32(d), "ldr q%d, [x%d, #%d]", d, base, off)
	case off >= -256 && off < 256:
		a.word(0x3cc00000|uint32(off&0x1ff)<<12|uint32(base)<<5|uint32(d), "ldur q%d, [x%d, #%d]", d, base, off)
	default:
		a.line("ADD $%d, R%d, R16", off, base)
		a.word(0x3dc00000|16<<5|uint32(d), "ldr q%d, [x16]", d)
	}
}

// stq stores 16 bytes at off(base), off being a multiple of 16.
func (a *arm) stq(s v, base, off int) {
	a.word(0x3d800000|uint32(off/16)<<10|uint32(base)<<5|uint32(s), "str q%d, [x%d, #%d]", s, base, off)
}

// pointer returns a register that holds off(base): base itself, or R16.
func (a *arm) pointer(base, off int) string {
	if off == 0 {
		return fmt.Sprintf("R%d", base)
	}
	a.line("ADD $%d, R%d, R16", off, base)
	return "R16"
}

// constant loads 16 constant bytes, b repeated; R17 is clobbered.
func (a *arm) constant(d v, b ...byte) {
	for len(b) < 16 {
		b = append(b, b...)
	}
	name, ok := a.consts[string(b)]
	if !ok {
		name = fmt.Sprintf("c%d<>", len(a.consts))
		a.consts[string(b)] = name
		for i := 0; i < 16; i += 8 {
			var x uint64
			for k := range 8 {
				x |= uint64(b[i+k]) << (8 * k)
			}
			fmt.Fprintf(&a.data, "DATA %s+%d(SB)/8, $%#016x\n", name, i, x)
		}
		fmt.Fprintf(&a.data, "GLOBL %s(SB), RODATA|NOPTR, $16\n\n", name)
	}
	a.line("MOVD $%s(SB), R17", name)
	a.ldq(d, 17, 0)
}

// keep loads a constant into a register of its own.
func (a *arm) keep(b ...byte) v {
	r := a.get()
	a.constant(r, b...)
	return r
}

// function starts a function; params are its Go parameters.
func (a *arm) function(name, doc, params string, args int) {
	a.free, a.high = nil, false
	for r := v(0); r < 32; r++ {
		a.free = append(a.free, r)
	}
	doc = strings.ReplaceAll(doc, "\n", "\n// ")
	fmt.Fprintf(&a.stubs, "\n// %s %s\n//\n//go:noescape\nfunc %s(%s)\n", name, doc, name, params)
	fmt.Fprintf(a, "\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, params, name, args)
}

var armHeader = "// Code generated by command: " + strings.Join(command, " ") + ". DO NOT EDIT.\n\n//go:build !noasm\n\n"

func (a *arm) write(dir, name string) error {
	code := armHeader + "#include \"textflag.h\"\n" + a.String() + "\n" + strings.TrimSuffix(a.data.String(), "\n")
	if err := os.WriteFile(filepath.Join(dir, name+".s"), []byte(code), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".go"), []byte(armHeader+"package kernel\n"+a.stubs.String()), 0o644)
}

// armFiles are the outputs: name.s, and its Go declarations in name.go.
var armFiles = []struct {
	name string
	dot  bool
	make func(*arm)
}{
	{"prepare_neon_arm64", false, func(a *arm) {
		a.prepareQ8()
		a.prepareQ8K()
		a.roundF16()
	}},
	{"gemvf_neon_arm64", false, (*arm).gemvFloats},
	{"gemm_dotprod_arm64", true, (*arm).gemms},
	{"gemv_neon_arm64", false, func(a *arm) {
		a.gemvs32()
		a.gemvsK()
		a.gemvsLow()
	}},
	{"gemv_dotprod_arm64", true, func(a *arm) {
		a.gemvs32()
		a.gemvsK()
		a.gemvsLow()
	}},
}
