package model

import (
	"encoding/binary"
	"sync/atomic"

	"bmoe/engine/expert"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/pool"
)

// moeShape is what moe blocks must have in common to share a job.
type moeShape struct {
	experts, used int
	width, ff     int // of a routed expert: its input and output, and between them
	embd          int
	sharedFF      int
	latent        bool
	ownNorms      bool
	steered       bool
}

// moeJob computes a layer's routed experts for a batch of tokens. Workers take row
// chunks of whatever expert has arrived; every (token, rank) pair has a row of
// its own in out, and the rows are summed in rank order at the end, so that the
// result does not depend on who was ready first.
type moeJob struct {
	moeShape

	// scratch for the largest batch; a pair is one (token, rank)
	logits  []float32 // [tokens x experts] of the router
	steer   []float32 // [tokens x experts] if the routing is steered
	ids     []int32   // [tokens x used]
	weights []float32 // [tokens x used]
	pairOf  []int32   // [tokens x used]: the pair's row in hidden and out
	hidden  []float32 // [pairs x ff]
	out     []float32 // [pairs x width]
	hActs   *kernel.Acts
	short   []float32    // [tokens x width] if that is latent: the experts' input, then the sum of what they make
	sActs   *kernel.Acts // of short
	tokens  []int32      // [pairs]: grouped by expert, the token of each pair
	pairs   []int32      // 0, 1, 2, ...
	first   []int32      // by expert of the layer: where its pairs begin; experts+1 of them
	ahead   *aheadJob

	// the job in progress
	b                *moe // the block that runs it
	s                *stream
	k                int          // experts of a token
	in               *kernel.Acts // the routed experts' input
	gate, up, down   kernel.Gated // without what differs from expert to expert
	rowsA, rowsB     int
	chunksA, chunksB int32
	batch            *expert.Batch
	mine             []expertMatrices // by worker
	work             []expertWork
	shared           sharedWork
	left             atomic.Int32 // experts not yet finished, the shared one included
	aborted          atomic.Bool
}

// expertMatrices is one expert's matrices with their data, a worker's scratch.
type expertMatrices struct{ gate, up, down kernel.Gated }

// expertWork is the progress of one expert of the batch: first the gate and up
// rows (stage A), then, when all of them are there, the down rows (stage B).
type expertWork struct {
	nextA, doneA, nextB, doneB atomic.Int32
	stageB                     atomic.Bool
	pair0, n                   int32
	_                          [64 - 28]byte
}

// reset makes the work one that nobody has begun.
func (w *expertWork) reset() {
	w.nextA.Store(0)
	w.doneA.Store(0)
	w.nextB.Store(0)
	w.doneB.Store(0)
	w.stageB.Store(false)
}

// newMoEJob allocates scratch for batches of up to n tokens.
func newMoEJob(shape moeShape, n, workers int) *moeJob {
	pairs := n * shape.used
	m := &moeJob{moeShape: shape, logits: make([]float32, n*shape.experts),
		ids: make([]int32, pairs), weights: make([]float32, pairs), pairOf: make([]int32, pairs),
		hidden: make([]float32, pairs*shape.ff), out: make([]float32, pairs*shape.width),
		hActs: kernel.NewActs(pairs, shape.ff), tokens: make([]int32, pairs), pairs: make([]int32, pairs),
		first: make([]int32, shape.experts+1), work: make([]expertWork, shape.experts), mine: make([]expertMatrices, workers),
		ahead: newAheadJob(shape.embd, shape.experts, shape.used)}
	for i := range m.pairs {
		m.pairs[i] = int32(i)
	}
	if shape.steered {
		m.steer = make([]float32, n*shape.experts)
	}
	if shape.latent {
		m.short, m.sActs = make([]float32, n*shape.width), kernel.NewActs(n, shape.width)
	}
	if shape.sharedFF > 0 {
		m.shared.allocate(shape.embd, shape.sharedFF, n, shape.ownNorms)
	}
	return m
}

