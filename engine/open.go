package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/engine/gguf"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/model"
	"bmoe/engine/pool"
	"bmoe/engine/sample"
	"bmoe/flashio"
	"bmoe/internal/host"
)

// The largest settings that are taken seriously.
const (
	MaxThreads = 256     // compute workers
	MaxCtx     = 1 << 24 // positions
	MaxUBatch  = 1 << 16 // prompt tokens in a batch
	maxTokens  = 1 << 30 // tokens of an answer; the context bounds it in earnest
)

// defaultCtx is the largest context that is chosen without being asked for:
// a model's own may be 262144 positions, gigabytes of KV.
const defaultCtx = 4096

// Open opens a model. progress, which may be nil, hears the stage and how much
// of it is done, from any goroutine; ctx cancels between stages. A *UsageError
// is a setting that cannot work.
func Open(ctx context.Context, cfg Config, progress func(stage string, done float64)) (*Session, error) {
	if progress != nil {
		progress("header", 0)
	}
	o, err := Begin(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return o.Finish(ctx, progress)
}

// Opening is a model whose header has been read and found good, and whose
// settings can work with it. Finish is to be called once.
type Opening struct{ s *Session }

// Begin does the first part of Open: all that can be known to fail without
// reading weights. It holds no file open and takes no memory to speak of.
func Begin(ctx context.Context, cfg Config) (*Opening, error) {
	if cfg.KVType == "" {
		cfg.KVType = "f16"
		if cfg.Numerics == "exact" {
			cfg.KVType = "f32"
		}
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	s := &Session{cfg: cfg, letGo: letGo, mostLanes: max(cfg.Lanes, laneSteps[len(laneSteps)-1])}
	s.pass.guarded = s.guardedPass
	if w := s.meter.open(cfg.Model, cfg.Locks); w != "" {
		s.warnings = append(s.warnings, w)
	}
	err := ctx.Err()
	if err == nil {
		err = s.openFile(ctx)
	}
	if err != nil {
		s.Close() // the error that matters is the first
		return nil, err
	}
	return &Opening{s}, nil
}

// Finish does the rest of Open.
func (o *Opening) Finish(ctx context.Context, progress func(stage string, done float64)) (s *Session, err error) {
	if progress == nil {
		progress = func(string, float64) {}
	}
	s = o.s
	defer s.ask(ctx)()
	defer func() {
		if err != nil {
			s.Close() // the error that matters is the first
			s = nil
		}
	}()
	for _, step := range []struct {
		name string
		do   func(*Session, context.Context, func(float64)) error
	}{
		{"mapping", (*Session).openMapping},
		{"lanes", func(s *Session, _ context.Context, _ func(float64)) error { return s.reopen(nil) }},
		{"dense weights", (*Session).openDense},
		{"context", (*Session).openState},
		{"expert cache", (*Session).openExperts},
		{"release", (*Session).openRelease},
	} {
		progress(step.name, 0)
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if err := step.do(s, ctx, func(done float64) { progress(step.name, done) }); err != nil {
			return s, err
		}
	}
	s.warnings = append(s.warnings, idleSettings(s.Settings())...)
	s.meter.opened(s)
	return s, nil
}

// idleSettings says of settings that somebody gave and that change nothing. The
// configuration file is for every model, so what it says may well do nothing for one.
func idleSettings(rows []backend.Setting) []string {
	var out []string
	for _, r := range rows {
		if r.Idle != "" && r.Origin != backend.FromDefault && r.Origin != backend.FromFile {
			out = append(out, fmt.Sprintf("{%s} does nothing: %s", r.Name, r.Idle))
		}
	}
	return out
}

// check refuses settings that no model can work with.
func (c *Config) check() error {
	if c.Model == "" {
		return usagef("no model given")
	}
	return settings.check(c)
}

// openFile reads the header and builds what needs no weights.
func (s *Session) openFile(ctx context.Context) error {
	var err error
	if s.file, err = gguf.Open(s.cfg.Model); err != nil {
		return err
	}
	if err := s.openRoute(); err != nil {
		return err
	}
	if s.arch, s.registry, err = model.Build(s.file, s.cfg.ExpertsUsed); err != nil {
		return err
	}
	if s.text, err = newText(ctx, s.file, s.cfg.Template); err != nil {
		return err
	}
	s.warnings = append(s.warnings, s.text.Tokenizer.Warnings()...)
	if err := s.fitRoute(); err != nil {
		return err
	}
	info := s.arch.Info()
	if info.MoELayers() == 0 {
		s.cfg.dense, s.cfg.Stream = true, false
		s.warnings = append(s.warnings, notMoE+". The model has no experts; it is computed from memory, or from the file's mapping with {dense-weights=mmap}")
	}
	if got := s.text.Tokenizer.Len(); got > info.Vocab {
		return fmt.Errorf("%s: the vocabulary has %d tokens, but the embedding only %d rows", s.cfg.Model, got, info.Vocab)
	}
	if s.text.TemplateErr != nil && !s.cfg.Raw {
		from := s.cfg.Model
		if s.cfg.Template != "" {
			from = s.cfg.TemplateFile
		}
		return fmt.Errorf("%s: %w", from, s.text.TemplateErr)
	}
	s.text.ParseSpecial = s.cfg.ParseSpecial
	if s.text.Notice != "" && !s.cfg.Raw {
		s.warnings = append(s.warnings, s.text.Notice)
	}
	if n := s.registry.Unused; n > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("%d tensors of the file lie outside the model that is run (a further head, a vision tower, layers for drafts): they are not used", n))
	}
	zeros, err := zeroTails(s.file, info.Experts)
	if err != nil {
		return err
	}
	s.warnings = append(s.warnings, zeros...)
	var paths []string
	for _, sh := range s.file.Shards {
		paths = append(paths, sh.Path)
	}
	var o flashio.FileOptions
	if s.cfg.SimulateHost != "" {
		o.Host = flashio.NewSimulatedHost(flashio.SimulateOptions{})
	}
	if s.files, err = flashio.OpenFiles(paths, o); err != nil {
		return err
	}
	if s.shape, err = info.Experts.Shape(s.files); err != nil {
		return err
	}
	if s.cfg.LoadAll && s.cfg.Stream {
		s.shape.Used = s.shape.Experts
	}
	if s.cfg.Ctx == 0 {
		s.cfg.Ctx = min(info.Context, defaultCtx)
	}
	if s.cfg.Ctx > info.Context {
		s.warnings = append(s.warnings, fmt.Sprintf("a context of %d is beyond the %d that the model was trained for", s.cfg.Ctx, info.Context))
	}
	s.cfg.UBatch = min(s.cfg.UBatch, s.cfg.Ctx)
	if s.cfg.Threads == 0 {
		s.cfg.Threads = 1
		if n, ok := host.PhysicalCores(); ok {
			s.cfg.Threads = min(n, MaxThreads)
		}
	}
	s.mostThreads = max(s.cfg.Threads, min(runtime.NumCPU(), MaxThreads))
	return s.openSampling()
}

