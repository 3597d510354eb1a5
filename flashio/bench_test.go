package flashio_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/conform"
)

// benchFile returns a file to read: BMOE_BENCH_FILE, or a gigabyte written for
// the purpose, which is deleted again. Blocks must really be on the drive: holes
// and unwritten extents are not read at all.
func benchFile(b *testing.B) string {
	b.Helper()
	if path := os.Getenv("BMOE_BENCH_FILE"); path != "" {
		return path
	}
	path := filepath.Join(conform.TempDir(b), "bench")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	block := make([]byte, 1<<20)
	rng := rand.NewChaCha8([32]byte{1})
	for range 1024 {
		rng.Read(block)
		if _, err := w.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// loop keeps a fixed number of random reads going: each completed request asks
// for another window at once, on the reader's goroutine.
type loop struct {
	rd     flashio.Reader
	rng    *rand.Rand
	mu     sync.Mutex
	left   atomic.Int64
	blocks int64
	arena  []byte // slots that the reads go to in turn
	next   int    // where the next slot begins
	group  flashio.Group
}

func (l *loop) ReadDone(r *flashio.Request) {
	if r.Err != nil || l.left.Add(-1) < 0 {
		l.group.ReadDone(r)
		return
	}
	l.mu.Lock()
	r.Offset = l.rng.Int64N(l.blocks) * int64(len(r.Buf))
	if l.next+len(r.Buf) > len(l.arena) {
		l.next = 0
	}
	r.Buf = l.arena[l.next : l.next+len(r.Buf)]
	l.next += len(r.Buf)
	l.mu.Unlock()
	l.rd.Submit(r)
}

// BenchmarkRandomReads reads 576 KiB windows, the shape of one routed expert
// projection of Qwen3.6-35B-A3B-Q4_K_M, into huge pages and into small ones. It
// reports the CPU time of the whole process per GiB beside the rate.
func BenchmarkRandomReads(b *testing.B) {
	s := openFiles(b, flashio.FileOptions{}, benchFile(b))
	for _, engine := range []string{"lanes", "uring"} {
		for _, n := range []int{1, 2, 4, 8, 16} {
			for _, pages := range []string{"huge", "small"} {
				b.Run(fmt.Sprintf("%s-%d-%s", engine, n, pages), func(b *testing.B) {
					randomReads(b, s, engine, n, pages == "small")
				})
			}
		}
	}
}

func randomReads(b *testing.B, s *flashio.Files, engine string, n int, small bool) {
	const size, slots = 576 << 10, 256
	rd, fallback, err := flashio.Open(s, engine, flashio.LaneOptions{Lanes: n})
	if err != nil {
		b.Fatal(err)
	}
	defer rd.Close()
	if fallback != "" {
		b.Skip(fallback)
	}
	arena, err := flashio.Reserve(slots * size)
	if err != nil {
		b.Fatal(err)
	}
	defer arena.Release()
	if small {
		arena.SmallPages()
	}
	if err := arena.Commit(0, arena.Len()); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < arena.Len(); i += os.Getpagesize() {
		arena.Bytes()[i] = 1
	}
	l := &loop{rd: rd, arena: arena.Bytes(), rng: rand.New(rand.NewPCG(1, 2)), blocks: s.Size() / size}
	l.left.Store(int64(b.N))
	b.SetBytes(size)
	before := cpuTime()
	b.ResetTimer()
	l.group.Add(n)
	for i := range n {
		l.ReadDone(&flashio.Request{Buf: arena.Bytes()[i*size : (i+1)*size], Need: size, Done: l})
	}
	if err := l.group.Wait(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if after := cpuTime(); after > 0 {
		b.ReportMetric(float64(after-before)/1e6/(float64(b.N)*size/(1<<30)), "cpu-ms/GiB")
	}
}

// BenchmarkBatches submits what one layer may miss and waits for all of it, as
// the streamer does: an idle reader has to be got up, and the waiter told. Beside
// the time per batch it reports how long the first read took to begin and how
// long after the last one ended the waiter knew.
func BenchmarkBatches(b *testing.B) {
	const size = 576 << 10
	path := benchFile(b)
	s := openFiles(b, flashio.FileOptions{}, path)
	for _, reads := range []int{1, 3, 9} {
		for _, engine := range []string{"lanes", "uring"} {
			b.Run(fmt.Sprintf("%d-reads-%s-4", reads, engine), func(b *testing.B) {
				rd, fallback, err := flashio.Open(s, engine, flashio.LaneOptions{Lanes: 4})
				if err != nil {
					b.Fatal(err)
				}
				if fallback != "" {
					b.Skip(fallback)
				}
				defer rd.Close()
				a := newArena(b, 64<<20) // large enough for huge pages, as the cache is
				clear(a.Bytes())         // every page is there
				rng := rand.New(rand.NewPCG(1, 2))
				var g flashio.Group
				rs := make([]*flashio.Request, reads)
				for i := range rs {
					rs[i] = &flashio.Request{Buf: a.Bytes()[i*size : (i+1)*size], Need: size, Done: &g}
				}
				var begin, know int64
				b.SetBytes(int64(reads * size))
				for b.Loop() {
					for _, r := range rs {
						r.Offset = rng.Int64N(s.Size()/size) * size
					}
					g.Add(reads)
					rd.Submit(rs...)
					if err := g.Wait(); err != nil {
						b.Fatal(err)
					}
					now, started, ended := clock.Now(), rs[0].Started, int64(0)
					for _, r := range rs {
						started, ended = min(started, r.Started), max(ended, r.Ended)
					}
					begin += started - rs[0].Queued
					know += now - ended
				}
				b.ReportMetric(float64(begin)/float64(b.N), "ns-to-begin")
				b.ReportMetric(float64(know)/float64(b.N), "ns-to-know")
			})
		}
	}
}
