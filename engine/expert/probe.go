package expert

import (
	"slices"

	"bmoe/flashio"
)

const (
	probeReads = 12         // at most
	leastReads = 4          // fewer say nothing of a drive
	probeTime  = 25_000_000 // ns after which no further read begins
)

// Alone measures what one lane gives on this file while no other reads: the bytes
// and nanoseconds of reads one after the other, of experts far apart. It takes some
// 25 ms. ok is false where reads may come from the system's page cache, which says
// nothing of the drive, and where one failed: whoever needs those bytes will hear
// of it. No batch may be open.
func (s *Streamer) Alone() (bytes, nanos int64, ok bool) {
	if mode := s.reader.Mode(); !mode.Direct && !mode.Simulated {
		return 0, 0, false
	}
	var layers []int
	for l, projections := range s.layout.Layers {
		if len(projections) > 0 {
			layers = append(layers, l)
		}
	}
	memory, err := flashio.Reserve(int(slices.Max(s.shape.Slots)))
	if err != nil {
		return 0, 0, false
	}
	defer memory.Release() // what could be left behind is address space
	if err := memory.Commit(0, memory.Len()); err != nil {
		return 0, 0, false
	}
	memory.Touch(0, memory.Len(), 1)
	p := &probe{done: make(chan struct{})}
	all := int64(len(layers) * s.layout.Experts)
	for n := int64(0); n < probeReads && (n < leastReads || nanos < probeTime); n++ {
		const golden = 40503 // of 65536: steps of the golden section lie far apart, however many there are
		key := int(all * (n * golden % (1 << 16)) >> 16)
		proj := &s.layout.Layers[layers[key/s.layout.Experts]][0]
		w, err := s.files.Window(proj.File, proj.Offset+int64(key%s.layout.Experts)*proj.Bytes, proj.Bytes)
		if err != nil {
			return 0, 0, false
		}
		r := &flashio.Request{File: proj.File, Offset: w.Offset, Need: w.Need, Buf: memory.Bytes()[:w.Length], Done: p}
		s.reader.Submit(r)
		<-p.done
		if r.Err != nil {
			return 0, 0, false
		}
		bytes, nanos = bytes+int64(r.N), nanos+r.Ended-r.Started
	}
	return bytes, nanos, nanos > 0
}

// probe waits for one read.
type probe struct{ done chan struct{} }

// ReadDone implements flashio.Completer.
func (p *probe) ReadDone(*flashio.Request) { p.done <- struct{}{} }
