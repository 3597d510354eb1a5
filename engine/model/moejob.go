package model

import (
	"sync/atomic"

	"bmoe/engine/expert"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
	"bmoe/engine/pool"
)

// moeShape is what moe blocks must have in common to share a job.
type moeShape struct {
	experts, used int
	embd, ff      int
	sharedFF      int
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
	out     []float32 // [pairs x embd]
	hActs   *kernel.Acts
	tokens  []int32 // [pairs]: grouped by expert, the token of each pair
	pairs   []int32 // 0, 1, 2, ...
	first   []int32 // by expert of the layer: where its pairs begin; experts+1 of them
	ahead   *aheadJob

	// the job in progress
	b                *moe // the block that runs it
	s                *stream
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
		hidden: make([]float32, pairs*shape.ff), out: make([]float32, pairs*shape.embd),
		hActs: kernel.NewActs(pairs, shape.ff), tokens: make([]int32, pairs), pairs: make([]int32, pairs),
		first: make([]int32, shape.experts+1), work: make([]expertWork, shape.experts), mine: make([]expertMatrices, workers),
		ahead: newAheadJob(shape.embd, shape.experts, shape.used)}
	for i := range m.pairs {
		m.pairs[i] = int32(i)
	}
	if shape.steered {
		m.steer = make([]float32, n*shape.experts)
	}
	if shape.sharedFF > 0 {
		m.shared.allocate(shape.embd, shape.sharedFF, n)
	}
	return m
}

// run adds the weighted output of block b's experts to the residual of s. logits is
// the router's output, and the stream's activations are the experts' input.
func (m *moeJob) run(s *stream, b *moe) error {
	m.s, m.b = s, b
	n, k := s.n, m.used
	ids, weights := m.ids[:n*k], m.weights[:n*k]
	s.Pool.Run(n, (*moeRoute)(m))
	if s.OnRoute != nil {
		s.OnRoute(b.layer, n, ids, weights)
	}

	prev := s.Pool.Enter(0, pool.Mgmt)
	m.batch = s.Experts.Acquire(b.layer, n, ids)
	m.group(ids)
	s.Pool.Enter(0, prev)
	if n == 1 && s.Ahead != nil {
		if lead := s.Ahead.Lead(); lead > 0 {
			m.ahead.run(s, b, lead, s.Ahead)
		}
	}

	w := &b.w
	m.gate, m.up, m.down = w.gate.one(s.Numerics), w.up.one(s.Numerics), w.down.one(s.Numerics)
	rowA, rowB := m.gate.RowBytes()+m.up.RowBytes(), m.down.RowBytes()
	bytes := m.batch.Len() * (rowA*m.ff + rowB*m.embd)
	m.rowsA, m.rowsB = rowsPerPart(rowA, bytes, s.Pool.Workers()), rowsPerPart(rowB, bytes, s.Pool.Workers())
	m.chunksA, m.chunksB = int32((m.ff+m.rowsA-1)/m.rowsA), int32((m.embd+m.rowsB-1)/m.rowsB)
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
	s.Pool.Run(n, (*moeCombine)(m))
	return nil
}

// moeRoute routes a batch, a token a part.
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
	m.b.route.choose(m.logits[t*e:][:e], steer, bias, ids, weights)
	if m.s.Force != nil {
		m.s.Force(m.b.layer, m.s.pos+t, ids, weights)
	}
}

// moeCombine adds the experts' output to the residual stream, a token a part,
// in rank order.
type moeCombine moeJob

// Do implements pool.Task.
func (m *moeCombine) Do(_, t int) {
	k := m.used
	row := func(r int) []float32 { return m.out[int(m.pairOf[t*k+r])*m.embd:][:m.embd] }
	sum := row(0)
	vec.Scale(sum, m.weights[t*k])
	for r := 1; r < k; r++ {
		vec.AddScaled(sum, row(r), m.weights[t*k+r])
	}
	if m.sharedFF > 0 {
		m.shared.addTo(sum, t)
	}
	m.s.give(t, sum)
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
		m.pairOf[i], m.tokens[p] = p, int32(i/m.used)
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
	gate, up := &mine.gate, &mine.up
	*gate, *up = m.gate, m.up
	gate.Data, up.Data = m.b.w.gate.data(m.batch.Data(i, m.b.w.gate.projection)), m.b.w.up.data(m.batch.Data(i, m.b.w.up.projection))
	gate.Affine, up.Affine = m.b.w.gate.affine(e), m.b.w.up.affine(e)
	r0 := chunk * m.rowsA
	r1 := min(r0+m.rowsA, m.ff)
	kernel.GateUp(m.hidden[int(w.pair0)*m.ff:], m.ff, gate, up, m.b.act, r0, r1, m.s.acts, m.tokens[w.pair0:][:w.n])
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
	r1 := min(r0+m.rowsB, m.embd)
	out := m.out[int(w.pair0)*m.embd:]
	kernel.MatMul(out, m.embd, &down.Matrix, r0, r1, m.hActs, down.Form, m.pairs[w.pair0:][:w.n])
	m.b.w.down.affine(m.batch.Expert(i)).ApplyAll(out, m.embd, int(w.n), r0, r1)
	if w.doneB.Add(1) < m.chunksB {
		return
	}
	m.left.Add(-1) // before the batch tells of the last
	m.batch.Computed(i, expert.StageOut)
}

// bytes returns the memory of the scratch.
func (m *moeJob) bytes() int64 {
	return m.shared.bytes() + m.ahead.bytes() + int64(len(m.logits)+len(m.steer)+len(m.ids)+len(m.weights)+len(m.pairOf)+len(m.tokens)+len(m.pairs)+len(m.hidden)+len(m.out))*4 + m.hActs.Bytes()
}
