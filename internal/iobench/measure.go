package iobench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/crash"
	"bmoe/internal/host"
	"bmoe/internal/stats"
	"bmoe/internal/units"
)

// measurement is what one cell gave in one repeat. Pointers are nil where the
// host did not tell, or where the figure would mean nothing.
type measurement struct {
	cell *cell

	unavailable string // why the cell cannot exist here; nothing else is set then
	mode        flashio.Mode
	engine      string  // the engine that really read
	length      int64   // bytes of one read
	seconds     float64 // measured
	bytes       float64 // served in that time
	latency     stats.Histogram

	cpu       *time.Duration // of this process, in that time
	foreign   *int64         // bytes that others moved on the drive
	fromDrive *int64         // bytes that the drive, and not the page cache, gave this process

	// Share of the direct reads that the simulated host served one at a time, in
	// percent; NaN on a real host, and where no read was direct.
	inTurn float64

	notes []string
}

// mibPerSecond is the rate of aligned windows served.
func (m *measurement) mibPerSecond() float64 { return m.bytes / units.MiB / m.seconds }

// bench holds what all measurements of a run share.
type bench struct {
	opt     *options
	subject *subject
	process *host.Process
	drive   *host.Drive // nil if it cannot be watched
}

// errUnavailable says that a cell cannot exist on this system.
var errUnavailable = errors.New("not available")

// measure sets the cell up, reads for the options' duration, and takes everything
// down again. Each measurement opens its own lanes, so that none inherits the
// state of another's handles.
func (b *bench) measure(ctx context.Context, c *cell) (*measurement, error) {
	m := &measurement{cell: c, engine: c.engine, inTurn: math.NaN()}
	rig, err := b.setUp(ctx, c)
	if err == nil {
		err = b.readFor(ctx, c, rig, m)
	}
	closeErr := rig.takeDown()
	if errors.Is(err, errUnavailable) {
		m.unavailable = err.Error()
		err = nil
	}
	if err == nil {
		err = closeErr
	}
	return m, err
}

// rig is what a measurement needs to exist while it reads.
type rig struct {
	set      *flashio.Files // the one file that is read
	mapping  *flashio.Mapping
	link     string // hard link to remove
	reader   flashio.Reader
	fallback string                 // why another engine reads than was asked for
	host     *flashio.SimulatedHost // nil on a real one
}

// served returns how many reads the simulated host has served one at a time,
// and how many side by side; nothing on a real host, which does not tell.
func (r *rig) served() (inTurn, atOnce int64) {
	if r.host == nil {
		return 0, 0
	}
	return r.host.Served()
}

