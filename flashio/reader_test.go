package flashio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"bmoe/flashio"
	"bmoe/flashio/flashtest"
)

// engine opens a reader of one kind, closed when the test ends.
type engine func(t testing.TB, s *flashio.Files, o flashio.LaneOptions) flashio.Reader

// withEngines runs a test with every read engine that this system has.
func withEngines(t *testing.T, f func(t *testing.T, open engine)) {
	t.Run("lanes", func(t *testing.T) { f(t, openLanes) })
	t.Run("uring", func(t *testing.T) {
		f(t, func(t testing.TB, s *flashio.Files, o flashio.LaneOptions) flashio.Reader {
			t.Helper()
			rd, err := flashio.OpenURing(s, o)
			if errors.Is(err, flashio.ErrNotAvailable) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := rd.Close(); err != nil {
					t.Error(err)
				}
			})
			return rd
		})
	})
}

// TestReadsEveryWindow reads ranges at any byte, to the very end of files of
// awkward sizes, and compares every byte.
func TestReadsEveryWindow(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		for _, size := range []int64{1, 511, 4096, 65536 + 17, 1<<20 + 4097} {
			for _, noDirect := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d bytes, noDirect %v", size, noDirect), func(t *testing.T) {
					s := openFiles(t, flashio.FileOptions{}, writeFile(t, size))
					rd := open(t, s, flashio.LaneOptions{Lanes: 3, NoDirect: noDirect})
					readEveryWindow(t, s, rd, size)
				})
			}
		}
	})
}

func readEveryWindow(t *testing.T, s *flashio.Files, rd flashio.Reader, size int64) {
	rng := rand.New(rand.NewPCG(1, uint64(size)))
	type wanted struct{ off, n int64 }
	ranges := []wanted{{0, size}, {size - 1, 1}, {0, 1}, {size, 0}}
	for range 40 {
		off := rng.Int64N(size)
		ranges = append(ranges, wanted{off, 1 + rng.Int64N(size-off)})
	}
	var rs []*flashio.Request
	var ws []flashio.Window
	for _, w := range ranges {
		win, err := s.Window(0, w.off, w.n)
		if err != nil {
			t.Fatal(err)
		}
		win.Length = max(win.Length, s.Align()) // a window of nothing is read all the same
		a := newArena(t, win.Length)
		rs = append(rs, &flashio.Request{Offset: win.Offset, Buf: a.Bytes()[:win.Length], Need: win.Need})
		ws = append(ws, win)
	}
	if err := read(rd, rs...); err != nil {
		t.Fatal(err)
	}
	whole := make([]byte, size)
	pattern(whole, 0)
	for i, r := range rs {
		got, want := r.Buf[ws[i].Skip:ws[i].Need], whole[ranges[i].off:ranges[i].off+ranges[i].n]
		if !bytes.Equal(got, want) {
			t.Fatalf("range %+v: wrong bytes", ranges[i])
		}
		if r.Queued == 0 || r.Started < r.Queued || r.Ended < r.Started || r.Lane < 0 || r.Lane > 2 {
			t.Fatalf("stamps of %+v", r)
		}
	}
	var st flashio.Stats
	rd.Stats(&st)
	var reads, bytes int64
	for _, l := range st.Lanes {
		reads += l.Reads
		bytes += l.Bytes
		if l.Latency.Count() != l.Reads {
			t.Errorf("%d latencies of %d reads", l.Latency.Count(), l.Reads)
		}
	}
	if len(st.Lanes) != 3 || reads != int64(len(rs)) || st.Total.Reads != reads || st.Total.Bytes != bytes || st.Total.Errors != 0 {
		t.Errorf("%d lanes counted %d reads of %d, %d bytes; in all %d, %d", len(st.Lanes), reads, len(rs), bytes, st.Total.Reads, st.Total.Bytes)
	}
	if st.QueuedDemand+st.QueuedSpec+st.InFlight != 0 {
		t.Errorf("idle, but %+v", st)
	}
}

func TestShardsAreReadByIndex(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		a, b := writeFile(t, 8192), writeFile(t, 8192)
		if err := os.WriteFile(b, bytes.Repeat([]byte{7}, 8192), 0o644); err != nil {
			t.Fatal(err)
		}
		s := openFiles(t, flashio.FileOptions{}, a, b)
		rd := open(t, s, flashio.LaneOptions{Lanes: 2})
		buf := newArena(t, s.Align()).Bytes()
		if err := read(rd, &flashio.Request{File: 1, Buf: buf, Need: 10}); err != nil {
			t.Fatal(err)
		}
		if buf[0] != 7 || buf[9] != 7 {
			t.Fatal("file 1 was not the second file")
		}
		err := read(rd, &flashio.Request{File: 2, Buf: buf})
		if err == nil || !strings.Contains(err.Error(), "file 2 of a set of 2") {
			t.Fatalf("a file that is not in the set: %v", err)
		}
	})
}

