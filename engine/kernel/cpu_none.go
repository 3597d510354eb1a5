//go:build noasm || !(amd64 || arm64)

package kernel

func detect() []isa { return nil }
