package synth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"bmoe/engine/gguf"
	"bmoe/internal/crash"
)

// Model is a model that can be written: its spec is known to be good.
type Model struct {
	header *gguf.Writer
	jobs   []job
	shards int
	bytes  int64 // of all jobs
}

// New prepares a model. An error says what is wrong with the spec.
func New(s Spec) (*Model, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	list, err := s.weights()
	if err != nil {
		return nil, err
	}
	m := &Model{header: gguf.NewWriter(), shards: max(1, s.Shards)}
	if m.shards > len(list) {
		return nil, fmt.Errorf("cannot split %d tensors over %d files", len(list), m.shards)
	}
	if err := s.metadata(m.header); err != nil {
		return nil, err
	}
	for _, x := range list {
		if err := m.header.Declare(x.name, x.kind, x.dims...); err != nil {
			return nil, fmt.Errorf("the shape does not suit type %s: %w", s.Type, err)
		}
	}
	if m.jobs, err = s.cut(list); err != nil {
		return nil, err
	}
	for _, j := range m.jobs {
		m.bytes += j.bytes
	}
	return m, nil
}

// Bytes returns the size of the model's weights.
func (m *Model) Bytes() int64 { return m.bytes }

// Write writes the model to path, or to the shards that gguf.ShardPaths names.
// The bytes depend on the spec alone, not on the machine. It ends early when
// the context is done; then, or if something fails, it leaves no file. progress,
// if not nil, is called with the bytes written so far, from several goroutines
// at once.
func (m *Model) Write(ctx context.Context, path string, progress func(done int64)) error {
	out, err := m.header.Create(path, m.shards)
	if err != nil {
		return err
	}
	if err := m.run(ctx, out, progress); err != nil {
		return errors.Join(err, out.Abort())
	}
	return out.Close()
}

// Write writes the model of a spec to path, or to the shards that
// gguf.ShardPaths names.
func Write(path string, s Spec) error {
	m, err := New(s)
	if err != nil {
		return err
	}
	return m.Write(context.Background(), path, nil)
}

// metadata sets the model's keys.
func (s *Spec) metadata(w *gguf.Writer) error {
	m, err := mixOf(s.Type)
	if err != nil {
		return err
	}
	arch := s.arch()
	known := families[arch]
	tokens, types, merges := vocabulary(s.Vocab)
	last := uint32(s.Vocab - 1) // <|im_end|>
	keys := []key{
		{"general.architecture", arch},
		{"general.type", "model"},
		{"general.name", s.name()},
		{"general.alignment", uint32(32)},
		{"general.quantization_version", uint32(2)},
		{"general.file_type", m.fileType},
		{arch + ".block_count", uint32(s.Layers)},
		{arch + ".context_length", uint32(s.Ctx)},
		{arch + ".embedding_length", uint32(s.Embd)},
		{arch + ".feed_forward_length", uint32(cmp.Or(s.DenseFF, s.ExpertFF*s.Used))}, // of a dense layer; there may be none
		{arch + ".attention.head_count", uint32(s.Heads)},
		{arch + ".attention.head_count_kv", uint32(s.KVHeads)},
		{arch + ".attention.key_length", uint32(s.HeadDim)},
		{arch + ".attention.value_length", uint32(s.HeadDim)},
		{arch + ".attention.layer_norm_rms_epsilon", float32(1e-6)},
		{arch + ".rope.freq_base", float32(1e6)},
		{arch + ".vocab_size", uint32(s.Vocab)},
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", known.pre},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.merges", merges},
		{"tokenizer.ggml.bos_token_id", last - 2},
		{"tokenizer.ggml.eos_token_id", last},
		{"tokenizer.ggml.padding_token_id", last - 2},
		{"tokenizer.ggml.add_bos_token", false},
		{"tokenizer.chat_template", chatTemplate},
	}
	if s.Experts > 0 {
		keys = append(keys, key{arch + ".expert_count", uint32(s.Experts)}, key{arch + ".expert_used_count", uint32(s.Used)},
			key{arch + ".expert_feed_forward_length", uint32(s.ExpertFF)})
	}
	if s.RopeDims > 0 {
		keys = append(keys, key{arch + ".rope.dimension_count", uint32(s.RopeDims)})
	}
	if known.keys != nil {
		for _, k := range known.keys(s) { // in place of the general ones, or beside them
			k.name = arch + "." + k.name
			if i := slices.IndexFunc(keys, func(have key) bool { return have.name == k.name }); i >= 0 {
				keys[i] = k
			} else {
				keys = append(keys, k)
			}
		}
	}
	if s.Topics > 0 {
		// The text is to be sampled, and from all tokens, or it never changes its topic.
		keys = append(keys, key{"general.sampling.temp", float32(1)}, key{"general.sampling.top_k", int32(0)},
			key{"general.sampling.top_p", float32(1)}, key{"general.sampling.min_p", float32(0)})
	}
	for _, k := range keys {
		if err := w.Set(k.name, k.x); err != nil {
			return err
		}
	}
	if s.Yarn == 0 {
		return nil
	}
	return errors.Join(
		w.Set(arch+".rope.scaling.type", "yarn"),
		w.Set(arch+".rope.scaling.factor", float32(s.Yarn)),
		w.Set(arch+".rope.scaling.original_context_length", uint32(float64(s.Ctx)/s.Yarn)))
}