func TestMisalignedIsRefused(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		s := openFiles(t, flashio.FileOptions{}, writeFile(t, 1<<20))
		rd := open(t, s, flashio.LaneOptions{Lanes: 1, NoDirect: true})
		al := s.Align()
		buf := newArena(t, 4*al).Bytes()
		for name, r := range map[string]*flashio.Request{
			"offset":    {Offset: 512 + 1, Buf: buf[:al]},
			"half page": {Offset: int64(al / 2), Buf: buf[:al]},
			"length":    {Buf: buf[:al+1]},
			"empty":     {Buf: nil},
			"memory":    {Buf: buf[1 : 1+al]},
			"negative":  {Offset: -int64(al), Buf: buf[:al]},
			"need":      {Buf: buf[:al], Need: al + 1},
		} {
			err := read(rd, r)
			if !errors.Is(err, flashio.ErrMisaligned) {
				t.Errorf("%s: %v", name, err)
			}
			if r.Started != 0 {
				t.Errorf("%s: a read was made", name)
			}
		}
		if err := read(rd, &flashio.Request{Buf: buf, Need: len(buf)}); err != nil {
			t.Errorf("after the refusals: %v", err)
		}
	})
}

// TestOneLaneServesDemandFirst submits everything at once, so the order is fixed.
func TestOneLaneServesDemandFirst(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		s := openFiles(t, flashio.FileOptions{}, writeFile(t, 1<<20))
		rd := open(t, s, flashio.LaneOptions{Lanes: 1})
		al := s.Align()
		mem := newArena(t, 8*al).Bytes()
		o := &order{}
		o.wg.Add(8)
		var rs []*flashio.Request
		for i := range 8 {
			rs = append(rs, &flashio.Request{Offset: int64(i * al), Buf: mem[i*al : (i+1)*al], Need: al, Spec: i < 4, Done: o})
		}
		rd.Submit(rs...)
		o.wg.Wait()
		for i, want := range []int{4, 5, 6, 7, 0, 1, 2, 3} {
			if o.seq[i] != rs[want] || rs[i].Err != nil {
				t.Fatalf("place %d: the read at page %d (%v), want %d", i, o.seq[i].Offset/int64(al), rs[i].Err, want)
			}
		}
	})
}

// TestFileShrinksUnderReads cuts the file off between two reads.
func TestFileShrinksUnderReads(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		path := writeFile(t, 1<<20)
		s := openFiles(t, flashio.FileOptions{}, path)
		rd := open(t, s, flashio.LaneOptions{Lanes: 2})
		buf := newArena(t, 1<<18).Bytes()
		if err := read(rd, &flashio.Request{Offset: 1 << 18, Buf: buf, Need: len(buf)}); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 1<<18+5000); err != nil {
			t.Fatal(err)
		}
		r := &flashio.Request{Offset: 1 << 18, Buf: buf, Need: len(buf)}
		err := read(rd, r)
		if !errors.Is(err, io.ErrUnexpectedEOF) || r.N != 5000 || !strings.Contains(err.Error(), path) {
			t.Fatalf("%d bytes, %v", r.N, err)
		}
		if err := read(rd, &flashio.Request{Offset: 1 << 18, Buf: buf, Need: 5000}); err != nil {
			t.Fatalf("what is left: %v", err)
		}
	})
}

// TestReopenFailsAndRecovers: without its file no reader is opened, what was to be
// done in between is done all the same, and another try needs no old reader.
func TestReopenFailsAndRecovers(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		path := writeFile(t, 100_000)
		s := openFiles(t, flashio.FileOptions{}, path)
		o := flashio.LaneOptions{Lanes: 2}
		old := open(t, s, o)
		rd, name := old, old.Engine()
		buf := newArena(t, s.Align()).Bytes()
		away := path + ".away"
		if err := os.Rename(path, away); err != nil {
			t.Fatal(err)
		}
		between := errors.New("between")
		var err error
		for try := range 2 {
			rd, _, err = flashio.Reopen(s, rd, name, o, func() error { return between })
			if rd != nil || !errors.Is(err, os.ErrNotExist) || !errors.Is(err, between) {
				t.Fatalf("try %d at a file that is gone: %v, %v", try, rd, err)
			}
		}
		if err := read(old, &flashio.Request{Buf: buf, Need: 1}); !errors.Is(err, flashio.ErrClosed) {
			t.Fatalf("reading with the old reader: %v", err)
		}
		if err := os.Rename(away, path); err != nil {
			t.Fatal(err)
		}
		if rd, _, err = flashio.Reopen(s, rd, name, o, func() error { return between }); rd == nil || !errors.Is(err, between) {
			t.Fatalf("the file is back: %v, %v", rd, err)
		}
		defer rd.Close()
		if err := read(rd, &flashio.Request{Buf: buf, Need: 1}); err != nil {
			t.Fatal(err)
		}
	})
}

