//go:build linux || darwin

package flashio_test

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"bmoe/flashio"
)

// faultsHaveAddresses reads a byte that faults, without Guard.
func faultsHaveAddresses(b []byte) (have bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { _, have = recover().(interface{ Addr() uintptr }) }()
	return b[len(b)-1] == 0
}

// TestShrunkFileIsAnError: reading a mapping of a file that was cut off raises
// SIGBUS, which must come out as an error that names the file and the place.
// (Windows and its file systems refuse to cut a mapped file off.)
func TestShrunkFileIsAnError(t *testing.T) {
	path := writeFile(t, 1<<20)
	s := openFiles(t, flashio.FileOptions{}, path)
	m, err := s.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	if err := os.Truncate(path, 1<<16); err != nil {
		t.Fatal(err)
	}
	if !faultsHaveAddresses(m.Data) {
		// Only where an emulator may be at work: elsewhere it is a failure.
		if runtime.GOARCH == "arm64" {
			t.Skip("faults come without their address here, as under qemu's user emulation")
		}
		t.Fatal("faults come without their address")
	}
	var sum byte
	err = flashio.Guard(func() { sum += m.Data[1<<19] })
	var fault *flashio.MappingFault
	if !errors.As(err, &fault) || fault.Path != path || fault.Offset != 1<<19 {
		t.Fatalf("got %v", err)
	}
	if err := m.Warm(0, len(m.Data)); !errors.As(err, &fault) || fault.Offset != 1<<16 {
		t.Fatalf("warming: %v", err)
	}
	if err := flashio.Guard(func() { sum += m.Data[100] }); err != nil {
		t.Fatalf("the part that is left: %v", err)
	}
}