// openSampling takes what the user did not set from the model's own keys.
func (s *Session) openSampling() error {
	o := &s.cfg.Sampling
	meta := s.file.Meta
	given := func(name string) bool { return s.cfg.origin(name) != backend.FromDefault }
	number := func(name, key string, dst *float64) error {
		if given(name) {
			return nil
		}
		v, err := meta.FloatOr("general.sampling."+key, *dst)
		*dst = v
		return err
	}
	count := func(name, key string, dst *int) error {
		if given(name) {
			return nil
		}
		v, err := meta.IntOr("general.sampling."+key, int64(*dst))
		*dst = int(v)
		return err
	}
	for _, err := range []error{
		number("temp", "temp", &o.Temp), count("top-k", "top_k", &o.TopK), number("top-p", "top_p", &o.TopP), number("min-p", "min_p", &o.MinP),
		number("repeat-penalty", "penalty_repeat", &o.RepeatPenalty), count("repeat-last-n", "penalty_last_n", &o.RepeatLastN),
	} {
		if err != nil {
			return fmt.Errorf("%s: %w", s.cfg.Model, err)
		}
	}
	if o.RepeatLastN < 0 || o.RepeatLastN > s.cfg.Ctx { // -1 stands for the whole context
		o.RepeatLastN = s.cfg.Ctx
	}
	if err := o.Check(); err != nil {
		return fmt.Errorf("%s: general.sampling: %w", s.cfg.Model, err)
	}
	_, err := sample.New(*o, s.arch.Info().Vocab)
	return err
}

// openMapping maps every shard, as llama.cpp does at load.
func (s *Session) openMapping(_ context.Context, _ func(float64)) error {
	for i := range s.files.Len() {
		m, err := s.files.Map(i)
		if err != nil {
			return err
		}
		s.mappings = append(s.mappings, m)
	}
	return nil
}

// openDense brings the dense weights to where the policy wants them.
func (s *Session) openDense(ctx context.Context, progress func(float64)) error {
	return s.bindDense(ctx, s.cfg.Dense, progress)
}

