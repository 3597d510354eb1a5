//go:build !noasm

package isa

import "golang.org/x/sys/cpu"

func detect() (list []Set) {
	x := &cpu.X86
	if !x.HasAVX2 || !x.HasF16C || !x.HasFMA {
		return nil
	}
	list = append(list, AVX2)
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512VNNI && x.HasAVX512GFNI {
		list = append(list, AVX512)
	}
	return list
}