// setUp makes mapping and lanes in the order that the cell asks for.
func (b *bench) setUp(ctx context.Context, c *cell) (*rig, error) {
	r := &rig{}
	files := flashio.FileOptions{}
	if b.opt.simulate {
		r.host = flashio.NewSimulatedHost(flashio.SimulateOptions{})
		files.Host = r.host
	}
	if c.noRound {
		files.Round = -1
	}
	original, err := flashio.OpenFiles([]string{b.subject.path}, files)
	if err != nil {
		return r, err
	}
	r.set = original
	if c.hardlink {
		link := fmt.Sprintf("%s.iobench-link-%d", b.subject.path, os.Getpid())
		if err := os.Link(b.subject.path, link); err != nil {
			return r, fmt.Errorf("make a hard link beside the file for --via-hardlink: %w", err)
		}
		r.link = link
		if r.set, err = flashio.OpenFiles([]string{link}, files); err != nil {
			return r, err
		}
	}
	mapFile := func() error {
		r.mapping, err = original.Map(0)
		return err
	}
	reopen := func(between func() error) error {
		o := flashio.LaneOptions{Lanes: c.lanes, NoDirect: c.buffered, GiveUp: func() bool { return ctx.Err() != nil }}
		r.reader, r.fallback, err = flashio.Reopen(r.set, r.reader, c.engine, o, between)
		return err
	}
	openLanes := func() error { return reopen(nil) }
	steps := []func() error{openLanes}
	switch c.mapping {
	case mapAfter:
		steps = []func() error{openLanes, mapFile}
	case mapBefore:
		steps = []func() error{mapFile, openLanes}
	case mapSectionOnly:
		steps = []func() error{mapFile, func() error { return keepSection(r.mapping) }, openLanes}
	case mapViewOnly:
		steps = []func() error{mapFile, func() error { return keepView(r.mapping) }, openLanes}
	case mapOldHandle:
		steps = []func() error{mapFile, openLanes, func() error { return r.mapping.Unmap() }}
	}
	if c.reopen {
		steps = append(steps, func() error { return reopen(r.mapping.Unmap) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// keepSection unmaps the view and leaves the section.
func keepSection(m *flashio.Mapping) error {
	if _, section := m.State(); !section {
		return fmt.Errorf("%w: here a mapping has no section apart from its view", errUnavailable)
	}
	return m.UnmapView()
}

// keepView closes the section and leaves the view.
func keepView(m *flashio.Mapping) error {
	closed, err := m.CloseSection()
	if err == nil && !closed {
		return fmt.Errorf("%w: here a mapping has no section apart from its view", errUnavailable)
	}
	return err
}

// takeDown undoes setUp, whatever of it was done.
func (r *rig) takeDown() error {
	var errs []error
	if r.reader != nil {
		errs = append(errs, r.reader.Close())
	}
	if r.mapping != nil {
		errs = append(errs, r.mapping.Unmap())
	}
	if r.link != "" {
		errs = append(errs, os.Remove(r.link))
	}
	return errors.Join(errs...)
}

// warmUp is how long the lanes read before counting begins, at most.
const warmUp = 100 * time.Millisecond

// readFor lets every lane walk for the duration and books what was served in it.
func (b *bench) readFor(ctx context.Context, c *cell, r *rig, m *measurement) error {
	m.mode, m.engine = r.reader.Mode(), r.reader.Engine()
	if r.fallback != "" {
		m.notes = append(m.notes, fmt.Sprintf("read by %s instead of %s: %s", m.engine, c.engine, r.fallback))
	}
	if err := b.setLength(c, r, m); err != nil {
		return err
	}
	load := startLoad(c.load)
	defer load.end()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	l, err := newLanes(b, c, r, m.length, fail)
	if err != nil {
		return err
	}
	defer l.free()

	warm := min(warmUp, b.opt.duration/5)
	l.from = clock.Now() + warm.Nanoseconds()
	l.to = l.from + b.opt.duration.Nanoseconds()
	var before, after host.Sample
	var driveBefore, driveAfter host.DriveSample
	inTurn, atOnce := r.served() // opening lanes reads, too
	l.start()
	sleepUntil(ctx, l.from)
	b.sample(&before, &driveBefore)
	sleepUntil(ctx, l.to)
	b.sample(&after, &driveAfter)
	l.stop.Store(true)
	l.running.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	inTurn2, atOnce2 := r.served()
	// Without direct reads this is 0/0, not a number.
	m.inTurn = 100 * float64(inTurn2-inTurn) / float64(inTurn2-inTurn+atOnce2-atOnce)
	l.total(m)
	m.seconds = units.InSeconds(l.to - l.from)
	b.account(c, m, before, after, driveBefore, driveAfter)
	return nil
}

// setLength decides how long one read is, and says where it is not what was
// asked for.
func (b *bench) setLength(c *cell, r *rig, m *measurement) error {
	block := int64(r.set.Align())
	piece := c.pieceBytes(int(block))
	if asked := c.sliceKiB << 10 / int64(c.scatter); asked != piece {
		m.notes = append(m.notes, fmt.Sprintf("reads of %s KiB: rounded up to blocks of %d bytes", kib(piece), block))
	}
	w, err := r.set.Window(0, 0, piece)
	if err != nil {
		return err
	}
	m.length = int64(w.Length)
	if m.length > r.set.File(0).Size {
		m.length = piece // a file of hardly more than one read
	}
	if m.length != piece {
		m.notes = append(m.notes, fmt.Sprintf("reads of %s KiB: rounded up to multiples of 64 KiB, as this host's lanes do", kib(m.length)))
	}
	return nil
}

// sample takes CPU time and drive counters.
func (b *bench) sample(s *host.Sample, d *host.DriveSample) {
	b.process.Counters(s)
	if b.drive != nil {
		b.drive.Sample(d)
	}
}

// account turns two samples into what the measurement cost, and what others did
// meanwhile.
func (b *bench) account(c *cell, m *measurement, before, after host.Sample, driveBefore, driveAfter host.DriveSample) {
	if before.Has.All(host.HasCPU) && after.Has.All(host.HasCPU) && c.load == 0 {
		cpu := after.CPU - before.CPU
		m.cpu = &cpu
	}
	if m.mode.Simulated {
		return // its bytes come from the page cache: the drive has no part in it
	}
	if foreign, ok := host.Foreign(driveBefore, driveAfter); ok {
		m.foreign = &foreign
	}
	if driveBefore.Has.All(host.HasOwn) && driveAfter.Has.All(host.HasOwn) {
		own := driveAfter.OwnRead - driveBefore.OwnRead
		m.fromDrive = &own
	}
}

// sleepUntil waits for an instant of the clock, or for the context's end.
func sleepUntil(ctx context.Context, at int64) {
	timer := time.NewTimer(time.Duration(at - clock.Now()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// load keeps processors busy beside the lanes, as compute workers do.
type load struct {
	stop atomic.Bool
	wait sync.WaitGroup
}

func startLoad(threads int) *load {
	l := &load{}
	for range threads {
		l.wait.Go(func() {
			defer crash.Catch("load")
			x := uint64(1)
			for !l.stop.Load() {
				for range 4096 {
					x = x*6364136223846793005 + 1442695040888963407
				}
			}
			busy.Store(x)
		})
	}
	return l
}

// busy takes the result of the load, so that its loop is not removed as useless.
var busy atomic.Uint64

func (l *load) end() {
	l.stop.Store(true)
	l.wait.Wait()
}
