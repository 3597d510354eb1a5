package engine

import (
	"cmp"
	"net/url"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"

	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/engine/kernel"
	"bmoe/engine/model"
	"bmoe/engine/pool"
	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/durable"
	"bmoe/internal/host"
	"bmoe/internal/stats"
	"bmoe/internal/units"
	"bmoe/profile"
)

const (
	// glance is how often the parts of the snapshot are renewed that cost more
	// than a few loads: the screen asks 10 to 15 times a second.
	glance = 100_000_000 // ns
	// foreignWindow is the least time over which others' use of the drive and the
	// processors is told: their counters are coarse.
	foreignWindow = 500_000_000 // ns
)

// A snapshot has room for every lane that a reader may have.
var _ [profile.MaxLanes - flashio.MaxLanes]struct{}

// meter reads the counters of a session's parts and of the host, and feeds the
// recorder with them. Its methods are for the goroutine that generates.
type meter struct {
	session *Session
	rec     *profile.Recorder
	layers  model.Observer // hears of every layer while there is a run
	costs   layerCosts     // of the run's decoded tokens
	process *host.Process
	thermal *host.Thermal
	load    *host.Load
	drive   *host.Drive    // nil if it cannot be watched
	beside  *durable.Seats // of the engines that have a model open on the drive, as running
	running *durable.Seats // of those that are in a run; nil: engines do not see each other
	opening int64          // clock.Now when opening began
	loaded  int64          // how long it took, ns

	// Scratch of a reading, so that a token allocates nothing.
	times   pool.Times
	reading profile.Reading
	gauges  profile.Gauges
	stats   flashio.Stats
	curve   [profile.MostWhatIfs]policy.Point
	gc      []metrics.Sample
	latency stats.Histogram

	probed flashio.Reader // of which rate is what one lane gives, bytes a second
	rate   profile.Maybe[float64]

	memoryLearned bool

	glanced      int64
	base, prompt int               // of the run: positions of the state that it kept, prompt tokens to prefill
	part         surroundings      // where the run's part (prefill, decode) began
	disturbed    profile.Disturbed // in the run's parts before
	seen         surroundings      // when others were last looked at
}

// surroundings is what the host had counted of everybody at one time.
type surroundings struct {
	drive host.DriveSample
	load  host.LoadSample
}

// open starts the meter, before there is a model. It returns what there is to be
// warned of.
func (m *meter) open(path, locks string) (warning string) {
	m.opening = clock.Now()
	m.rec = profile.NewRecorder(clock.Now)
	m.process, m.thermal, m.load = host.OpenProcess(), host.OpenThermal(), host.OpenLoad()
	if d, err := host.OpenDrive(path); err == nil {
		m.drive = d // otherwise foreign I/O is n/a
	}
	warning = m.meet(locks)
	m.gc = []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	return warning
}

func (m *meter) close() error {
	var err error
	for _, c := range []interface{ Close() error }{m.process, m.load} {
		if cerr := c.Close(); err == nil {
			err = cerr
		}
	}
	for _, s := range []*durable.Seats{m.beside, m.running} {
		if s == nil {
			continue
		}
		if serr := s.Close(); err == nil {
			err = serr
		}
	}
	if m.drive != nil {
		if derr := m.drive.Close(); err == nil {
			err = derr
		}
	}
	return err
}

// opened fills in what opening has settled.
func (m *meter) opened(s *Session) {
	m.session = s
	m.layers.Layer = m.layer
	m.costs.init(s.arch.Info().Layers)
	m.loaded = clock.Now() - m.opening
	info := s.arch.Info()
	shape := s.shape
	memory := host.ReadMemory()
	m.rec.Update(func(l *profile.Snapshot) {
		l.Phase = profile.Idle
		l.Model = profile.Model{Name: s.modelName(), Arch: info.Arch, FileBytes: s.files.Size(), Shards: s.files.Len(),
			Layers: info.Layers, MoELayers: info.MoELayers(), Experts: info.Experts.Experts, ExpertsUsed: info.Experts.Used,
			ExpertBytesAll: shape.Total(), TokenCycle: shape.TokenCycle(), TokenBytes: s.tokenBytes(),
			HostMemory: profile.Maybe[int64]{Value: memory.Total, OK: memory.Has.All(host.HasTotal)}}
		l.Model.Quant = s.expertType()
		l.Model.SlowBytes, l.Model.SlowTypes = s.slowTypes()
		l.Ctx = s.cfg.Ctx
		l.KV = s.kvMemory()
		l.Simulated = s.files.Simulated()
		l.Cache.LayerWorkingSet = shape.LayerWorkingSet()
		if l.Mapping.State == "" {
			l.Mapping.State = profile.MappingMapped
		}
	})
	m.reconfigured(s)
	m.survey()
}

