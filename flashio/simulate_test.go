package flashio_test

import (
	"math"
	"testing"
	"time"

	"bmoe/flashio"
	"bmoe/internal/clock"
)

// simulated is a set on a simulated host, and what its tests do with it.
type simulated struct {
	t     *testing.T
	files *flashio.Files
	buf   []byte
}

// The pace leaves the host's own costs (a copy of 64 KiB) far behind.
const simulatedRead = 4 * time.Millisecond

func newSimulated(t *testing.T) *simulated {
	host := flashio.NewSimulatedHost(flashio.SimulateOptions{Fixed: simulatedRead, BytesPerSecond: 1e12})
	s := openFiles(t, flashio.FileOptions{Host: host}, writeFile(t, 1<<20))
	return &simulated{t, s, newArena(t, 8<<16).Bytes()}
}

func (s *simulated) lanes(n int) flashio.Reader {
	return openLanes(s.t, s.files, flashio.LaneOptions{Lanes: n})
}

// inService returns how many service times 16 reads took.
func (s *simulated) inService(rd flashio.Reader) float64 {
	s.t.Helper()
	const reads = 16
	rs := make([]*flashio.Request, reads)
	for i := range rs {
		at := i % 8 << 16
		rs[i] = &flashio.Request{Offset: int64(at), Buf: s.buf[at : at+1<<16], Need: 1 << 16}
	}
	start := clock.Now()
	if err := read(rd, rs...); err != nil {
		s.t.Fatal(err)
	}
	return float64(clock.Since(start)) / float64(simulatedRead)
}

// want checks how many lanes' worth of service 16 reads got. A busy machine only
// ever makes reads slower, so the least time is what the rules decide: no less
// than was due, and where lanes may overlap, clearly less than one lane needs.
func (s *simulated) want(what string, rd flashio.Reader, lanes float64) {
	s.t.Helper()
	const alone = 16.0 // service times of 16 reads in one lane
	ideal, most := alone/lanes, math.Inf(1)
	if lanes > 1 {
		most = 0.7 * alone
	}
	took := s.inService(rd)
	for try := 0; took > most && try < 10; try++ {
		took = s.inService(rd)
	}
	if took < 0.93*ideal || took > most {
		s.t.Errorf("%s: 16 reads took %.1f service times, want about %.1f", what, took, ideal)
	}
}

// TestSimulatedHostObeysTheRules walks through the cells that placed the blame on
// the real host (docs/windows.md).
func TestSimulatedHostObeysTheRules(t *testing.T) {
	s := newSimulated(t)
	one, four := s.lanes(1), s.lanes(4)
	if m := four.Mode(); m.String() != "SIMULATED" {
		t.Errorf("mode %v", m)
	}
	s.want("one lane", one, 1)
	s.want("four lanes", four, 4)

	m, err := s.files.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	s.want("one lane under a mapping", one, 1)
	s.want("mapping made after the lanes", four, 1)
	under := s.lanes(4)
	s.want("mapping made before the lanes", under, 1)

	if err := m.UnmapView(); err != nil {
		t.Fatal(err)
	}
	s.want("section kept", four, 1)
	if closed, err := m.CloseSection(); err != nil || !closed {
		t.Fatalf("closing the section: %v, %v", closed, err)
	}
	s.want("lanes from before the mapping, which is gone", four, 4)
	s.want("lanes from under the mapping, not reopened", under, 1)
	under, _, err = flashio.Reopen(s.files, under, "lanes", flashio.LaneOptions{Lanes: 4}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer under.Close()
	s.want("reopened", under, 4)

	m, err = s.files.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.CloseSection(); err != nil {
		t.Fatal(err)
	}
	s.want("view kept", four, 1)
	if err := m.Unmap(); err != nil {
		t.Fatal(err)
	}
	s.want("all released", four, 4)
}

// TestSimulatedBufferedReadsGoFree: the page cache answers without the file's
// lock, so --buffered --mmap cannot price buffered reads.
func TestSimulatedBufferedReadsGoFree(t *testing.T) {
	s := newSimulated(t)
	m, err := s.files.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Unmap()
	s.want("buffered under a mapping", openLanes(t, s.files, flashio.LaneOptions{Lanes: 4, NoDirect: true}), 4)
}

// TestSimulatedHostKnowsFilesByIdentity reads one name while another is mapped.
func TestSimulatedHostKnowsFilesByIdentity(t *testing.T) {
	host := flashio.NewSimulatedHost(flashio.SimulateOptions{Fixed: simulatedRead, BytesPerSecond: 1e12})
	path := writeFile(t, 1<<20)
	link := hardLink(t, path)
	mapped := openFiles(t, flashio.FileOptions{Host: host}, path)
	s := &simulated{t, openFiles(t, flashio.FileOptions{Host: host}, link), newArena(t, 8<<16).Bytes()}
	rd := s.lanes(4)
	m, err := mapped.Map(0)
	if err != nil {
		t.Fatal(err)
	}
	s.want("through a hard link", rd, 1)
	if err := m.Unmap(); err != nil {
		t.Fatal(err)
	}
	s.want("unmapped", rd, 4)
}

// TestSimulatedServiceTime: no lane is faster than the host that is simulated.
// How long a read takes beyond that is the machine's doing; what is scheduled is
// in TestSimulatedSchedule.
func TestSimulatedServiceTime(t *testing.T) {
	host := flashio.NewSimulatedHost(flashio.SimulateOptions{})
	s := openFiles(t, flashio.FileOptions{Host: host}, writeFile(t, 1<<20))
	rd := openLanes(t, s, flashio.LaneOptions{Lanes: 1})
	r := &flashio.Request{Buf: newArena(t, 576<<10).Bytes(), Need: 576 << 10}
	const reads = 40
	start := clock.Now()
	for range reads {
		if err := read(rd, r); err != nil {
			t.Fatal(err)
		}
	}
	if each := clock.Since(start) / reads; each < 550*time.Microsecond {
		t.Errorf("576 KiB took %v, want 0.6 ms at the least", each)
	}
}
