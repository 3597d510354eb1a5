package flashio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"bmoe/flashio"
	"bmoe/flashio/flashtest"
)

// TestFaults injects what drives do and checks the error, or that there is none.
func TestFaults(t *testing.T) {
	const size = 1 << 20
	path := writeFile(t, size)
	disk := flashtest.NewDisk(nil)
	s := openFiles(t, flashio.FileOptions{Opener: disk}, path)
	rd := openLanes(t, s, flashio.LaneOptions{Lanes: 2})
	buf := newArena(t, 64<<10).Bytes()
	want := make([]byte, len(buf))
	pattern(want, 128<<10)
	request := func() *flashio.Request { return &flashio.Request{Offset: 128 << 10, Buf: buf, Need: len(buf)} }

	for _, limit := range []int{4096, 5000, 40000} {
		clear(buf)
		disk.Limit(limit)
		if err := read(rd, request()); err != nil {
			t.Fatalf("reads of at most %d bytes: %v", limit, err)
		}
		if !bytes.Equal(buf, want) {
			t.Fatalf("reads of at most %d bytes: wrong bytes", limit)
		}
	}
	disk.Limit(0)

	disk.Fail(130<<10, syscall.EIO)
	r := request()
	err := read(rd, r)
	var re *flashio.ReadError
	if !errors.Is(err, syscall.EIO) || !errors.As(err, &re) || re.Path != path || re.Offset != 128<<10 || re.Length != 64<<10 {
		t.Fatalf("EIO came out as %v", err)
	}
	if want := fmt.Sprintf("read %s at 131072 (65536 bytes): %v", path, syscall.EIO); err.Error() != want {
		t.Fatalf("error reads %q, want %q", err, want)
	}
	disk.Fail(130<<10, nil)

	disk.Shrink(150 << 10)
	r = request()
	err = read(rd, r)
	if !errors.Is(err, io.ErrUnexpectedEOF) || r.N != 22<<10 {
		t.Fatalf("a file that shrank: %d bytes, %v", r.N, err)
	}
	disk.Shrink(-1)
	if err := read(rd, request()); err != nil {
		t.Fatalf("after the faults: %v", err)
	}
	var st flashio.Stats
	rd.Stats(&st)
	if st.Total.Reads != 4 || st.Total.Errors != 2 {
		t.Fatalf("%d reads and %d errors were counted, want 4 and 2", st.Total.Reads, st.Total.Errors)
	}
}

func TestFallsBackToBuffered(t *testing.T) {
	path := writeFile(t, 100_000)
	for _, late := range []bool{false, true} {
		disk := flashtest.NewDisk(nil)
		disk.RefuseDirect(late)
		s := openFiles(t, flashio.FileOptions{Opener: disk}, path)
		rd := openLanes(t, s, flashio.LaneOptions{Lanes: 2})
		m := rd.Mode()
		if m.Direct || m.String() != "BUFFERED" || !strings.Contains(m.Reason, flashtest.ErrNoDirectHere.Error()) {
			t.Fatalf("late %v: mode %+v", late, m)
		}
		buf := newArena(t, s.Align()).Bytes()
		if err := read(rd, &flashio.Request{Buf: buf, Need: s.Align()}); err != nil {
			t.Fatal(err)
		}
	}
	// A drive that fails is not a drive without direct I/O.
	disk := flashtest.NewDisk(nil)
	disk.Fail(0, syscall.EIO)
	if _, err := flashio.OpenLanes(openFiles(t, flashio.FileOptions{Opener: disk}, path), flashio.LaneOptions{Lanes: 2}); !errors.Is(err, syscall.EIO) {
		t.Fatalf("open over a failing drive: %v", err)
	}
	if open, _ := disk.Handles(); open != 0 {
		t.Fatalf("%d handles were left open", open)
	}
}

