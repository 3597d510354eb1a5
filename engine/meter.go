package engine

import (
	"cmp"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"

	"bmoe/engine/expert"
	"bmoe/engine/pool"
	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/host"
	"bmoe/profile"
)

const (
	// glance is how often the parts of the snapshot are renewed that cost more
	// than a few loads: the screen asks 10 to 15 times a second.
	glance = 100_000_000 // ns
	// rateWindow is the longest time over which a rate is taken; the shortest is
	// half of it, but for a run's beginning.
	rateWindow = 1_000_000_000 // ns
	// recentTokens is what "now" means for the hit rate.
	recentTokens = 16
	// foreignShare and foreignLeast say when others on the drive spoil a run:
	// above a tenth of what this process read meanwhile, and above noise.
	foreignShare = 0.1
	foreignLeast = 16 << 20 // bytes
)

// meter turns counters into records and keeps the live snapshot. Its methods
// are for the goroutine that generates, except snapshot and update.
type meter struct {
	mu   sync.Mutex
	live profile.Snapshot

	session *Session
	onLayer func(layer int, x []float32) // m.layer, bound once
	process *host.Process
	thermal *host.Thermal
	drive   *host.Drive // nil if it cannot be watched
	opening int64       // clock.Now when opening began
	loaded  int64       // how long it took, ns

	// The token in progress began with these.
	times pool.Times
	cache expert.Stats
	usage host.Sample

	// The run began with these.
	runStart   int64
	runCache   expert.Stats
	runDrive   host.DriveSample
	runCPU     host.Sample
	prefillEnd int64
	sum        profile.Record
	walls      []int64 // scratch for quantiles

	glanced int64
	lanes   [3]laneReading // where the windows of rates begin, the older first, and the latest
	stats   flashio.Stats
	contend bool
	gc      []metrics.Sample
	base    int // positions of the state that the run kept
	prompt  int // prompt tokens that it has to prefill
	moved   host.DriveSample
}

// laneReading is the lanes' counters at one time.
type laneReading struct {
	at    int64
	bytes [profile.MaxLanes]int64
	total int64
}

// open starts the meter, before there is a model.
func (m *meter) open(path string) {
	m.opening = clock.Now()
	m.process, m.thermal = host.OpenProcess(), host.OpenThermal()
	if d, err := host.OpenDrive(path); err == nil {
		m.drive = d // otherwise foreign I/O is n/a
	}
	m.gc = []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/total:cpu-seconds"}, {Name: "/cpu/classes/idle:cpu-seconds"}}
	m.walls = make([]int64, 0, profile.RingTokens)
	m.live.Phase = profile.Loading
	m.live.Started = m.opening
}

func (m *meter) close() error {
	var err error
	if m.process != nil {
		err = m.process.Close()
	}
	if m.drive != nil {
		if derr := m.drive.Close(); err == nil {
			err = derr
		}
	}
	return err
}

// update changes the snapshot. f must be quick and ask the OS nothing.
func (m *meter) update(f func(live *profile.Snapshot)) {
	m.mu.Lock()
	f(&m.live)
	m.mu.Unlock()
}

func (m *meter) snapshot(dst *profile.Snapshot) {
	m.mu.Lock()
	*dst = m.live
	m.mu.Unlock()
	dst.At = clock.Now()
	if dst.Phase != profile.Idle {
		dst.Elapsed = dst.At - dst.Started
	}
}

// opened fills in what opening has settled.
func (m *meter) opened(s *Session) {
	m.session = s
	m.onLayer = m.layer
	m.loaded = clock.Now() - m.opening
	info := s.arch.Info()
	shape := info.Experts.Shape()
	memory := host.ReadMemory()
	m.update(func(l *profile.Snapshot) {
		l.Phase = profile.Idle
		l.Model = profile.Model{Name: s.modelName(), Arch: info.Arch, FileBytes: s.files.Size(), Shards: s.files.Len(),
			Layers: info.Layers, MoELayers: info.MoELayers(), Experts: info.Experts.Experts, ExpertsUsed: info.Experts.Used,
			ExpertBytesAll: shape.Total(), TokenCycle: shape.TokenCycle(),
			HostMemory: profile.Maybe[int64]{Value: memory.Total, OK: memory.Has.All(host.HasTotal)}}
		l.Model.Quant = s.expertType()
		l.Ctx = s.cfg.Ctx
		l.Simulated = s.files.Simulated()
		l.Cache.BudgetStep = shape.Total() / 8
		l.Cache.LayerWorkingSet = shape.LayerWorkingSet()
		if l.Mapping.State == "" {
			l.Mapping.State = profile.MappingMapped
		}
		l.Mapping.Dense = string(s.cfg.Dense)
	})
	m.reconfigured(s)
	m.survey()
}

