package flashio

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"unsafe"
)

// TestInsideDoesNotTrustTheSystem registers a view that the operating system
// does not have. An answer that misses it must not be used: memory would be
// unmapped under live pointers.
func TestInsideDoesNotTrustTheSystem(t *testing.T) {
	dir, err := os.MkdirTemp("", "flashio")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, make([]byte, 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenFiles([]string{path}, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	real, err := s.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	defer real.Unmap()
	ptrs := []uintptr{uintptr(real.view), uintptr(real.view) + 9999, 0}
	if in, err := InsideMapping(s, ptrs); err != nil || len(in) != 2 {
		t.Fatalf("%v, %v", in, err)
	}
	heap := make([]byte, 100)
	ghost := &Mapping{Path: path, id: s.files[0].ID, view: unsafe.Pointer(&heap[0]), size: 100}
	live.add(ghost)
	defer live.remove(ghost)
	if in, err := InsideMapping(s, ptrs); !errors.Is(err, ErrNotAvailable) {
		t.Fatalf("%v, %v", in, err)
	}
}
