package model

import (
	"fmt"
	"math"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/pool"
	"bmoe/engine/quant"
)

// ngramShape is the shape of n-gram embeddings.
type ngramShape struct {
	streams, embd int
	most          int // tokens of the longest n-gram
	heads         int // rows for each length from 2 on
	taps          int
}

// rows returns how many rows a token takes.
func (n ngramShape) rows() int { return (n.most - 1) * n.heads }

// ngram adds to the streams what a table says of the last tokens: it is looked up by
// hashes of the last two, three ... ids, compared with each stream, and mixed over
// earlier positions.
type ngram struct {
	ngramShape
	table       *Weight // [embd/rows x entries], gathered by rows
	multipliers []uint64
	offsets     []uint64
	sizes       []uint64
	eos         int32
	key, value  *Weight // [embd x streams*embd], [embd x embd]
	keyNorm     *Weight // [streams*embd], like the next two
	queryNorm   *Weight
	convNorm    *Weight
	conv        convolution
	inputs      []*Weight

	s       *stream
	mem     *recurrentLayer // rows of the convolution's input
	past    *recurrentLayer // the last ids, as numbers
	scratch *ngramScratch
}

// ngramScratch is the memory of a step, for the largest batch.
type ngramScratch struct {
	numbers []int64      // [n x rows] of the table
	bytes_  []byte       // [n x rows] as they stand in the table
	found   []float32    // [n x embd]
	key     []float32    // [n x streams*embd], then the convolution's input
	value   []float32    // [n x embd]
	query   []float32    // [n x streams*embd]
	acts    *kernel.Acts // of found
	mine    [][]float32  // by worker
}

func (w *ngramScratch) bytes() int64 {
	n := len(w.found) + len(w.key) + len(w.value) + len(w.query) + 2*len(w.numbers)
	for _, m := range w.mine {
		n += len(m)
	}
	return int64(n)*4 + int64(len(w.bytes_)) + w.acts.Bytes()
}

// ngramPart is how many channels of the convolution a part of the work has.
const ngramPart = 128

// ngram returns the block of a layer.
func (l *loader) ngram(layer, embd, streams int) *ngram {
	name, all := l.names(layer), streams*embd
	n := &ngram{ngramShape: ngramShape{streams: streams, embd: embd, most: l.key("ple.ngram_size"), heads: l.key("ple.heads_per_ngram"), taps: l.key("ple.conv_kernel")},
		key: l.matrix(name("ple_key"), embd, all), value: l.matrix(name("ple_value"), embd, embd),
		keyNorm: l.vector(name("ple_norm_key.weight"), all), queryNorm: l.vector(name("ple_norm_query.weight"), all), convNorm: l.vector(name("ple_norm_conv.weight"), all)}
	n.conv = l.convolution(n.taps, all, name("ple_conv1d.weight"))
	n.conv.apart = n.most
	n.inputs = []*Weight{n.key, n.value}
	eos, err := l.file.Meta.Int(l.prefix + "ple.eos_token_id")
	n.eos = int32(number(l, eos, err))
	length := l.key("embedding_length_per_layer_input")
	if n.most < 2 || length*n.rows() != embd {
		l.fail(fmt.Errorf("%d rows of %d make no vector of %d (%sple.ngram_size, heads_per_ngram, embedding_length_per_layer_input)", n.rows(), length, embd, l.prefix))
		return n
	}
	n.multipliers, n.offsets, n.sizes = l.unsigned("ple.layer_multipliers", n.most), l.unsigned("ple.head_offsets", n.rows()), l.unsigned("ple.head_vocab_sizes", n.rows())
	const table = "per_layer_token_embd.weight"
	t, ok := l.file.Tensor(table)
	if !ok {
		l.fail(fmt.Errorf("tensor %s is missing", table))
		return n
	}
	n.table = l.weight(table, length, int(t.Dims[len(t.Dims)-1]))
	n.table.Gathered = true
	l.supported(n.table)
	for i := range n.sizes {
		if l.err == nil && (n.sizes[i] == 0 || n.offsets[i]+n.sizes[i] > uint64(n.table.Rows)) {
			l.fail(fmt.Errorf("%sple.head_offsets and head_vocab_sizes go to row %d of %s, which has %d", l.prefix, n.offsets[i]+n.sizes[i], table, n.table.Rows))
		}
	}
	return n
}

// unsigned returns an array of n integers.
func (l *loader) unsigned(name string, n int) []uint64 {
	list := make([]uint64, n)
	v, err := l.file.Meta.Ints(l.prefix + name)
	switch {
	case err != nil:
		l.fail(err)
	case len(v) != n:
		l.fail(fmt.Errorf("%s%s has %d elements, want %d", l.prefix, name, len(v), n))
	default:
		for i := range list {
			list[i] = uint64(v[i])
		}
	}
	return list
}

func (n *ngram) memory(int, attn.KVType) layerSpec {
	return partSpecs{list: []layerSpec{recurrentSpec{rows: n.conv.rows(), channels: n.streams * n.embd}, recurrentSpec{rows: n.most - 1, channels: 1}}}
}

