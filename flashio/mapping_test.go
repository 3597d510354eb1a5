package flashio_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"bmoe/flashio"
)

// weight is a named pointer, as the engine's registry holds them.
type weight struct {
	name string
	data []byte
}

func insideNames(t *testing.T, s *flashio.Files, ws []weight) []string {
	t.Helper()
	ptrs := make([]uintptr, len(ws))
	for i, w := range ws {
		ptrs[i] = uintptr(unsafe.Pointer(unsafe.SliceData(w.data)))
	}
	in, err := flashio.InsideMapping(s, ptrs)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range in {
		names = append(names, ws[i].name)
	}
	return names
}

// TestMappingRelease is the check behind --release-mmap: weights inside the
// mapping are found by asking the operating system, rebinding them leaves none,
// one that was forgotten is named, and after the release the addresses belong
// to nobody.
func TestMappingRelease(t *testing.T) {
	path := writeFile(t, 1<<20+123)
	other := writeFile(t, 1<<20)
	s := openFiles(t, flashio.FileOptions{}, path)
	m, err := s.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	om, err := openFiles(t, flashio.FileOptions{}, other).Map(0)
	if err != nil {
		t.Fatal(err)
	}
	defer om.Unmap()

	want := make([]byte, 1<<20+123)
	pattern(want, 0)
	if !bytes.Equal(m.Data, want) {
		t.Fatal("the mapping does not show the file")
	}
	own := newArena(t, 1<<20).Bytes()
	ws := []weight{
		{"token_embd", m.Data[64:]},
		{"heap", make([]byte, 100)},
		{"arena", own},
		{"output (tied)", m.Data[64:]},
		{"last byte", m.Data[len(m.Data)-1:]},
		{"another file", om.Data},
	}
	if got, want := insideNames(t, s, ws), []string{"token_embd", "output (tied)", "last byte"}; !slices.Equal(got, want) {
		t.Fatalf("inside the mapping: %q, want %q", got, want)
	}
	// The dense policy rebinds, and forgets the twin.
	copy(own, m.Data)
	ws[0].data, ws[4].data = own[64:], own[:1]
	if got, want := insideNames(t, s, ws), []string{"output (tied)"}; !slices.Equal(got, want) {
		t.Fatalf("inside after rebinding all but one: %q, want %q", got, want)
	}
	stale := ws[3].data
	ws[3].data = own[64:]
	if got := insideNames(t, s, ws); got != nil {
		t.Fatalf("inside after rebinding all: %q", got)
	}

	if view, _ := m.State(); !view {
		t.Fatal("no view before the release")
	}
	if err := m.UnmapView(); err != nil {
		t.Fatal(err)
	}
	closed, err := m.CloseSection()
	if err != nil {
		t.Fatal(err)
	}
	if closed != flashio.SectionsExist {
		t.Fatalf("CloseSection says %v on a system where sections exist: %v", closed, flashio.SectionsExist)
	}
	if view, section := m.State(); view || section || m.Data != nil {
		t.Fatalf("after the release: view %v, section %v", view, section)
	}
	if got := insideNames(t, s, []weight{{"stale", stale}}); got != nil {
		t.Fatalf("after the release the system still finds %q", got)
	}
	if err := m.Unmap(); err != nil {
		t.Fatalf("releasing twice: %v", err)
	}
	if _, _, err := m.Resident(0, 1); err == nil {
		t.Fatal("residency of a released mapping")
	}
	// Nothing holds the file any more: on Windows a section would.
	if err := os.Truncate(path, 10); err != nil {
		t.Fatalf("the file is still held: %v", err)
	}
}

// TestInsideSeesEveryName: a mapping made through a hard link is one of the file.
func TestInsideSeesEveryName(t *testing.T) {
	path := writeFile(t, 1<<16)
	link := hardLink(t, path)
	a, b := openFiles(t, flashio.FileOptions{}, path), openFiles(t, flashio.FileOptions{}, link)
	if a.File(0).ID != b.File(0).ID {
		t.Fatal("two names of one file have different identities")
	}
	m, err := b.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	if got := insideNames(t, a, []weight{{"w", m.Data}}); len(got) != 1 {
		t.Fatal("the mapping of the link was not seen as one of the file")
	}
}

func TestMapRefuses(t *testing.T) {
	empty := writeFile(t, 0)
	s := openFiles(t, flashio.FileOptions{}, empty)
	if _, err := s.Map(0); err == nil || !strings.Contains(err.Error(), empty) || !strings.Contains(err.Error(), "empty") {
		t.Errorf("mapping an empty file: %v", err)
	}
	if _, err := s.Map(1); err == nil {
		t.Error("mapping a file that is not in the set")
	}
	path := writeFile(t, 10000)
	s = openFiles(t, flashio.FileOptions{}, path)
	if err := os.Truncate(path, 5000); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Map(0); err == nil || !strings.Contains(err.Error(), "5000") {
		t.Errorf("mapping a file that shrank since it was opened: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Map(0); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("mapping a file that is gone: %v", err)
	}
}

func TestWarmMakesResident(t *testing.T) {
	s := openFiles(t, flashio.FileOptions{}, writeFile(t, 300_000))
	m, err := s.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	if err := m.Warm(1000, 200_000); err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	resident, pages, err := m.Resident(1000, 200_000)
	if errors.Is(err, flashio.ErrNotAvailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := (201_000 + page - 1) / page; pages != want || resident != want {
		t.Fatalf("%d of %d pages resident after warming, want all of %d", resident, pages, want)
	}
	if _, _, err := m.Resident(0, 300_001); err == nil {
		t.Error("residency past the end")
	}
	if err := m.Warm(-1, 5); err == nil {
		t.Error("warming before the beginning")
	}
}

// TestGuardNamesTheFile provokes the one fault in a mapping that every system
// lets a test provoke, a store to it. See TestShrunkFileIsAnError for a real one.
func TestGuardNamesTheFile(t *testing.T) {
	path := writeFile(t, 100_000)
	m, err := openFiles(t, flashio.FileOptions{}, path).Map(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	before := true
	err = flashio.Guard(func() {
		m.Data[70_000] = 1
		before = false
	})
	var fault *flashio.MappingFault
	if !errors.As(err, &fault) || fault.Path != path || fault.Offset != 70_000 || !before {
		t.Fatalf("got %v", err)
	}
}

func TestGuardLetsOtherPanicsThrough(t *testing.T) {
	catch := func(f func()) (p any) {
		defer func() { p = recover() }()
		if err := flashio.Guard(f); err != nil {
			t.Errorf("an error instead of a panic: %v", err)
		}
		return nil
	}
	if p := catch(func() { panic("mine") }); p != "mine" {
		t.Errorf("panic came out as %v", p)
	}
	var null *int
	if p := catch(func() { *null = 1 }); p == nil {
		t.Error("a nil dereference was swallowed")
	}
	// A fault outside any mapping is a defect, not a file that shrank.
	r, err := flashio.Reserve(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	if p := catch(func() { r.Bytes()[0] = 1 }); p == nil {
		t.Error("a fault in reserved memory was swallowed")
	}
	if p := catch(func() {}); p != nil {
		t.Error(p)
	}
}
