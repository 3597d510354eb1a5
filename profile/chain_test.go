package profile

import (
	"slices"
	"strings"
	"testing"
)

// chained is a recorder that has recorded tokens, each of which missed what misses says.
func chained(tokens, most int, misses func(i int) []Miss) *Recorder {
	at := int64(0)
	r := NewRecorder(func() int64 { return at })
	r.Begin(Start{Run: 1, MaxTokens: tokens, Touches: most}, &Gauges{})
	r.First(&Reading{At: at})
	var rec Record
	for i := range tokens {
		at += 1e6
		r.Missed(misses(i))
		r.Token(&Reading{At: at, Workers: 1}, 0, &rec)
	}
	return r
}

func TestMissesAreKeptByToken(t *testing.T) {
	const tokens = ChainTokens + 100
	of := func(i int) []Miss {
		return slices.Repeat([]Miss{{Layer: uint16(i % 50), Expert: 7, Away: uint16(i), Wait: uint32(i)}}, i%5)
	}
	r := chained(tokens, 5, of)
	got := make([]Miss, 16)
	for i := range tokens {
		n, known := r.Chain(int64(i), got)
		if want := i >= 100; known != want {
			t.Fatalf("token %d of %d: known %v", i, tokens, known)
		}
		if known && !slices.Equal(got[:n], of(i)) {
			t.Fatalf("token %d: %+v, want %+v", i, got[:n], of(i))
		}
	}
	for _, i := range []int64{-1, tokens, 1 << 40} {
		if _, known := r.Chain(i, got); known {
			t.Errorf("token %d is known", i)
		}
	}
}

// Tokens that miss much push out older ones; memory stays within its bound.
func TestMissesAreBoundInMemory(t *testing.T) {
	const most = 1000
	r := chained(2000, most, func(i int) []Miss { return make([]Miss, most) })
	misses := make([]Miss, most)
	first := 0
	for ; first < 2000; first++ {
		if _, known := r.Chain(int64(first), misses); known {
			break
		}
	}
	if kept := 2000 - first; kept < 1000 || kept > 16<<20/16/most {
		t.Errorf("%d tokens are kept", kept)
	}
	if n := r.chains.bytes(); n > chainBytes || n < chainBytes*3/4 {
		t.Errorf("%d bytes are taken, at most %d may be", n, int64(chainBytes))
	}
}

func TestMissesAreKeptWithoutAllocating(t *testing.T) {
	r := chained(10, 20, func(int) []Miss { return nil })
	r.Begin(Start{Run: 2, MaxTokens: 1000, Touches: 20}, &Gauges{})
	misses := make([]Miss, 20)
	var rec Record
	if n := testing.AllocsPerRun(500, func() {
		r.Missed(misses)
		r.Token(&Reading{Workers: 1}, 0, &rec)
	}); n != 0 {
		t.Errorf("%v allocations a token", n)
	}
}

func TestWhyATokenWasSlow(t *testing.T) {
	r := &Record{Step: 17, Wall: 12e6, Stall: Some[int64](8e6)}
	misses := []Miss{
		{Layer: 3, Expert: 5, Away: NeverThere, Wait: 1000, Drive: 1000},
		{Layer: 23, Expert: 97, Away: 41, Behind: 6, Wait: 2400, Drive: 900},
		{Layer: 24, Expert: 1, Away: 1, Behind: 1, Wait: 600, Drive: 600, Early: true},
		{Layer: 25, Expert: 2, Away: LongAway, Early: true},
	}
	want := []string{
		"token 17 took 12.0 ms, of which it waited 8.00; 4 experts missed",
		"layer 23, expert 97: evicted 41 tokens ago, read behind 6 others, 2.40 ms",
		"layer 3, expert 5: never there before, 1.00 ms",
		"layer 24, expert 1: evicted 1 token ago, read ahead too late, 0.60 ms",
		"layer 25, expert 2: evicted 65534 tokens ago or earlier, read ahead in time",
		// Three quarters of the waiting was for what had been there, three eighths in the queue.
		"a cache that had kept them: 6.00 ms less; a lane for each read: 3.00; reading them ahead in time: 8.00 [estimated]",
	}
	if got := WhySlow(r, misses, true); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := WhySlow(r, nil, false); len(got) != 1 || !strings.Contains(got[0], "n/a") {
		t.Errorf("of a token that is no longer known: %q", got)
	}
	if got := WhySlow(r, nil, true); len(got) != 1 || !strings.Contains(got[0], "every expert was in the cache") {
		t.Errorf("of a token that missed nothing: %q", got)
	}
	if _, ok := Save(&Record{}, misses); ok {
		t.Error("savings of a token whose waiting was not measured")
	}
}