// run adds the weighted output of block b's experts to the residual of s. logits is
// the router's output, and the stream's activations, or short, are the experts' input.
func (m *moeJob) run(s *stream, b *moe) error {
	m.s, m.b, m.in = s, b, s.acts
	if m.latent {
		m.in = m.sActs
		m.in.Reset(s.n, m.width)
	}
	n, k := s.n, m.used
	ids, weights := m.ids[:n*k], m.weights[:n*k]
	s.Pool.Run(n, (*moeRoute)(m))
	s.stepped(b.layer, "route")
	prev := s.Pool.Enter(0, pool.Mgmt)
	if n == 1 && s.Thrift != nil {
		k = s.Thrift.spare(b, m.logits[:m.experts], ids, weights)
	}
	m.k = k
	m.batch = s.Experts.Acquire(b.layer, n, ids[:n*k])
	m.group(ids[:n*k])
	s.Pool.Enter(0, prev)
	s.stepped(b.layer, "acquire")
	s.routed(b.layer, n, ids, weights)
	if n == 1 && s.Ahead != nil {
		if lead := s.Ahead.Lead(); lead > 0 {
			m.ahead.run(s, b, lead, s.Ahead)
		}
	}

	w := &b.w
	m.up, m.down = w.up.one(s.Numerics), w.down.one(s.Numerics)
	rowA, rowB := m.up.RowBytes(), m.down.RowBytes()
	if w.gate.Weight != nil {
		m.gate = w.gate.one(s.Numerics)
		rowA += m.gate.RowBytes()
	}
	bytes := m.batch.Len() * (rowA*m.ff + rowB*m.width)
	m.rowsA, m.rowsB = rowsPerPart(rowA, bytes, s.Pool.Workers()), rowsPerPart(rowB, bytes, s.Pool.Workers())
	m.chunksA, m.chunksB = int32((m.ff+m.rowsA-1)/m.rowsA), int32((m.width+m.rowsB-1)/m.rowsB)
	m.hActs.Reset(n*k, m.ff)
	left := m.batch.Len()
	if m.sharedFF > 0 {
		m.shared.begin(s, b)
		left++
	}
	m.left.Store(int32(left))
	m.aborted.Store(false)
	s.Pool.Each(m)

	if err := m.release(); err != nil {
		return err
	}
	if m.latent {
		m.sActs.Reset(n, m.width)
		s.Pool.Run(n, (*moeCombine)(m))
		s.linear.run(s.Compute, m.sActs, product{b.fromLatent, s.y, m.embd})
		s.Pool.Run(n, (*moeLong)(m))
		s.pending = true
		return nil
	}
	s.post = b.apart.post
	s.Pool.Run(n, (*moeCombine)(m))
	return nil
}

// moeRoute routes a batch, a token a part, and prepares short where that is the
// experts' input.
type moeRoute moeJob

// Do implements pool.Task.
func (m *moeRoute) Do(_, t int) {
	k, e := m.used, m.experts
	var steer, bias []float32
	if m.steered {
		steer = m.steer[t*e:][:e]
	}
	if m.b.bias != nil {
		bias = m.b.bias.F32
	}
	ids, weights := m.ids[t*k:][:k], m.weights[t*k:][:k]
	if hash := m.b.hash; hash != nil {
		row := hash.Data[int(m.s.ids[t])*hash.RowBytes():][:4*k]
		ids := m.ids[t*k:][:k]
		for i := range ids {
			ids[i] = int32(binary.LittleEndian.Uint32(row[4*i:]))
		}
		m.b.route.rate(m.logits[t*e:][:e])
		m.b.route.weigh(m.logits[t*e:][:e], ids, m.weights[t*k:][:k])
	} else {
		m.b.route.choose(m.logits[t*e:][:e], steer, bias, ids, weights)
	}
	if m.s.Force != nil {
		m.s.Force(m.b.layer, m.s.pos+t, ids, weights)
	}
	if m.latent {
		prepare(m.sActs, m.s.Numerics, m.short, t, t+1, m.b.w.ins...)
	}
}

// moeCombine adds the experts' output up, a token a part, in rank order: to the
// residual stream, or to what is still short.
type moeCombine moeJob

// Do implements pool.Task.
func (m *moeCombine) Do(_, t int) {
	k := m.k
	row := func(r int) []float32 { return m.out[int(m.pairOf[t*k+r])*m.width:][:m.width] }
	sum := row(0)
	vec.Scale(sum, m.weights[t*k])
	for r := 1; r < k; r++ {
		vec.AddScaled(sum, row(r), m.weights[t*k+r])
	}
	if m.latent {
		copy(m.short[t*m.width:], sum)
		prepare(m.sActs, m.s.Numerics, m.short, t, t+1, m.b.outputs...)
		return
	}
	if m.ownNorms {
		vec.RMSNormHeads(sum, m.b.apart.routedPost.F32, m.s.eps)
	}
	if m.sharedFF > 0 {
		m.shared.addTo(sum, t)
	}
	m.s.give(t, sum)
}

// moeLong adds the shared expert to what the routed ones made, once that is as long as
// the stream, a token a part.
type moeLong moeJob

// Do implements pool.Task.
func (m *moeLong) Do(_, t int) {
	if m.sharedFF > 0 {
		m.shared.addTo(m.s.y[t*m.embd:][:m.embd], t)
	}
}

// release ends the batch. A wait for reads of a failed batch is a stall.
func (m *moeJob) release() error {
	prev := m.s.Pool.Enter(0, pool.Mgmt)
	if m.batch.InFlight() {
		m.s.Pool.Enter(0, pool.Stall)
	}
	err := m.batch.Release()
	m.s.Pool.Enter(0, prev)
	return err
}

// group sorts the pairs by expert, stably, and sets up each expert's work.
func (m *moeJob) group(ids []int32) {
	clear(m.first)
	for _, id := range ids {
		m.first[id+1]++
	}
	for e := 1; e < len(m.first); e++ {
		m.first[e] += m.first[e-1]
	}
	for i := range m.batch.Len() {
		e := m.batch.Expert(i)
		w := &m.work[i]
		w.reset()
		w.pair0, w.n = m.first[e], m.first[e+1]-m.first[e]
	}
	for i, id := range ids {
		p := m.first[id]
		m.first[id]++
		m.pairOf[i], m.tokens[p] = p, int32(i/m.k)
	}
}

