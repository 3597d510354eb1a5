package flashio_test

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"bmoe/flashio"
)

// rssAnon returns the process's anonymous resident bytes.
func rssAnon(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatal("no RssAnon in /proc/self/status")
	return 0
}

// hugeBytes returns how much of the range that begins at p lies in huge pages.
func hugeBytes(t *testing.T, p []byte) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	from := uintptr(unsafe.Pointer(&p[0]))
	to := from + uintptr(len(p))
	inside, total := false, 0
	for line := range strings.Lines(string(b)) {
		fields := strings.Fields(line)
		if start, end, ok := strings.Cut(fields[0], "-"); ok {
			s, serr := strconv.ParseUint(start, 16, 64)
			e, eerr := strconv.ParseUint(end, 16, 64)
			inside = serr == nil && eerr == nil && uintptr(s) < to && uintptr(e) > from
		} else if inside && fields[0] == "AnonHugePages:" {
			kb, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			total += kb << 10
		}
	}
	return total
}

// TestMemoryIsHuge asks the kernel. It may have no huge page free for some of
// the range, so half of it is enough.
func TestMemoryIsHuge(t *testing.T) {
	mode, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled")
	if err != nil || strings.Contains(string(mode), "[never]") {
		t.Skip("huge pages are switched off here")
	}
	const size = 32 << 20
	a := newArena(t, size)
	if uintptr(unsafe.Pointer(&a.Bytes()[0]))%(2<<20) != 0 {
		t.Errorf("the arena begins at %p", &a.Bytes()[0])
	}
	clear(a.Bytes())
	got := hugeBytes(t, a.Bytes())
	if got == 0 && runtime.GOARCH == "arm64" {
		t.Skip("no huge pages are reported, as under qemu's user emulation")
	}
	if got < size/2 || got > size {
		t.Errorf("%d KiB of %d are in huge pages", got>>10, size>>10)
	}
	r, err := flashio.Reserve(size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	r.SmallPages()
	if err := r.Commit(0, size); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < size; i += 4096 {
		r.Bytes()[i] = 1
	}
	if got := hugeBytes(t, r.Bytes()); got != 0 {
		t.Errorf("%d KiB in huge pages where none were wanted", got>>10)
	}
}

// TestMemoryIsTakenWhenTouched asks the kernel: reserving and committing take
// nothing, touching takes all, decommitting gives it back.
func TestMemoryIsTakenWhenTouched(t *testing.T) {
	const size, slack = 64 << 20, 8 << 20
	r, err := flashio.Reserve(size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	start := rssAnon(t)
	check := func(what string, want int) {
		t.Helper()
		if got := rssAnon(t) - start; got < want-slack || got > want+slack {
			t.Errorf("%s: %d MiB resident, want about %d", what, got>>20, want>>20)
		}
	}
	if err := r.Commit(0, size); err != nil {
		t.Fatal(err)
	}
	check("committed", 0)
	b := r.Bytes()
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	check("touched", size)
	if err := r.Decommit(0, size/2); err != nil {
		t.Fatal(err)
	}
	check("half decommitted", size/2)

	a := newArena(t, size)
	check("a fresh arena", size/2)
	clear(a.Bytes())
	check("a touched arena", size/2+size)
}