// bindDense binds the dense weights to where a policy has them. What they were bound
// to before is the caller's to close.
func (s *Session) bindDense(ctx context.Context, to DensePolicy, progress func(float64)) error {
	if to == DenseAnon {
		arena, err := readDense(ctx, s.registry, s.files, s.reader, s.letGo, progress)
		if err != nil {
			return err
		}
		s.dense = arena
		return nil
	}
	var err error
	ranges := s.registry.DenseRanges()
	for i, r := range ranges {
		if to == DenseWarm {
			if err := s.mappings[r.Shard].Warm(int(r.Offset), int(r.Size)); err != nil {
				return err
			}
		}
		progress(float64(i+1) / float64(len(ranges)))
	}
	// Norms are decoded here, which reads the mapping.
	ferr := flashio.Guard(func() {
		err = s.registry.Bind(func(r model.Range) ([]byte, error) { return s.mappings[r.Shard].Data[r.Offset:][:r.Size], nil })
	})
	if ferr != nil {
		return ferr
	}
	return err
}

// openState makes the workers, the KV cache and the scratch. It comes before the
// cache, whose budget leaves room for them.
func (s *Session) openState(_ context.Context, _ func(float64)) error {
	num, err := numerics(s.cfg.Numerics)
	if err != nil {
		return err
	}
	kv, err := attn.ParseKVType(s.cfg.KVType)
	if err != nil {
		return err
	}
	s.compute = &model.Compute{Pool: pool.New(s.cfg.Threads), Numerics: num}
	if s.forced != nil {
		s.compute.Force = s.forced.force
	}
	if s.state, err = s.arch.NewState(s.cfg.Ctx, kv); err != nil {
		return err
	}
	s.logits = make([]float32, s.arch.Info().Vocab)
	s.ids = make([]int32, 0, s.cfg.Ctx)
	if s.cfg.UBatch == 0 {
		return s.chooseUBatch()
	}
	return s.arch.Prepare(s.compute, s.cfg.UBatch, s.cfg.Ctx)
}

// openExperts makes the source of experts: the cache, or the mapping.
func (s *Session) openExperts(_ context.Context, _ func(float64)) error {
	defer s.warnContext()
	layout := s.arch.Info().Experts
	if n := s.registry.LongestRow(); n > 0 { // read wherever the weights are: the mapping may be handed back
		var err error
		if s.rows, err = expert.NewReadRows(s.files, n); err != nil {
			return err
		}
		s.rows.SetReader(s.reader)
		s.compute.Rows = s.rows
	}
	if !s.cfg.Stream {
		s.registry.BindStreamed(s.shards())
		s.compute.Experts = expert.NewMapped(layout, s.shards())
		return nil
	}
	if s.cfg.LoadAll {
		s.cfg.Cache = Budget{}
		if free, known := s.memoryForCache(); known && s.shape.LayerWorkingSet() > free-s.demand().total() {
			return &backend.SettingError{Setting: "load-all", Value: backend.On, Problem: "all experts of a layer: " + tooMuch(s.shape.LayerWorkingSet(), free, s.demand(), s.cfg.Ctx)}
		}
	}
	var err error
	if s.cfg.Cache, err = s.budget(s.cfg.Cache); err != nil {
		return err
	}
	if w := s.budgetWarning(s.cfg.Cache.Bytes); w != "" {
		s.warnings = append(s.warnings, w)
	}
	p, err := policy.New(s.cfg.CachePolicy, s.shape)
	if err != nil {
		return err
	}
	if s.streamer, err = expert.NewStreamer(s.files, layout, expert.Options{Budget: s.slotBudget(s.cfg.Cache), Policy: p, Overlap: s.cfg.Overlap,
		Reserve: s.shape.Reserve(s.slotBudget(s.cfg.Cache)), Vocab: s.arch.Info().Vocab, WholeLayers: s.cfg.LoadAll}); err != nil {
		return err
	}
	s.streamer.SetReader(s.reader)
	s.compute.Experts = s.streamer
	s.foresee()
	s.economise()
	return nil
}

// openRelease hands the mapping back if that was asked for.
func (s *Session) openRelease(_ context.Context, _ func(float64)) error {
	s.observeMapping() // a system that cannot tell leaves the figures not measured
	if !s.cfg.ReleaseMmap {
		return nil
	}
	verdict, reason, err := s.setRelease(true)
	if err != nil {
		return err
	}
	if verdict != backend.Applied {
		s.warnings = append(s.warnings, "{release-mmap} "+string(verdict)+": "+reason)
	}
	return nil
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

// modelName is what the screen calls the model.
func (s *Session) modelName() string {
	if name, err := s.file.Meta.StringOr("general.name", ""); err == nil && name != "" {
		return name
	}
	return filepath.Base(s.cfg.Model)
}
