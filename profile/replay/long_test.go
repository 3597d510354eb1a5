package replay

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"bmoe/profile/trace"
)

// endless is a route trace of any length: a token's rows again and again, with growing
// steps and other experts.
type endless struct {
	tokens int
	random *rand.Rand
	buf    []byte
	step   int
	left   []byte
}

const (
	longLayers, longExperts, longUsed = 24, 64, 6
	longRows                          = longLayers * longUsed // of a token
)

func newEndless(tokens int) *endless {
	var head strings.Builder
	fmt.Fprintf(&head, "# route_trace v1\n# model=m arch=x n_layer=%d n_expert=%d n_expert_used=%d\n", longLayers, longExperts, longUsed)
	for l := range longLayers {
		fmt.Fprintf(&head, "# layer=%d expert_bytes=1000000 dense_bytes=1 slot_bytes=1048576\n", l)
	}
	head.WriteString("turn,phase,step,layer,slot,expert,weight,residency,expert_bytes\n")
	return &endless{tokens: tokens, random: rand.New(rand.NewPCG(1, 2)), left: []byte(head.String())}
}

func (e *endless) Read(b []byte) (int, error) {
	if len(e.left) == 0 {
		if e.step == e.tokens {
			return 0, io.EOF
		}
		e.buf = e.buf[:0]
		topic := e.step / 64 % 7
		for l := range longLayers {
			first := e.random.IntN(longExperts - longUsed - 8)
			for r := range longUsed {
				x := (first/8 + topic + r*9) % longExperts
				e.buf = fmt.Appendf(e.buf, "0,1,%d,%d,%d,%d,0.166667,0,1000000\n", e.step, l, r, x)
			}
		}
		e.left = e.buf
		e.step++
	}
	n := copy(b, e.left)
	e.left = e.left[n:]
	return n, nil
}

func (e *endless) Close() error { return nil }

// longText is a trace in memory, so that a benchmark does not measure its making.
func longText(t testing.TB, tokens int) string {
	text, err := io.ReadAll(newEndless(tokens))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A trace eight times as long takes no more memory: nothing is kept of what has been
// replayed.
func TestMemoryDoesNotGrowWithTheTrace(t *testing.T) {
	long, short := longText(t, 480), longText(t, 60)
	took := func(trace, name string) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, out, err := Run(text(trace), []Case{{Policy: name, Budget: 400 << 20}})
		runtime.ReadMemStats(&after)
		if err != nil || out[0].Decode.Lookups == 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, name := range Names() {
		if name == "belady" {
			continue // knows the future, four bytes a lookup
		}
		took(short, name)
		if a, b := took(short, name), took(long, name); b > a+a/4+64<<10 {
			t.Errorf("%s: %d bytes for 60 tokens, %d for 480", name, a, b)
		}
	}
	if _, a, err := Analyze(strings.NewReader(long)); err != nil || a.Tokens != 480 {
		t.Errorf("%+v, %v", a, err)
	}
}

// How many rows of a trace a second each policy replays: docs/telemetry.md has the
// figures.
func BenchmarkRows(b *testing.B) {
	const tokens = 2000
	long := longText(b, tokens)
	for _, name := range []string{"lru", "lfu", "lookalike", "auto"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(long)))
			for b.Loop() {
				if _, _, err := Run(text(long), []Case{{Policy: name, Budget: 400 << 20}}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(tokens*longRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
	b.Run("reading alone", func(b *testing.B) {
		for b.Loop() {
			rows, err := trace.NewRouteRows(strings.NewReader(long))
			if err == nil {
				err = Batches(rows, func(*Batch) error { return nil })
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(tokens*longRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}