func (n *ngram) prepare(s *stream) (err error) {
	n.s = s
	if err := n.conv.prepare(s); err != nil {
		return err
	}
	n.scratch, err = share(s, n.ngramShape, func() (*ngramScratch, error) {
		all, rows := n.streams*n.embd, s.max*n.rows()
		w := &ngramScratch{numbers: make([]int64, rows), bytes_: make([]byte, rows*n.table.RowBytes()), found: make([]float32, s.max*n.embd),
			key: make([]float32, s.max*all), value: make([]float32, s.max*n.embd), query: make([]float32, s.max*all), acts: kernel.NewActs(s.max, n.embd)}
		for range s.Pool.Workers() {
			w.mine = append(w.mine, make([]float32, n.conv.room(ngramPart)))
		}
		return w, nil
	})
	return err
}

func (n *ngram) add(s *stream, mem layerState) error {
	p := mem.(*parts)
	n.mem, n.past = p.list[0].(*recurrentLayer), p.list[1].(*recurrentLayer)
	w, all := n.scratch, n.streams*n.embd
	numbers := w.numbers[:s.n*n.rows()]
	for t := range s.n {
		n.hash(numbers[t*n.rows():][:n.rows()], t)
	}
	n.remember()
	prev := s.Pool.Enter(0, pool.Stall)
	err := s.Rows.Gather(w.bytes_, n.table.Range.Shard, n.table.Range.Offset, n.table.RowBytes(), numbers)
	s.Pool.Enter(0, prev)
	if err != nil {
		return err
	}
	s.settle()
	w.acts.Reset(s.n, n.embd)
	s.Pool.Run(s.n, (*ngramFound)(n))
	s.linear.run(s.Compute, w.acts, product{n.key, w.key, all}, product{n.value, w.value, n.embd})
	s.Pool.Run(s.n, (*ngramMeet)(n))
	s.Pool.Run((all+ngramPart-1)/ngramPart, (*ngramMix)(n))
	return nil
}

// id returns the id of the batch's token t, which may lie before it; ok is false before
// the sequence.
func (n *ngram) id(t int) (id int32, ok bool) {
	switch {
	case t >= 0:
		return n.s.ids[t], true
	case n.s.pos+t < 0:
		return 0, false
	}
	return int32(math.Float32bits(n.past.row(n.s.pos + t)[0])), true
}

// remember keeps the last ids for the next batch.
func (n *ngram) remember() {
	for t := max(0, n.s.n-n.most+1); t < n.s.n; t++ {
		n.past.row(n.s.pos + t)[0] = math.Float32frombits(uint32(n.s.ids[t]))
	}
}

// hash sets dst to the numbers of the rows of token t. What comes before the last end
// of text before it does not matter.
func (n *ngram) hash(dst []int64, t int) {
	h := uint64(n.s.ids[t]) * n.multipliers[0]
	cut := false
	for s := 1; s < n.most; s++ {
		id, ok := n.id(t - s)
		if cut = cut || !ok || id == n.eos; cut {
			id = n.eos
		}
		h ^= uint64(id) * n.multipliers[s]
		for i := (s - 1) * n.heads; i < s*n.heads; i++ {
			dst[i] = int64(n.offsets[i] + h%n.sizes[i])
		}
	}
}

// ngramFound unpacks a token's rows, a task of the pool.
type ngramFound ngram

// Do implements pool.Task.
func (n *ngramFound) Do(_, t int) {
	w, size := n.scratch, n.table.RowBytes()
	for i := range n.rows() {
		at := t*n.rows() + i
		if err := quant.Dequantize(n.table.Type, w.found[at*n.table.Cols:][:n.table.Cols], w.bytes_[at*size:][:size]); err != nil {
			panic(err) // the loader refuses such types
		}
	}
	prepare(w.acts, n.s.Numerics, w.found, t, t+1, n.inputs...)
}

// ngramMeet gives each stream of a token its part of what was found, a task of the pool.
type ngramMeet ngram

// Do implements pool.Task.
func (n *ngramMeet) Do(_, t int) {
	w, s, e, all := n.scratch, n.s, n.embd, n.streams*n.embd
	x, key, query, value := s.x[t*all:][:all], w.key[t*all:][:all], w.query[t*all:][:all], w.value[t*e:][:e]
	normStreams(key, key, n.keyNorm.F32, e, s.eps)
	normStreams(query, x, n.queryNorm.F32, e, s.eps)
	for i := 0; i < all; i += e {
		score := vec.Dot(key[i:][:e], query[i:][:e]) * inverseRoot(e)
		root := float32(math.Sqrt(float64(max(score, -score, 1e-6))))
		switch {
		case score < 0:
			root = -root
		case score == 0:
			root = 0
		}
		open := vec.Sigmoid32(root)
		part := key[i:][:e]
		clear(part)
		vec.AddScaled(part, value, open)
		vec.Add(x[i:][:e], part)
		vec.RMSNorm(part, part, n.convNorm.F32[i:][:e], s.eps)
	}
}

// ngramMix adds the convolution of some channels to the streams, a task of the pool.
type ngramMix ngram

// Do implements pool.Task.
func (n *ngramMix) Do(worker, part int) {
	w, s, all := n.scratch, n.s, n.streams*n.embd
	c0 := part * ngramPart
	c1 := min(c0+ngramPart, all)
	n.conv.run(w.key, all, s.n, s.pos, n.mem, c0, c1, w.mine[worker])
	for t := range s.n {
		d := w.key[t*all:][c0:c1]
		vec.Silu(d)
		vec.Add(s.x[t*all:][c0:c1], d)
	}
}
