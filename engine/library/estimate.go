package library

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"bmoe/engine/gguf"
	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/host"
	"bmoe/internal/units"
	"bmoe/profile"
)

// Rates are what this machine gives, as a short probe measured it, in bytes a second.
type Rates struct {
	Memory float64
	Drive  profile.Maybe[float64] // of the drive that a model lies on; not measured: the page cache stood between
}

// Speed is how many tokens a second a model may give: between two bounds, because how
// often the cache holds what a token needs is known only when it runs.
type Speed struct {
	Least, Most float64
}

// String words a speed.
func (s Speed) String() string {
	least, most := units.Short(s.Least), units.Short(s.Most)
	if least == most {
		return least + " tok/s"
	}
	return least + " to " + most + " tok/s"
}

// What is between the rate at which memory is read and a token, as measured on models
// from 20 MB to tens of GB: products of weights reach between these shares of it.
const (
	slowestCompute = 0.25
	fastestCompute = 0.9
	// layerTime is what a layer costs whatever its size, in seconds: workers meet
	// several times in each.
	layerTime = 40e-6
)

// reserve is memory that is left to the rest of the machine.
const reserve = units.GiB

// fits returns the share of the experts that memory has room for beside the rest.
func (m *Model) fits(available int64) float64 {
	if m.ExpertBytes == 0 {
		return 1
	}
	room := float64(available-m.ActiveDense-reserve) * 3 / 4
	return min(max(room/float64(m.ExpertBytes), 0), 1)
}

// Speed estimates how fast a model is with so many bytes of memory available. It is
// false where the drive decides and was not measured, and for what cannot be run.
//
// A cache that holds a share f of the experts hits at least f of the time, as if tokens
// chose at random, and at most about 1-(1-f)^5: that is what recorded routes give.
func (m *Model) Speed(r Rates, available int64) (Speed, bool) {
	if m.Problem != "" || r.Memory <= 0 || m.Active() == 0 {
		return Speed{}, false
	}
	f := m.fits(available)
	compute := float64(m.Active()) / r.Memory
	slow := compute/slowestCompute + 2*layerTime*float64(m.Layers)
	fast := compute/fastestCompute + layerTime*float64(m.Layers)/2
	if f < 1 {
		if !r.Drive.OK || r.Drive.Value <= 0 {
			return Speed{}, false
		}
		read := float64(m.ActiveExperts) / r.Drive.Value
		slow += read * (1 - f) // nothing computed meanwhile
		fast = max(fast, read*math.Pow(1-f, 5))
	}
	return Speed{1 / slow, 1 / fast}, true
}

// How long the probes last, in nanoseconds.
const (
	memoryTime = 150_000_000
	driveTime  = 400_000_000
)

const (
	memoryProbe = 64 * units.MiB // beyond any processor's cache
	driveLanes  = 4
	driveReads  = 512 // at most
	leastReads  = 8   // fewer say nothing of a drive
)

// ProbeMemory measures how fast all cores together read memory.
func ProbeMemory(ctx context.Context) (float64, error) {
	arena, err := flashio.NewArena(memoryProbe)
	if err != nil {
		return 0, err
	}
	defer arena.Close()
	data := arena.Bytes()
	for i := 0; i < len(data); i += 4096 {
		data[i] = byte(i >> 12) // pages that nobody wrote to are all one
	}
	workers, ok := host.PhysicalCores()
	if !ok {
		workers = runtime.NumCPU()
	}
	best := int64(0)
	var sum atomic.Uint64 // so that reading cannot be left out
	for end := clock.Now() + memoryTime; best == 0 || clock.Now() < end; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var all sync.WaitGroup
		began := clock.Now()
		for w := range workers {
			part := data[w*len(data)/workers : (w+1)*len(data)/workers]
			all.Go(func() {
				var a, b, c, d uint64
				for p := part; len(p) >= 32; p = p[32:] {
					a += binary.LittleEndian.Uint64(p)
					b += binary.LittleEndian.Uint64(p[8:])
					c += binary.LittleEndian.Uint64(p[16:])
					d += binary.LittleEndian.Uint64(p[24:])
				}
				sum.Add(a ^ b ^ c ^ d)
			})
		}
		all.Wait()
		if took := clock.Now() - began; best == 0 || took < best {
			best = took
		}
	}
	return float64(len(data)) * 1e9 / float64(max(best, 1)), nil
}

var errCached = errors.New("reads come from the system's page cache, which says nothing of the drive")

// ProbeDrive measures what the drive of a model gives for reads of the size of its
// experts, far apart, four at a time.
func ProbeDrive(ctx context.Context, m *Model) (rate float64, err error) {
	f, err := gguf.Open(m.Path)
	if err != nil {
		return 0, err
	}
	var paths []string
	for _, s := range f.Shards {
		paths = append(paths, s.Path)
	}
	set, err := flashio.OpenFiles(paths, flashio.FileOptions{})
	if err != nil {
		return 0, err
	}
	reader, err := flashio.OpenLanes(set, flashio.LaneOptions{Lanes: driveLanes})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	if !reader.Mode().Direct {
		return 0, errCached
	}
	size := int64(units.MiB)
	if m.MoE() {
		size = max(m.ActiveExperts/int64(m.Layers*m.Used*2), 64<<10) // a layer has two or three matrices
	}
	file := 0 // the largest shard
	for i := range f.Shards {
		if f.Shards[i].Size > f.Shards[file].Size {
			file = i
		}
	}
	room := f.Shards[file].Size - f.Shards[file].DataOffset - size
	if room < size*leastReads {
		return 0, fmt.Errorf("%s is too small to tell of its drive", m.Name)
	}
	arena, err := flashio.NewArena(driveLanes * set.MostWindow(int(size)))
	if err != nil {
		return 0, err
	}
	defer arena.Close()
	finished := make(chan *flashio.Request, driveLanes)
	done := completer(finished)
	var bytes int64
	began, flying, reads := clock.Now(), 0, int64(0)
	submit := func(r *flashio.Request) error {
		const golden = 40503 // of 65536: steps of the golden section lie far apart
		at := f.Shards[file].DataOffset + room*(reads*golden%(1<<16))>>16
		w, err := set.Window(file, at, size)
		if err != nil {
			return err
		}
		*r = flashio.Request{File: file, Offset: w.Offset, Need: w.Need, Buf: r.Buf[:cap(r.Buf)][:w.Length], Done: done}
		reads, flying = reads+1, flying+1
		reader.Submit(r)
		return nil
	}
	window := set.MostWindow(int(size))
	for i := range driveLanes {
		r := &flashio.Request{Buf: arena.Bytes()[i*window : (i+1)*window : (i+1)*window]}
		if err = submit(r); err != nil {
			break
		}
	}
	var took int64
	for flying > 0 {
		r := <-finished
		flying--
		if r.Err != nil {
			err = errors.Join(err, r.Err)
		}
		bytes += int64(r.N)
		took = clock.Now() - began
		if err == nil && ctx.Err() == nil && reads < driveReads && (reads < leastReads || took < driveTime) {
			err = submit(r)
		}
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil || took <= 0 {
		return 0, err
	}
	return float64(bytes) * 1e9 / float64(took), nil
}

// completer passes finished reads on.
type completer chan *flashio.Request

// ReadDone implements flashio.Completer.
func (c completer) ReadDone(r *flashio.Request) { c <- r }
