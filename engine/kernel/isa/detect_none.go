//go:build noasm || !(amd64 || arm64)

package isa

func detect() []Set { return nil }