// tokenBytes returns the bytes of the weights that one token is computed with: of
// the embedding only a row, unless it is the head too.
func (s *Session) tokenBytes() int64 {
	var n int64
	embedding := false
	for _, w := range s.registry.Weights {
		switch {
		case w.Streamed:
		case w.Name == "token_embd.weight" && !embedding:
			embedding = true // a tied head is a second object of that name
		default:
			n += w.Range.Size
		}
	}
	for _, b := range s.shape.Bytes {
		n += b * int64(s.arch.Info().Experts.Used)
	}
	return n
}

// slowTypes returns the bytes of what a token is computed with whose tensor types have
// no kernels of their own, and the types.
func (s *Session) slowTypes() (bytes int64, types string) {
	if s.cfg.Numerics != "fast" {
		return 0, "" // all are turned into floats then, as was asked for
	}
	var names []string
	for _, w := range s.registry.Weights {
		if !kernel.Slow(w.Type) || w.Name == "token_embd.weight" {
			continue
		}
		size := w.Range.Size
		if w.Streamed {
			size = size * int64(s.shape.Used) / int64(s.shape.Experts)
		}
		bytes += size
		if name := w.Type.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return bytes, strings.Join(names, ", ")
}

// reconfigured fills in what a change may have changed.
func (m *meter) reconfigured(s *Session) {
	m.rec.ForgetLanes()
	alone, lossy := m.alone(s), s.lossy()
	m.rec.Update(func(l *profile.Snapshot) {
		l.Lanes = profile.Lanes{Alone: alone}
		l.Lanes.Overlap = s.cfg.Overlap
		l.Process.Threads = s.cfg.Threads
		l.Mapping.Dense = string(s.cfg.Dense)
		l.Lossy, l.Cache.Thrifty = lossy, s.thrift.on()
		l.Mapping.Bytes, l.Mapping.Views = 0, 0
		for _, v := range s.shards() {
			l.Mapping.Bytes += int64(len(v))
			l.Mapping.Views++
		}
		c := &l.Cache
		c.Streaming = s.streamer != nil
		if s.streamer == nil || s.reader == nil {
			return
		}
		st := s.streamer.Stats()
		c.Policy = s.streamer.Directory().Policy().Name()
		c.Budget, c.Arena, c.Slots = st.Budget, st.ArenaBytes, st.Slots
		c.BudgetAuto = s.cfg.Cache.Auto
		c.BelowTokenCycle = st.Budget < l.Model.TokenCycle
		s.streamer.Curve().Ask(whatIfs(s.shape, st.Budget))
		l.Lanes.Engine, l.Lanes.N = s.reader.Engine(), s.reader.Lanes()
	})
	m.look()
}

// alone returns what one lane gives, measured anew for a reader that was opened
// since.
func (m *meter) alone(s *Session) profile.Maybe[float64] {
	if s.reader == nil || s.streamer == nil {
		return profile.Maybe[float64]{}
	}
	if s.reader != m.probed {
		m.probed = s.reader
		bytes, nanos, ok := s.streamer.Alone()
		m.rate = maybe(float64(bytes)*1e9/float64(max(nanos, 1)), ok)
	}
	return m.rate
}

// kvMemory describes the state's memory.
func (s *Session) kvMemory() profile.KV {
	marks := s.state.Marks()
	return profile.KV{Bytes: s.state.Bytes(), MarkBytes: marks.Bytes, Marks: marks.Kept, MostMarks: marks.Most}
}

// begin starts a run's account.
func (m *meter) begin(start profile.Start) {
	s := m.session
	m.glanced = 0
	m.base, m.prompt = start.Base, start.Prompt
	start.Dropped = s.dropped
	start.NoStall, start.NoCeiling = s.streamer == nil, s.streamer == nil || s.cfg.Dense != DenseAnon
	if s.streamer != nil {
		s.streamer.ResetLatency()
		s.streamer.CountCurve(false)
	}
	m.disturbed = profile.Disturbed{}
	if m.running != nil {
		m.running.Take()
	}
	m.surround(&m.part, true)
	m.seen = m.part
	m.gauge()
	m.costs.begin()
	m.rec.Begin(start, &m.gauges)
	s.compute.Watch(&m.layers)
}

// prefilled counts finished prompt tokens.
func (m *meter) prefilled(done int) {
	m.rec.Prefilled(done)
	m.maybeLook()
}

// pass is told of a pass over so many tokens.
func (m *meter) pass(tokens int) {
	if m.costs.single = m.costs.on && tokens == 1; m.costs.single {
		m.session.compute.Pool.Times(&m.costs.last)
	}
}

// layer hears of every layer's end: a batch can take seconds, and the screen
// should move while it does.
func (m *meter) layer(layer, tokens int) {
	if m.costs.single {
		m.session.compute.Pool.Times(&m.times)
		m.costs.add(layer, &m.times)
	}
	if m.maybeLook() {
		m.rec.Prefilled(len(m.session.ids) - m.base + tokens*(layer+1)/m.session.arch.Info().Layers)
	}
}

// first ends the prefill: the first token is there.
func (m *meter) first() {
	// Of the prefill's time, so that the second token's is its own.
	m.endPart()
	m.read()
	m.rec.First(&m.reading)
	m.costs.on = true
	if s := m.session.streamer; s != nil {
		s.CountCurve(true)
	}
}

// token writes the record of a decoded token.
func (m *meter) token(id int32, r *profile.Record) {
	if s := m.session.streamer; s != nil {
		m.rec.Missed(s.Misses())
	}
	m.read()
	m.rec.Token(&m.reading, id, r)
	m.maybeLook()
}

// end closes a run's account.
func (m *meter) end() {
	m.session.compute.Unwatch(&m.layers)
	m.costs.on = false
	m.endPart()
	if m.running != nil {
		m.running.Leave()
	}
	m.look()
	gc := m.gcShare()
	m.survey()
	m.rec.Update(func(l *profile.Snapshot) { l.Process.GCPercent, l.KV = gc, m.session.kvMemory() })
	m.rec.End(len(m.session.ids))
	m.learnMemory()
}

// learnMemory measures memory once, after the first run in which computing took
// most of the time: only there is it wanted.
func (m *meter) learnMemory() {
	if sum := m.rec.Sum(); m.memoryLearned || 2*sum.Compute < sum.Wall || sum.Tokens == 0 {
		return
	}
	m.memoryLearned = true
	rate, ok := m.session.memoryRate()
	m.rec.Update(func(l *profile.Snapshot) { l.Process.MemoryRate = maybe(rate, ok) })
}

// read takes the reading of a token: a system call and some loads.
func (m *meter) read() {
	s, r := m.session, &m.reading
	var usage host.Sample
	m.process.Counters(&usage)
	c := m.cacheStats()
	s.compute.Pool.Times(&m.times) // last, so that it reaches to this moment
	t := &m.times
	*r = profile.Reading{
		At: t.Now, Workers: t.Workers,
		Compute: t.State[pool.Compute], Mgmt: t.State[pool.Mgmt], Stall: t.State[pool.Stall], Other: t.State[pool.Other],
		StallUnion: t.StallUnion, MgmtSerial: t.MgmtSerial,
		Busy: c.BusyNanos, Reading: c.ReadingNanos,
		ExpertBytes: c.ReadBytes, WindowBytes: c.WindowBytes, Reads: c.Reads,
		Lookups: c.Lookups, Hits: c.Hits, Evictions: c.Evictions, Rereads: c.Rereads,
		Dropped: s.thrift.Dropped, Substituted: s.thrift.Substituted,
		MajorFaults: profile.Maybe[int64]{Value: usage.MajorFaults, OK: usage.Has.All(host.HasMajorFaults)},
		CPU:         profile.Maybe[int64]{Value: int64(usage.CPU), OK: usage.Has.All(host.HasCPU)},
	}
}

// cacheStats returns the streamer's counters, or none.
func (m *meter) cacheStats() expert.Stats {
	if m.session.streamer == nil {
		return expert.Stats{}
	}
	return m.session.streamer.Stats()
}

// maybeLook renews the expensive parts of the snapshot if it is time.
func (m *meter) maybeLook() bool {
	if clock.Now()-m.glanced < glance {
		return false
	}
	m.look()
	return true
}

// look renews the parts of the snapshot that cost more than a few loads.
func (m *meter) look() {
	m.glanced = clock.Now()
	m.gauge()
	m.rec.Look(&m.gauges)
}

// gauge fills m.gauges.
func (m *meter) gauge() {
	s, g := m.session, &m.gauges
	var usage host.Sample
	m.process.Sample(&usage)
	g.RSS = maybe(usage.RSS, usage.Has.All(host.HasRSS))
	g.RSSAnon = maybe(usage.RSSAnon, usage.Has.All(host.HasRSSSplit))
	g.Swap = maybe(usage.Swap, usage.Has.All(host.HasSwap))
	g.MaxProc = runtime.GOMAXPROCS(0)
	m.others()
	m.read()
	g.Counters = m.reading
	if s.streamer != nil {
		c := m.cacheStats()
		g.Resident, g.SlotsUsed = c.Resident, c.SlotsUsed
		s.streamer.Latency(&m.latency)
		m.latency.Bins(profile.LatencyBounds[:], g.Latency[:])
		g.P50, g.P99 = maybe(m.latency.Quantile(0.5)), maybe(m.latency.Quantile(0.99))
		g.Wake50 = maybe(s.streamer.Wake().Quantile(0.5))
		g.WhatIfs = s.streamer.Curve().Read(m.curve[:])
		for i, p := range m.curve[:g.WhatIfs] {
			g.WhatIf[i] = profile.Lookups{Budget: p.Budget, Lookups: p.Lookups, Hits: p.Hits, ReadBytes: p.ReadBytes, Known: p.Known}
		}
	}
	if s.reader == nil {
		return
	}
	s.reader.Stats(&m.stats)
	g.LanesAt, g.LanesServed = clock.Now(), m.stats.Total.Bytes
	g.Queue = m.stats.QueuedDemand + m.stats.QueuedSpec
	// It can change in the middle of a run: a lane whose direct read fails late goes
	// on through the cache, a ring that fails leaves the rest to lanes.
	mode := s.reader.Mode()
	g.LanesMode, g.LanesReason = mode.String(), cmp.Or(s.engineNote, mode.Fallback, mode.Reason)
	for i := range len(m.stats.Lanes) {
		g.LaneBytes[i] = m.stats.Lanes[i].Bytes
	}
}

func maybe[T int64 | float64](v T, ok bool) profile.Maybe[T] {
	return profile.Maybe[T]{Value: v, OK: ok}
}

// surround samples what everybody does; all of it costs a file a thread.
func (m *meter) surround(to *surroundings, all bool) {
	if m.drive != nil {
		m.drive.Sample(&to.drive)
	}
	if all {
		m.load.SampleAll(&to.load)
	} else {
		m.load.Sample(&to.load)
	}
}

// others fills in what others do on the drive and the processors now, and
// whether they spoil the run on the drive.
func (m *meter) others() {
	var now surroundings
	m.surround(&now, false)
	m.besides()
	m.gauges.Disturbed = m.disturbed.Or(profile.Disturbed{Drive: known(host.DriveDisturbed(m.part.drive, now.drive))})
	span := now.load.At - m.seen.load.At
	if span < foreignWindow {
		return // the last figures stand
	}
	moved, ok := host.Foreign(m.seen.drive, now.drive)
	m.gauges.ForeignIO = maybe(float64(moved)*1e9/float64(span), ok)
	share, ok := host.Others(m.seen.load, now.load)
	m.gauges.ForeignCPU = maybe(100*share, ok)
	m.seen = now
}

// meet takes a seat among the engines that have a model open on the drive, and warns
// of others.
func (m *meter) meet(folder string) (warning string) {
	if folder == "" || m.drive == nil {
		return ""
	}
	name := func(what string) string {
		return filepath.Join(folder, url.PathEscape(m.drive.Name())+"."+what)
	}
	beside, err := durable.OpenSeats(name("open"))
	if err != nil {
		return "" // without a folder to meet in, what others read is still seen
	}
	running, err := durable.OpenSeats(name("run"))
	if err != nil {
		beside.Close()
		return ""
	}
	m.beside, m.running = beside, running
	m.beside.Take()
	if m.beside.Others() {
		return "another bmoe has a model open on the same drive (" + m.drive.Name() + "): runs at the same time disturb each other, and will say so"
	}
	return ""
}

// besides notes whether another engine is in a run on the drive.
func (m *meter) besides() {
	if m.running != nil && !m.disturbed.Drive.Value && m.running.Others() {
		m.disturbed.Drive = profile.Some(true)
	}
}

// endPart judges the run's part that ends, and begins the next. Parts are judged
// by themselves: a long quiet prefill must not hide a disturbed answer.
func (m *meter) endPart() {
	var now surroundings
	m.surround(&now, true)
	m.besides()
	m.disturbed = m.disturbed.Or(disturbance(&m.part, &now))
	m.part = now
}

// disturbance says what of the surroundings spoiled the time between two samples.
func disturbance(from, to *surroundings) profile.Disturbed {
	return profile.Disturbed{
		Drive:     known(host.DriveDisturbed(from.drive, to.drive)),
		CPU:       known(host.CPUDisturbed(from.load, to.load)),
		Throttled: known(host.Throttled(from.load, to.load)),
	}
}

func known(is, ok bool) profile.Maybe[bool] { return profile.Maybe[bool]{Value: is, OK: ok} }

// gcShare returns the collector's share of the CPU time since the process
// started, by the runtime's own estimates, in percent. The runtime books a
// collection when it ends, so a share of one run would be what happened to end
// in it. Before the first collection there is nothing booked: n/a.
func (m *meter) gcShare() profile.Maybe[float64] {
	metrics.Read(m.gc)
	gc, all, idle := m.gc[0].Value.Float64(), m.gc[1].Value.Float64(), m.gc[2].Value.Float64()
	return profile.Ratio(100*gc, all-idle)
}

// survey asks the host what is too dear, or allocates too much, to be asked
// while a model decodes.
func (m *meter) survey() {
	memory := host.ReadMemory()
	celsius, _, hot := m.thermal.Read()
	dense, known := m.session.denseResident()
	fits, some := m.session.fits()
	m.rec.Update(func(l *profile.Snapshot) {
		l.Process.AvailableMemory = maybe(memory.Available, memory.Has.All(host.HasAvailable))
		l.Process.Temperature = maybe(celsius, hot)
		l.Mapping.DenseResident = maybe(dense, known)
		l.Cache.Fits = maybe(fits, some)
	})
}

// whatIfs returns the budgets of which the what-if curve tells, ascending: eighths
// of all experts, in which the keys step, one token cycle, and the one in force.
func whatIfs(shape policy.Shape, budget int64) []int64 {
	all := []int64{budget, units.WholeMiB(shape.TokenCycle())}
	for i := range int64(8) {
		all = append(all, units.WholeMiB(shape.Total()*(i+1)/8))
	}
	slices.Sort(all)
	least := shape.LayerWorkingSet()
	return slices.DeleteFunc(slices.Compact(all), func(b int64) bool { return b < least })
}
