package flashio_test

import (
	"os"
	"testing"
	"unsafe"

	"bmoe/flashio"
)

func TestRangeLifeCycle(t *testing.T) {
	page := os.Getpagesize()
	r, err := flashio.Reserve(100*page - 5)
	if err != nil {
		t.Fatal(err)
	}
	if r.Len() != 100*page {
		t.Fatalf("%d bytes reserved", r.Len())
	}
	if err := r.Commit(10*page, 20*page); err != nil {
		t.Fatal(err)
	}
	b := r.Bytes()[10*page : 30*page]
	for i := range b {
		if b[i] != 0 {
			t.Fatal("fresh memory is not zero")
		}
		b[i] = 1
	}
	if err := r.Commit(5*page, 10*page); err != nil { // overlaps what is committed
		t.Fatal(err)
	}
	if b[0] != 1 {
		t.Fatal("committing again lost what was there")
	}
	if err := r.Decommit(12*page, 4*page); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(12*page, 4*page); err != nil {
		t.Fatal(err)
	}
	if b[2*page] != 0 || b[2*page-1] != 1 || b[6*page] != 1 {
		t.Fatal("decommitted memory came back, or its neighbours went")
	}
	for name, err := range map[string]error{
		"half a page":   r.Commit(0, page/2),
		"from a half":   r.Commit(page/2, page),
		"past the end":  r.Commit(99*page, 2*page),
		"before":        r.Decommit(-page, page),
		"negative size": r.Decommit(page, -page),
	} {
		if err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if err := r.Commit(100*page, 0); err != nil {
		t.Errorf("nothing at the end: %v", err)
	}
	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	if err := r.Release(); err != nil {
		t.Fatalf("second release: %v", err)
	}
}

func TestReserveIsFree(t *testing.T) {
	// More addresses than there is memory must be no matter.
	r, err := flashio.Reserve(1 << 36)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, -1} {
		if _, err := flashio.Reserve(n); err == nil {
			t.Errorf("%d bytes were reserved", n)
		}
	}
}

func TestTouchingChangesNothing(t *testing.T) {
	for _, size := range []int{1, 4096, 3<<20 + 1, 9 << 20} {
		r, err := flashio.Reserve(size)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(0, r.Len()); err != nil {
			t.Fatal(err)
		}
		b := r.Bytes()
		b[0], b[len(b)-1] = 5, 6
		r.Touch(0, r.Len(), 3)
		if b[0] != 5 || b[len(b)-1] != 6 {
			t.Error("touching changed the contents")
		}
		if err := r.Release(); err != nil {
			t.Error(err)
		}
	}
}

func TestArena(t *testing.T) {
	for _, size := range []int{1, 4096, 3<<20 + 1, 9 << 20} {
		a, err := flashio.NewArena(size)
		if err != nil {
			t.Fatal(err)
		}
		b := a.Bytes()
		if len(b) < size || len(b)%os.Getpagesize() != 0 || uintptr(unsafe.Pointer(&b[0]))%uintptr(os.Getpagesize()) != 0 {
			t.Fatalf("%d bytes asked for: %d at %p", size, len(b), &b[0])
		}
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Fatalf("second Close: %v", err)
		}
	}
}
