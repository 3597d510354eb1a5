// Command asm writes the kernels of bmoe/engine/kernel, those of amd64 and those of
// arm64. It is a module of its own, so that nobody who builds bmoe needs the
// assembler library.
//
//	go generate ./engine/kernel
//
// With arguments it writes only the files whose names contain one of them.
package main

import (
	"bytes"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/buildtags"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// gen collects the functions of one output file.
type gen struct {
	*build.Context
	vnni   bool // AVX-512 with VPDPBUSD and VPDPWSSD
	tokens int  // vectors that a gemm kernel takes
	labels int
	// The prefetches of a gemv kernel's block that have not been written yet, and
	// how many go with each row.
	pending []operand.Mem
	perRow  int
	consts  map[string]operand.Mem
}

func (g *gen) suffix() string {
	if g.vnni {
		return "AVX512"
	}
	return "AVX2"
}

// label returns a name that is new in this file.
func (g *gen) label(s string) string {
	g.labels++
	return fmt.Sprintf("%s%d", s, g.labels)
}

// bytes32 returns 32 constant bytes in memory, b repeated as needed.
func (g *gen) bytes32(b ...byte) operand.Mem { return g.bytesN(32, b) }

func (g *gen) bytesN(n int, b []byte) operand.Mem {
	for len(b) < n {
		b = append(b, b...)
	}
	key := string(b)
	if m, ok := g.consts[key]; ok {
		return m
	}
	m := g.StaticGlobal(fmt.Sprintf("c%d", len(g.consts)))
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := 0; i < len(b); i += 8 {
		var v uint64
		for k := range 8 {
			v |= uint64(b[i+k]) << (8 * k)
		}
		g.AddDatum(i, operand.U64(v))
	}
	g.consts[key] = m
	return m
}

func words(w ...uint16) (b []byte) {
	for _, v := range w {
		b = append(b, byte(v), byte(v>>8))
	}
	return b
}

// floats32 returns 32 bytes of constant memory filled with f.
func (g *gen) floats32(f float32) operand.Mem { return g.bytes32(dwords(math.Float32bits(f))...) }

func dwords(w ...uint32) (b []byte) {
	for _, v := range w {
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return b
}

// clearing emits an instruction that writes the lower half of d and clears the
// upper one. The allocator would take d's upper half to be older, and so keep a
// register for it from the beginning of the function.
func (g *gen) clearing(opcode string, d reg.VecVirtual, in ...operand.Op) {
	g.Instruction(&ir.Instruction{
		Opcode: opcode, Operands: append(append([]operand.Op(nil), in...), d.AsX()),
		Inputs: in, Outputs: []operand.Op{d},
	})
}

// rows addresses eight rows of a matrix at their current block.
type rows struct {
	base, base4, s, s3 reg.Register
}

// at returns the memory off bytes into row i's block.
func (r rows) at(i, off int) operand.Mem {
	m := operand.Mem{Base: r.base, Disp: off}
	if i >= 4 {
		m.Base = r.base4
	}
	switch i % 4 {
	case 1:
		m.Index, m.Scale = r.s, 1
	case 2:
		m.Index, m.Scale = r.s, 2
	case 3:
		m.Index, m.Scale = r.s3, 1
	}
	return m
}

func at(p reg.Register, off int) operand.Mem { return operand.Mem{Base: p, Disp: off} }

// file is one output: name.s, and its Go declarations in name.go.
type file struct {
	name string
	make func(*gen)
}

var files []file

// command writes all the files again; their headers name it.
var command = []string{"go", "generate", "./engine/kernel"}

// twin says in a kernel's comment which Go function computes the same, readably: for
// a kernel of one weight type the function dot and its name.
func twin(name string) string {
	switch name[:2] {
	case "IQ", "TQ":
		if name[2] < '4' { // the types that quant.Unpack takes
			name = "Unpacked"
		}
	}
	return "\ndot" + name + " is its twin in Go."
}

// twins says so for a kernel that many types share.
const twins = "\nIts twins in Go are the dot functions of the types that are packed for it."

// lines returns the lines of a comment.
func lines(doc string) []string { return strings.Split(doc, "\n") }

func write(dir string, f file) error {
	g := &gen{Context: build.NewContext(), consts: map[string]operand.Mem{}}
	c, err := buildtags.ParseConstraint("!noasm")
	if err != nil {
		return err
	}
	g.Constraint(c)
	f.make(g)
	out, err := g.Result()
	if err != nil {
		return err
	}
	if err := pass.Compile.Execute(out); err != nil {
		return err
	}
	cfg := printer.Config{Argv: command, Pkg: "kernel"}
	if err := emit(filepath.Join(dir, f.name+".s"), printer.NewGoAsm(cfg), out); err != nil {
		return err
	}
	return emit(filepath.Join(dir, f.name+".go"), printer.NewStubs(cfg), out)
}

func emit(path string, p printer.Printer, f *ir.File) error {
	b, err := p.Print(f)
	if err != nil {
		return err
	}
	return os.WriteFile(path, bytes.TrimLeft(b, "\n"), 0o644)
}

func main() {
	log.SetFlags(0)
	wanted := func(name string) bool {
		return len(os.Args) < 2 || slices.ContainsFunc(os.Args[1:], func(s string) bool { return strings.Contains(name, s) })
	}
	for _, f := range files {
		if !wanted(f.name) {
			continue
		}
		if err := write("..", f); err != nil {
			log.Fatalf("%s: %v", f.name, err)
		}
	}
	for _, f := range armFiles {
		if !wanted(f.name) {
			continue
		}
		a := newArm(f.dot)
		f.make(a)
		if err := a.write("..", f.name); err != nil {
			log.Fatalf("%s: %v", f.name, err)
		}
	}
}