// reconfigured fills in what a change may have changed.
func (m *meter) reconfigured(s *Session) {
	m.lanes = [3]laneReading{}
	m.update(func(l *profile.Snapshot) {
		l.Lanes = profile.Lanes{}
		l.Lanes.Overlap = s.cfg.Overlap
		l.Process.Threads = s.cfg.Threads
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
		c.BudgetAuto = s.autoCache
		c.BelowTokenCycle = st.Budget < l.Model.TokenCycle
		mode := s.reader.Mode()
		l.Lanes.Engine, l.Lanes.Mode, l.Lanes.N = s.reader.Engine(), mode.String(), s.reader.Lanes()
		l.Lanes.Reason = mode.Reason
		if note := cmp.Or(s.engineNote, mode.Fallback); note != "" {
			l.Lanes.Reason = note
		}
	})
	m.look()
}

// begin starts a run's account: its prefill of n tokens after base.
func (m *meter) begin(run, base, n, maxTokens int, started int64) {
	m.runStart, m.glanced = started, 0
	m.base, m.prompt = base, n
	m.session.compute.Pool.Times(&m.times)
	m.runCache = m.cacheStats()
	m.sum = profile.Record{Run: run, MajorFaults: profile.Some[int64](0), CPU: profile.Some[int64](0)}
	m.process.Counters(&m.runCPU)
	if m.drive != nil {
		m.drive.Sample(&m.runDrive)
		m.moved = m.runDrive
	}
	m.contend = false
	if st := m.session.streamer; st != nil {
		st.ResetLatency()
	}
	m.readLanes(&m.lanes[0])
	m.lanes[1], m.lanes[2] = m.lanes[0], m.lanes[0]
	m.update(func(l *profile.Snapshot) {
		l.Phase, l.Run, l.Step, l.Steps = profile.Prefill, run, 0, maxTokens
		l.Prompt, l.PromptDone, l.Started = n, 0, m.runStart
		l.CtxUsed = base
		l.TTFT, l.PrefillTPS, l.DecodeTPS = profile.Maybe[int64]{}, profile.Maybe[float64]{}, profile.Maybe[float64]{}
		l.DroppedTurns = m.session.dropped
		l.Sum = m.sum
		l.Wall.P50, l.Wall.P95 = profile.Maybe[int64]{}, profile.Maybe[int64]{}
		l.Cache.HitRun, l.Cache.HitNow = profile.Maybe[float64]{}, profile.Maybe[float64]{}
		l.Process.CPUPerToken, l.Process.ForeignIO = profile.Maybe[int64]{}, profile.Maybe[float64]{}
	})
}

// prefilled counts finished prompt tokens.
func (m *meter) prefilled(done int) {
	m.update(func(l *profile.Snapshot) { l.PromptDone = done })
	m.maybeLook()
}

// layer hears of every layer's end: a batch can take seconds, and the screen
// should move while it does.
func (m *meter) layer(layer int, x []float32) {
	if !m.maybeLook() {
		return
	}
	info := m.session.arch.Info()
	batch := len(x) / info.Embd
	done := len(m.session.ids) - m.base + batch*(layer+1)/info.Layers
	m.update(func(l *profile.Snapshot) {
		if l.Phase == profile.Prefill {
			l.PromptDone = min(done, m.prompt)
		}
	})
}

// first ends the prefill: the first token is there.
func (m *meter) first(prompt int) {
	s := m.session
	s.compute.Pool.Times(&m.times)
	m.prefillEnd = m.times.Now
	m.cache = m.cacheStats()
	m.process.Counters(&m.usage)
	took := m.prefillEnd - m.runStart
	m.update(func(l *profile.Snapshot) {
		l.Phase, l.Step, l.PromptDone = profile.Decode, 1, prompt
		l.CtxUsed = len(s.ids)
		l.TTFT = profile.Some(took)
		l.PrefillTPS = perSecond(prompt, took)
	})
}

// nothing ends a prefill after which the model had nothing to say.
func (m *meter) nothing(prompt int) {
	took := clock.Now() - m.runStart
	m.update(func(l *profile.Snapshot) {
		l.PromptDone, l.PrefillTPS = prompt, perSecond(prompt, took)
	})
}

// perSecond returns n per second of ns, or nothing if no time has passed.
func perSecond(n int, ns int64) profile.Maybe[float64] {
	return profile.Ratio(float64(n)*1e9, float64(ns))
}