// Work implements pool.Loop: it takes chunks until nobody needs help.
func (m *moeJob) Work(worker int) {
	for m.left.Load() > 0 && !m.batch.Failed() && !m.aborted.Load() {
		seq := m.batch.Seq()
		switch m.takeAny(worker) {
		case tookNone:
			// Only a wait with a read in flight is the drive's; otherwise a chunk
			// in another worker's hands is what holds this one up.
			state := pool.Other
			if m.batch.InFlight() {
				state = pool.Stall
			}
			prev := m.s.Pool.Enter(worker, state)
			m.batch.Wait(seq)
			m.s.Pool.Enter(worker, prev)
		case tookLast:
			return
		}
	}
}

// Abort implements pool.Aborter: another worker panicked.
func (m *moeJob) Abort() {
	m.aborted.Store(true)
	m.batch.Announce()
}

type taken uint8

const (
	tookChunk taken = iota
	tookNone        // nothing can be done now
	tookLast        // nothing is left to claim
)

// takeAny computes one chunk of the first expert that has one.
func (m *moeJob) takeAny(worker int) taken {
	result := tookLast
	for i := range m.batch.Len() {
		w := &m.work[i]
		if w.stageB.Load() {
			if w.nextB.Load() >= m.chunksB {
				continue // all claimed
			}
			if !m.batch.Ready(i, expert.StageOut) {
				result = tookNone
				continue
			}
			if c := w.nextB.Add(1) - 1; c < m.chunksB {
				m.stageB(worker, i, int(c))
				return tookChunk
			}
			continue
		}
		result = tookNone
		if w.nextA.Load() >= m.chunksA || !m.batch.Ready(i, expert.StageIn) {
			continue
		}
		if c := w.nextA.Add(1) - 1; c < m.chunksA {
			m.stageA(worker, i, int(c))
			return tookChunk
		}
	}
	// The shared expert waits for no read: it is what there is to do meanwhile.
	if m.sharedFF > 0 {
		if t := m.takeShared(); t != tookLast {
			return t
		}
	}
	return result
}

// stageA computes a chunk of the gate and up rows; who completes the stage
// prepares the result for the down rows.
func (m *moeJob) stageA(worker, i, chunk int) {
	w := &m.work[i]
	mine, e := &m.mine[worker], m.batch.Expert(i)
	of := &m.b.w
	var gate *kernel.Gated
	if of.gate.Weight != nil {
		gate, mine.gate = &mine.gate, m.gate
		gate.Data, gate.Affine = of.gate.data(m.batch.Data(i, of.gate.projection)), of.gate.affine(e)
	}
	up := &mine.up
	*up = m.up
	up.Data, up.Affine = of.up.data(m.batch.Data(i, of.up.projection)), of.up.affine(e)
	r0 := chunk * m.rowsA
	r1 := min(r0+m.rowsA, m.ff)
	kernel.GateUp(m.hidden[int(w.pair0)*m.ff:], m.ff, gate, up, m.b.act, r0, r1, m.in, m.tokens[w.pair0:][:w.n])
	if w.doneA.Add(1) < m.chunksA {
		return
	}
	m.hActs.Prepare(m.down.Form, m.hidden, m.ff, int(w.pair0), int(w.pair0+w.n))
	w.stageB.Store(true)
	m.batch.Computed(i, expert.StageIn)
}

// stageB computes a chunk of the down rows.
func (m *moeJob) stageB(worker, i, chunk int) {
	w := &m.work[i]
	down := &m.mine[worker].down
	*down = m.down
	down.Data = m.b.w.down.data(m.batch.Data(i, m.b.w.down.projection))
	r0 := chunk * m.rowsB
	r1 := min(r0+m.rowsB, m.width)
	out := m.out[int(w.pair0)*m.width:]
	kernel.MatMul(out, m.width, &down.Matrix, r0, r1, m.hActs, down.Form, m.pairs[w.pair0:][:w.n])
	m.b.w.down.affine(m.batch.Expert(i)).ApplyAll(out, m.width, int(w.n), r0, r1)
	if w.doneB.Add(1) < m.chunksB {
		return
	}
	m.left.Add(-1) // before the batch tells of the last
	m.batch.Computed(i, expert.StageOut)
}

// bytes returns the memory of the scratch.
func (m *moeJob) bytes() int64 {
	n := m.shared.bytes() + m.ahead.bytes()
	if m.latent {
		n += int64(len(m.short))*4 + m.sActs.Bytes()
	}
	return n + int64(len(m.logits)+len(m.steer)+len(m.ids)+len(m.weights)+len(m.pairOf)+len(m.tokens)+len(m.pairs)+len(m.hidden)+len(m.out))*4 + m.hActs.Bytes()
}