// piece is the unit of work: about as much as a core's cache holds.
const piece = 512 << 10

// job is a run of rows of one tensor.
type job struct {
	name   string
	offset int64 // of the first row in the tensor, in bytes
	bytes  int64
	rand   rand
	rows   []filler // one a row, or a single one for all
}

// cut makes the jobs. Each has its own random numbers, so it does not matter who
// does it when.
func (s *Spec) cut(list []weight) ([]job, error) {
	var jobs []job
	for i, w := range list {
		rowBytes, err := w.kind.RowBytes(w.dims[0])
		if err != nil {
			return nil, fmt.Errorf("tensor %s: %w", w.name, err)
		}
		rows := int64(1)
		for _, d := range w.dims[1:] {
			rows *= d
		}
		fillers := map[float64]filler{}
		fillerOf := func(factor float64) (filler, error) {
			f, ok := fillers[factor]
			if !ok {
				if f, err = newFiller(w.kind, w.mean, w.std*factor); err != nil {
					return nil, fmt.Errorf("tensor %s: %w", w.name, err)
				}
				fillers[factor] = f
			}
			return f, nil
		}
		var spans *spanFiller
		if w.cols != nil {
			if spans, err = newSpanFiller(w); err != nil {
				return nil, fmt.Errorf("tensor %s: %w", w.name, err)
			}
		}
		step := max(1, piece/rowBytes)
		for first := int64(0); first < rows; first += step {
			n := min(step, rows-first)
			j := job{name: w.name, offset: first * rowBytes, bytes: n * rowBytes, rand: newRand(s.Seed, uint64(i), uint64(first))}
			if spans != nil {
				j.rows = spans.rows(first, n)
			} else if j.rows, err = rowFillers(w, first, n, fillerOf); err != nil {
				return nil, err
			}
			jobs = append(jobs, j)
		}
	}
	return jobs, nil
}

// rowFillers returns the fillers of n rows from first on: a single one if the
// rows do not differ.
func rowFillers(w weight, first, n int64, fillerOf func(factor float64) (filler, error)) ([]filler, error) {
	factors := []float64{1}
	if w.rows != nil {
		factors = factors[:0]
		same := true
		for row := first; row < first+n; row++ {
			factors = append(factors, w.rows(row))
			same = same && factors[0] == factors[len(factors)-1]
		}
		if same {
			factors = factors[:1]
		}
	}
	fs := make([]filler, len(factors))
	for i, x := range factors {
		var err error
		if fs[i], err = fillerOf(x); err != nil {
			return nil, err
		}
	}
	return fs, nil
}

// do makes the job's bytes in buf and writes them.
func (j *job) do(out *gguf.Output, buf []byte) error {
	b := buf[:j.bytes]
	r := j.rand
	rowBytes := len(b) / len(j.rows)
	for i, f := range j.rows {
		f(&r, b[i*rowBytes:(i+1)*rowBytes])
	}
	return out.WriteTensor(j.name, j.offset, b)
}

// run does all jobs on all cores.
func (m *Model) run(ctx context.Context, out *gguf.Output, progress func(done int64)) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var largest int64
	for _, j := range m.jobs {
		largest = max(largest, j.bytes)
	}
	var next, done atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(m.jobs)) {
		wg.Go(func() {
			defer crash.Catch("writer")
			buf := make([]byte, largest)
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(len(m.jobs)) {
					return
				}
				if err := m.jobs[i].do(out, buf); err != nil {
					stop(err)
					return
				}
				if now := done.Add(m.jobs[i].bytes); progress != nil {
					progress(now)
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}