// token writes the record of a decoded token.
func (m *meter) token(r *profile.Record) {
	s := m.session
	was := m.times
	s.compute.Pool.Times(&m.times)
	workers := int64(m.times.Workers)
	part := func(st pool.State) int64 { return (m.times.State[st] - was.State[st]) / workers }
	r.Wall = m.times.Now - was.Now
	r.Compute, r.Mgmt, r.Stall = part(pool.Compute), part(pool.Mgmt), part(pool.Stall)
	r.Other = part(pool.Other)
	r.StallUnion = m.times.StallUnion - was.StallUnion

	c, before := m.cacheStats(), m.cache
	m.cache = c
	r.IO = c.BusyNanos - before.BusyNanos
	r.ExpertBytes, r.WindowBytes, r.Reads = c.ReadBytes-before.ReadBytes, c.WindowBytes-before.WindowBytes, c.Reads-before.Reads
	r.Lookups, r.Hits = c.Lookups-before.Lookups, c.Hits-before.Hits
	r.Evictions, r.Rereads = c.Evictions-before.Evictions, c.Rereads-before.Rereads

	u, had := host.Sample{}, m.usage
	m.process.Counters(&u)
	m.usage = u
	both := u.Has & had.Has
	r.MajorFaults = profile.Maybe[int64]{Value: u.MajorFaults - had.MajorFaults, OK: both.All(host.HasMajorFaults)}
	r.CPU = profile.Maybe[int64]{Value: int64(u.CPU - had.CPU), OK: both.All(host.HasCPU)}
	m.sum.Add(r)

	m.mu.Lock()
	l := &m.live
	l.Tokens[l.Count%profile.RingTokens] = *r
	l.Count++
	l.Step, l.Sum, l.CtxUsed = r.Step, m.sum, len(s.ids)
	l.DecodeTPS = perSecond(int(m.sum.Tokens), m.sum.Wall)
	m.mu.Unlock()
	m.maybeLook()
}

// end closes a run's account.
func (m *meter) end() {
	m.look()
	gc := m.gcShare()
	var u host.Sample
	m.process.Counters(&u)
	m.survey()
	now := clock.Now()
	m.update(func(l *profile.Snapshot) {
		l.Phase = profile.Idle
		l.Elapsed = now - m.runStart
		l.CtxUsed = len(m.session.ids)
		l.Process.GCPercent = gc
	})
}

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
	m.update(func(l *profile.Snapshot) {
		l.Process.AvailableMemory = profile.Maybe[int64]{Value: memory.Available, OK: memory.Has.All(host.HasAvailable)}
		l.Process.Temperature = profile.Maybe[float64]{Value: celsius, OK: hot}
		l.Mapping.DenseResident = profile.Maybe[float64]{Value: dense, OK: known}
	})
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

// look renews the parts of the snapshot that cost more than a few loads. The
// host is asked before the lock is taken.
func (m *meter) look() {
	s := m.session
	m.glanced = clock.Now()
	var usage host.Sample
	m.process.Sample(&usage)
	procs := runtime.GOMAXPROCS(0)
	foreign, foreignOK := m.foreign()
	m.readLanes(&m.lanes[2])
	from, to := &m.lanes[0], &m.lanes[2]
	cache := m.cacheStats()

	m.mu.Lock()
	defer m.mu.Unlock()
	l := &m.live
	p := &l.Process
	p.RSS = profile.Maybe[int64]{Value: usage.RSS, OK: usage.Has.All(host.HasRSS)}
	p.RSSAnon = profile.Maybe[int64]{Value: usage.RSSAnon, OK: usage.Has.All(host.HasRSSSplit)}
	if foreignOK {
		p.ForeignIO = profile.Some(foreign)
	}
	p.Contended = m.contend
	p.MaxProc = procs
	n := float64(m.sum.Tokens)
	if m.sum.CPU.OK && n > 0 {
		p.CPUPerToken = profile.Some(m.sum.CPU.Value / m.sum.Tokens)
	}
	p.MajFltPerToken = profile.Maybe[float64]{Value: float64(m.sum.MajorFaults.Value) / max(n, 1), OK: m.sum.MajorFaults.OK && n > 0}
	m.quantiles(l)
	if s.streamer == nil {
		return
	}
	c := &l.Cache
	c.Resident, c.SlotsUsed = cache.Resident, cache.SlotsUsed
	c.Lookups = cache.Lookups
	c.HitRun = percent(m.sum.Hits, m.sum.Lookups)
	c.HitNow = m.recentHits(l)
	c.EvictionsPerTok = profile.Ratio(float64(m.sum.Evictions), n)
	c.RereadsPerTok = profile.Ratio(float64(m.sum.Rereads), n)
	c.ReadPerTok = profile.Ratio(float64(m.sum.ExpertBytes), n)

	a := &l.Lanes
	a.Queue = m.stats.QueuedDemand + m.stats.QueuedSpec
	a.Reads, a.Bytes, a.BusyNanos = cache.Reads-m.runCache.Reads, cache.WindowBytes-m.runCache.WindowBytes, cache.BusyNanos-m.runCache.BusyNanos
	a.RateRun = perSecond(int(a.Bytes), cache.ReadingNanos-m.runCache.ReadingNanos)
	a.P50, a.P99 = maybe(s.streamer.Latency().Quantile(0.5)), maybe(s.streamer.Latency().Quantile(0.99))
	a.Wake50 = maybe(s.streamer.Wake().Quantile(0.5))
	if span := to.at - from.at; l.Phase != profile.Idle && span > 0 {
		a.Rate = perSecond(int(to.total-from.total), span)
		for i := range min(a.N, profile.MaxLanes) {
			a.Lane[i] = profile.Lane{Rate: perSecond(int(to.bytes[i]-from.bytes[i]), span)}
		}
		if to.at-m.lanes[1].at > rateWindow/2 {
			m.lanes[0], m.lanes[1] = m.lanes[1], *to
		}
	}
}