// TestReplacedFileIsRefused puts another file under the name: its bytes are not
// the model's.
func TestReplacedFileIsRefused(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		path := writeFile(t, 100_000)
		s := openFiles(t, flashio.FileOptions{}, path)
		o := flashio.LaneOptions{Lanes: 2}
		rd := open(t, s, o)
		if err := os.Rename(path, path+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, 100_000), 0o644); err != nil {
			t.Fatal(err)
		}
		// File systems count time in steps; make sure of a difference.
		later := time.Now().Add(time.Minute)
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{
			"reopen": func() error { _, _, err := flashio.Reopen(s, rd, rd.Engine(), o, nil); return err }(),
			"map":    func() error { _, err := s.Map(0); return err }(),
		} {
			if err == nil || !strings.Contains(err.Error(), "another file") || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestManySubmitters lets goroutines submit, promote and cancel at once, and
// counts that every request ends exactly once.
func TestManySubmitters(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		s := openFiles(t, flashio.FileOptions{}, writeFile(t, 1<<20))
		rd := open(t, s, flashio.LaneOptions{Lanes: 3})
		al := s.Align()
		var all sync.WaitGroup
		for g := range 4 {
			mem := newArena(t, 8*al).Bytes()
			all.Go(func() {
				rng := rand.New(rand.NewPCG(uint64(g), 1))
				var grp flashio.Group
				rs := make([]*flashio.Request, 8)
				for round := range 100 {
					for i := range rs {
						rs[i] = &flashio.Request{Offset: rng.Int64N(200) * int64(al), Buf: mem[i*al : (i+1)*al], Need: al, Spec: rng.IntN(2) == 0, Done: &grp}
					}
					grp.Add(len(rs))
					rd.Submit(rs[:3]...)
					rd.Submit(rs[3:]...)
					rd.Promote(rs[rng.IntN(8)])
					if r := rs[rng.IntN(8)]; rd.Cancel(r) {
						grp.Add(-1)
					}
					if round%10 == 0 {
						runtime.Gosched()
					}
					if err := grp.Wait(); err != nil {
						t.Error(err)
						return
					}
					for i, r := range rs {
						want := make([]byte, al)
						pattern(want, r.Offset)
						if r.N != 0 && !bytes.Equal(want, mem[i*al:(i+1)*al]) {
							t.Errorf("wrong bytes at %d", r.Offset)
							return
						}
					}
				}
			})
		}
		all.Wait()
	})
}

func TestLaneCountIsChecked(t *testing.T) {
	s := openFiles(t, flashio.FileOptions{}, writeFile(t, 4096))
	for _, n := range []int{-1, 0, 10000} {
		for _, engine := range []string{"lanes", "uring"} {
			if _, _, err := flashio.Open(s, engine, flashio.LaneOptions{Lanes: n}); err == nil || !strings.Contains(err.Error(), fmt.Sprint(n)) {
				t.Errorf("%s, %d lanes: %v", engine, n, err)
			}
		}
	}
	if _, _, err := flashio.Open(s, "aio", flashio.LaneOptions{Lanes: 1}); err == nil || !strings.Contains(err.Error(), "aio") {
		t.Errorf("an engine that does not exist: %v", err)
	}
}

// TestURingFallsBack opens a ring where the kernel cannot read by itself.
func TestURingFallsBack(t *testing.T) {
	disk := flashtest.NewDisk(nil)
	s := openFiles(t, flashio.FileOptions{Opener: disk}, writeFile(t, 4096))
	rd, fallback, err := flashio.Open(s, "uring", flashio.LaneOptions{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if rd.Engine() != "lanes" || fallback == "" {
		t.Fatalf("engine %s, reason %q", rd.Engine(), fallback)
	}
	if open, _ := disk.Handles(); open != 2 {
		t.Fatalf("%d handles for 2 lanes", open)
	}
}

// TestReadsDoNotAllocate counts allocations of the whole process, at its real
// GOMAXPROCS, over many reads in batches.
func TestReadsDoNotAllocate(t *testing.T) {
	withEngines(t, func(t *testing.T, open engine) {
		s := openFiles(t, flashio.FileOptions{}, writeFile(t, 4<<20))
		checkNoAllocations(t, s, open(t, s, flashio.LaneOptions{Lanes: 4}))
	})
}

func checkNoAllocations(t *testing.T, s *flashio.Files, rd flashio.Reader) {
	t.Helper()
	const batch, rounds = 16, 50
	al := s.Align()
	mem := newArena(t, batch*al).Bytes()
	var g flashio.Group
	rs := make([]*flashio.Request, batch)
	for i := range rs {
		rs[i] = &flashio.Request{Offset: int64(i * al), Buf: mem[i*al : (i+1)*al], Need: al, Spec: i%2 == 1, Done: &g}
	}
	var st flashio.Stats
	run := func(n int) {
		for range n {
			g.Add(batch)
			rd.Submit(rs...)
			rd.Stats(&st)
			if err := g.Wait(); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(rounds) // fills the runtime's caches of waiters
	best := uint64(1 << 62)
	for range 5 { // other tests' leftovers may allocate meanwhile
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		run(rounds)
		runtime.ReadMemStats(&after)
		best = min(best, after.Mallocs-before.Mallocs)
	}
	if best > batch*rounds/100 {
		t.Fatalf("%d allocations in %d reads", best, batch*rounds)
	}
}
