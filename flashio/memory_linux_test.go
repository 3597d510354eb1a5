package flashio_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

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
	a.Touch(2)
	check("a touched arena", size/2+size)
}