func maybe(v int64, ok bool) profile.Maybe[int64] { return profile.Maybe[int64]{Value: v, OK: ok} }

func percent(part, whole int64) profile.Maybe[float64] {
	return profile.Ratio(100*float64(part), float64(whole))
}

// readLanes copies the reader's counters.
func (m *meter) readLanes(to *laneReading) {
	if m.session.reader == nil {
		return
	}
	m.session.reader.Stats(&m.stats)
	to.at, to.total = clock.Now(), m.stats.Total.Bytes
	for i := range min(len(m.stats.Lanes), profile.MaxLanes) {
		to.bytes[i] = m.stats.Lanes[i].Bytes
	}
}

// foreign returns the rate at which others move bytes on the model's drive, of
// the last second or so, and notes whether they spoil the run.
func (m *meter) foreign() (float64, bool) {
	if m.drive == nil {
		return 0, false
	}
	var now host.DriveSample
	m.drive.Sample(&now)
	if m.live.Phase != profile.Idle { // written by this goroutine alone
		m.contend = contended(m.runDrive, now)
	}
	if m.moved.At == 0 {
		m.moved = now
	}
	span := now.At - m.moved.At
	if span < rateWindow/2 {
		return 0, false
	}
	bytes, ok := host.Foreign(m.moved, now)
	m.moved = now
	return float64(bytes) * 1e9 / float64(span), ok
}

// contended reports whether others moved enough on the drive between two samples
// to slow what this process read. Whoever read nothing cannot have been slowed.
// The process's own count covers reads through a mapping as well as the lanes'.
func contended(from, to host.DriveSample) bool {
	others, ok := host.Foreign(from, to)
	own := to.OwnRead - from.OwnRead
	return ok && own > 0 && others > foreignLeast && float64(others) > foreignShare*float64(own)
}

// quantiles fills in the median and the 95th percentile of the run's tokens, as
// far back as the ring reaches.
func (m *meter) quantiles(l *profile.Snapshot) {
	m.walls = m.walls[:0]
	for i := 0; ; i++ {
		r, ok := l.Latest(i)
		if !ok || r.Run != m.sum.Run {
			break
		}
		m.walls = append(m.walls, r.Wall)
	}
	if len(m.walls) > 0 {
		slices.Sort(m.walls)
		l.Wall.P50, l.Wall.P95 = profile.Some(quantile(m.walls, 0.5)), profile.Some(quantile(m.walls, 0.95))
	}
}

// quantile is stats.Quantile for sorted values, without its allocations.
func quantile(sorted []int64, q float64) int64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	next := min(low+1, len(sorted)-1)
	return sorted[low] + int64((at-float64(low))*float64(sorted[next]-sorted[low]))
}

// recentHits returns the hit rate of the run's last tokens.
func (m *meter) recentHits(l *profile.Snapshot) profile.Maybe[float64] {
	var hits, lookups int64
	for i := range recentTokens {
		r, ok := l.Latest(i)
		if !ok || r.Run != m.sum.Run {
			break
		}
		hits += r.Hits
		lookups += r.Lookups
	}
	return percent(hits, lookups)
}

// expertType names the tensor type of most routed experts.
func (s *Session) expertType() string {
	count := map[string]int64{}
	best := ""
	for _, w := range s.registry.Weights {
		if w.Streamed {
			t := w.Type.String()
			count[t] += w.Range.Size
			if count[t] > count[best] || count[t] == count[best] && t < best {
				best = t
			}
		}
	}
	return best
}