// A direct read that fails as if direct I/O were impossible, although others have
// worked, is made again through the cache, and the mode says so.
func TestGivesUpDirectLater(t *testing.T) {
	path := writeFile(t, 1_000_000)
	disk := flashtest.NewDisk(nil)
	s := openFiles(t, flashio.FileOptions{Opener: disk}, path)
	rd, err := flashio.OpenLanes(s, flashio.LaneOptions{Lanes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !rd.Mode().Direct {
		t.Skip("no direct I/O here")
	}
	at := int64(2 * s.Align())
	disk.Fail(at, flashio.NoDirect(flashtest.ErrNoDirectHere))
	buf, want := newArena(t, s.Align()).Bytes(), make([]byte, s.Align())
	for range 2 {
		clear(buf)
		if err := read(rd, &flashio.Request{Offset: at, Buf: buf, Need: len(buf)}); err != nil {
			t.Fatal(err)
		}
		if pattern(want, at); !bytes.Equal(buf, want) {
			t.Fatal("the second try read something else")
		}
	}
	if m := rd.Mode(); m.String() != "BUFFERED" || !strings.Contains(m.Reason, "after others had worked") {
		t.Errorf("mode %+v", m)
	}
	disk.Fail(at, syscall.EIO) // not its kind
	if err := read(rd, &flashio.Request{Offset: at, Buf: buf, Need: len(buf)}); !errors.Is(err, syscall.EIO) {
		t.Errorf("error %v", err)
	}
	if rd, _, err = flashio.Reopen(s, rd, "lanes", flashio.LaneOptions{Lanes: 1}, nil); err != nil || !rd.Mode().Direct {
		t.Fatalf("after opening anew: %v", err)
	}
	if err := rd.Close(); err != nil {
		t.Error(err)
	}
	if open, ever := disk.Handles(); open != 0 || ever != 4 {
		t.Errorf("%d handles are open of %d, want 0 of 4", open, ever)
	}
}

// order records the sequence in which requests complete.
type order struct {
	mu  sync.Mutex
	seq []*flashio.Request
	wg  sync.WaitGroup
}

func (o *order) ReadDone(r *flashio.Request) {
	o.mu.Lock()
	o.seq = append(o.seq, r)
	o.mu.Unlock()
	o.wg.Done()
}

// gate holds reads back until it is opened, and says when one has arrived.
type gate struct {
	arrived chan int64
	open    chan struct{}
}

func newGate(d *flashtest.Disk) *gate {
	g := &gate{make(chan int64, 1000), make(chan struct{})}
	d.Before(func(_ string, off int64, _ int) {
		g.arrived <- off
		<-g.open
	})
	return g
}

func TestDemandOvertakesSpeculation(t *testing.T) {
	disk := flashtest.NewDisk(nil)
	s := openFiles(t, flashio.FileOptions{Opener: disk}, writeFile(t, 1<<20))
	rd := openLanes(t, s, flashio.LaneOptions{Lanes: 1})
	al := s.Align()
	mem := newArena(t, 10*al).Bytes()
	o := &order{}
	request := func(i int, spec bool) *flashio.Request {
		return &flashio.Request{Offset: int64(i * al), Buf: mem[i*al : (i+1)*al], Need: al, Spec: spec, Done: o}
	}
	first, s1, s2, s3, s4 := request(0, false), request(1, true), request(2, true), request(3, true), request(4, true)
	d1, d2 := request(5, false), request(6, false)

	g := newGate(disk)
	o.wg.Add(6)
	rd.Submit(first)
	<-g.arrived // the only lane is busy: the rest waits in the queue
	rd.Submit(s1, s2, s3, s4)
	rd.Submit(d1, d2)
	if !rd.Promote(s3) || rd.Promote(s3) || rd.Promote(d1) || rd.Promote(first) {
		t.Error("only waiting speculation can be promoted")
	}
	if !rd.Cancel(s2) || rd.Cancel(s2) || rd.Cancel(first) {
		t.Error("only what waits can be taken back")
	}
	var st flashio.Stats
	rd.Stats(&st)
	if st.QueuedDemand != 3 || st.QueuedSpec != 2 || st.InFlight != 1 {
		t.Errorf("queue: %d demand, %d speculative, %d in flight", st.QueuedDemand, st.QueuedSpec, st.InFlight)
	}
	close(g.open)
	o.wg.Wait()
	want := []*flashio.Request{first, d1, d2, s3, s1, s4}
	for i, r := range o.seq {
		if r != want[i] {
			t.Fatalf("place %d: the read at %d, want %d", i, r.Offset, want[i].Offset)
		}
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
}

func TestEveryLaneHasItsOwnHandle(t *testing.T) {
	disk := flashtest.NewDisk(nil)
	s := openFiles(t, flashio.FileOptions{Opener: disk}, writeFile(t, 1<<20), writeFile(t, 1<<20))
	_, before := disk.Handles()
	rd, err := flashio.OpenLanes(s, flashio.LaneOptions{Lanes: 4})
	if err != nil {
		t.Fatal(err)
	}
	if open, ever := disk.Handles(); open != 8 || ever != before+8 {
		t.Fatalf("%d handles for 4 lanes and 2 shards", open)
	}
	// All four read at once.
	g := newGate(disk)
	al := s.Align()
	mem := newArena(t, 4*al).Bytes()
	var grp flashio.Group
	grp.Add(4)
	for i := range 4 {
		rd.Submit(&flashio.Request{Offset: int64(i * al), Buf: mem[i*al : (i+1)*al], Need: al, Done: &grp})
	}
	for range 4 {
		<-g.arrived
	}
	close(g.open)
	if err := grp.Wait(); err != nil {
		t.Fatal(err)
	}
	disk.Before(nil)
	rd, _, err = flashio.Reopen(s, rd, "lanes", flashio.LaneOptions{Lanes: 4}, func() error {
		if open, _ := disk.Handles(); open != 0 {
			t.Errorf("%d handles are open while the mapping changes", open)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if open, ever := disk.Handles(); open != 8 || ever != before+16 {
		t.Fatalf("after Reopen %d handles are open and %d were opened", open, ever-before)
	}
	if err := rd.Close(); err != nil {
		t.Fatal(err)
	}
	if open, _ := disk.Handles(); open != 0 {
		t.Fatalf("%d handles left after Close", open)
	}
}

func TestCloseCompletesEverything(t *testing.T) {
	disk := flashtest.NewDisk(nil)
	s := openFiles(t, flashio.FileOptions{Opener: disk}, writeFile(t, 1<<20))
	rd, err := flashio.OpenLanes(s, flashio.LaneOptions{Lanes: 2})
	if err != nil {
		t.Fatal(err)
	}
	al := s.Align()
	mem := newArena(t, 10*al).Bytes()
	g := newGate(disk)
	o := &order{}
	o.wg.Add(10)
	for i := range 10 {
		rd.Submit(&flashio.Request{Offset: int64(i * al), Buf: mem[i*al : (i+1)*al], Need: al, Done: o})
	}
	<-g.arrived
	<-g.arrived
	closed := make(chan error)
	go func() { closed <- rd.Close() }()
	runtime.Gosched()
	close(g.open)
	o.wg.Wait()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	var served, refused int
	for _, r := range o.seq {
		switch {
		case r.Err == nil:
			served++
		case errors.Is(r.Err, flashio.ErrClosed):
			refused++
		default:
			t.Fatal(r.Err)
		}
	}
	if served < 2 || served+refused != 10 {
		t.Fatalf("%d served and %d refused", served, refused)
	}
	if err := read(rd, &flashio.Request{Buf: mem[:al]}); !errors.Is(err, flashio.ErrClosed) {
		t.Fatalf("a read after Close: %v", err)
	}
	if err := rd.Close(); err != nil {
		t.Fatalf("second Close: %v", err)
	}
}
