package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

// sharedWork is the expert that every token has, as a part of the job of the
// routed ones: its weights are always there, so workers compute it while the reads
// of the others fly.
type sharedWork struct {
	embd, ff int
	open     []float32    // [tokens] the weight of its output, where that is gated
	hidden   []float32    // [tokens x ff]
	out      []float32    // [tokens x embd]
	acts     *kernel.Acts // of hidden
	own      *kernel.Acts // its input where that is not the routed experts'
	x        []float32    // [tokens x embd] that input

	// the job in progress
	b                *moe
	s                *stream
	in               *kernel.Acts
	gate, up, down   kernel.Gated
	rowsA, rowsB     int
	chunksA, chunksB int32
	expertWork
}

// allocate takes scratch for batches of up to n tokens. apart says that the expert
// has an input of its own.
func (w *sharedWork) allocate(embd, ff, n int, apart bool) {
	w.embd, w.ff = embd, ff
	if apart {
		w.own, w.x = kernel.NewActs(n, embd), make([]float32, n*embd)
	}
	w.open, w.hidden, w.out, w.acts = make([]float32, n), make([]float32, n*ff), make([]float32, n*embd), kernel.NewActs(n, ff)
}

func (w *sharedWork) bytes() int64 {
	if w.acts == nil {
		return 0
	}
	n := int64(len(w.open)+len(w.hidden)+len(w.out)+len(w.x))*4 + w.acts.Bytes()
	if w.own != nil {
		n += w.own.Bytes()
	}
	return n
}

// begin sets the work up for block b and the stream's batch.
func (w *sharedWork) begin(s *stream, b *moe) {
	w.s, w.b, w.in = s, b, s.acts
	if w.own != nil {
		w.in = w.own
	}
	w.up, w.down = b.shared.up.gated(s.Numerics), b.shared.down.gated(s.Numerics)
	rowA, rowB := w.up.RowBytes(), w.down.RowBytes()
	if b.shared.gate != nil {
		w.gate = b.shared.gate.gated(s.Numerics)
		rowA += w.gate.RowBytes()
	}
	bytes := rowA*w.ff + rowB*w.embd
	w.rowsA, w.rowsB = rowsPerPart(rowA, bytes, s.Pool.Workers()), rowsPerPart(rowB, bytes, s.Pool.Workers())
	w.chunksA, w.chunksB = int32((w.ff+w.rowsA-1)/w.rowsA), int32((w.embd+w.rowsB-1)/w.rowsB)
	w.acts.Reset(s.n, w.ff)
	w.reset()
}

// takeShared computes one chunk of the shared expert.
func (m *moeJob) takeShared() taken {
	w := &m.shared
	if !w.stageB.Load() {
		if w.nextA.Load() >= w.chunksA {
			return tookNone
		}
		c := w.nextA.Add(1) - 1
		if c >= w.chunksA {
			return tookNone
		}
		r0 := int(c) * w.rowsA
		gate := &w.gate
		if w.b.shared.gate == nil {
			gate = nil
		}
		kernel.GateUp(w.hidden, w.ff, gate, &w.up, w.b.sharedAct, r0, min(r0+w.rowsA, w.ff), w.in, nil)
		if w.doneA.Add(1) == w.chunksA {
			w.acts.Prepare(w.down.Form, w.hidden, w.ff, 0, w.s.n)
			w.stageB.Store(true)
			m.batch.Announce()
		}
		return tookChunk
	}
	if w.nextB.Load() >= w.chunksB {
		return tookLast
	}
	c := w.nextB.Add(1) - 1
	if c >= w.chunksB {
		return tookLast
	}
	r0 := int(c) * w.rowsB
	r1 := min(r0+w.rowsB, w.embd)
	kernel.MatMul(w.out, w.embd, &w.down.Matrix, r0, r1, w.acts, w.down.Form, nil)
	w.down.ApplyAll(w.out, w.embd, w.s.n, r0, r1)
	if w.doneB.Add(1) == w.chunksB {
		m.left.Add(-1)
		m.batch.Announce()
	}
	return tookChunk
}

// addTo adds the shared expert's output for token t to sum.
func (w *sharedWork) addTo(sum []float32, t int) {
	out := w.out[t*w.embd:][:w.embd]
	if post := w.b.apart.sharedPost; post != nil {
		vec.RMSNormHeads(out, post.F32, w.s.eps)
	}
	if w.b.sharedGate == nil {
		vec.Add(sum, out)
		return
	}
	vec.AddScaled(sum, out, w.open[t])
}
