package model

import (
	"bmoe/engine/expert"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

// Ahead wants to know early which experts later layers will use.
type Ahead interface {
	// Lead returns for how many layers with routed experts, behind the one that is
	// being computed, the routers are to be run ahead; 0: for none.
	Lead() int
	// Expect hears what a later layer's router says by now, lead routed layers
	// before its turn: its choice, best first.
	Expect(layer, lead int, ids []int32)
}

// aheadJob runs the routers of later layers on the residual stream as it is after
// this layer's attention, each through its own norm: what the layers between will
// add is small beside what is there. It is for one token, and a task of the pool:
// its time is computing.
type aheadJob struct {
	s      *stream
	blocks [expert.MaxLead]*moe
	n      int
	rows   int // of a part
	parts  int // of a block

	y      []float32 // [expert.MaxLead x embd] normed
	acts   [expert.MaxLead]*kernel.Acts
	logits []float32 // [expert.MaxLead x experts]
	steer  []float32 // [experts]
	ids    []int32   // [used]
	weight []float32 // [used]
}

func newAheadJob(embd, experts, used int) *aheadJob {
	j := &aheadJob{y: make([]float32, expert.MaxLead*embd), logits: make([]float32, expert.MaxLead*experts), steer: make([]float32, experts),
		ids: make([]int32, used), weight: make([]float32, used)}
	for i := range j.acts {
		j.acts[i] = kernel.NewActs(1, embd)
	}
	return j
}

func (j *aheadJob) bytes() int64 {
	if j == nil {
		return 0
	}
	n := int64(len(j.y)+len(j.logits)+len(j.steer)+len(j.ids)+len(j.weight)) * 4
	for _, a := range j.acts {
		n += a.Bytes()
	}
	return n
}

// run tells to what the routers of up to lead layers after b say of the stream's
// single token.
func (j *aheadJob) run(s *stream, b *moe, lead int, to Ahead) {
	j.s, j.n = s, 0
	for next := b.next; next != nil && j.n < min(lead, expert.MaxLead); next = next.next {
		norm := next.routerNorm()
		if norm == nil || next.hash != nil {
			return // what a mixer will make of the streams is not known yet; and a hash asks no router
		}
		y := j.y[j.n*s.embd:][:s.embd]
		vec.RMSNorm(y, s.x[:s.embd], norm, s.eps)
		j.acts[j.n].Reset(1, s.embd)
		prepare(j.acts[j.n], s.Numerics, y, 0, 1, next.router)
		j.blocks[j.n] = next
		j.n++
	}
	if j.n == 0 {
		return
	}
	experts := b.route.experts
	bytes := j.n * experts * b.router.RowBytes()
	j.rows = rowsPerPart(b.router.RowBytes(), bytes, s.Pool.Workers())
	j.parts = (experts + j.rows - 1) / j.rows
	s.Pool.Run(j.n*j.parts, j)
	for i := range j.n {
		m := j.blocks[i]
		logits := j.logits[i*experts:][:experts]
		m.router.affine().ApplyAll(logits, experts, 1, 0, experts)
		var bias []float32
		if m.bias != nil {
			bias = m.bias.F32
		}
		m.route.choose(logits, j.steer, bias, j.ids, j.weight)
		to.Expect(m.layer, i+1, j.ids)
	}
}

// Do implements pool.Task.
func (j *aheadJob) Do(_, part int) {
	i := part / j.parts
	m := j.blocks[i]
	experts := m.route.experts
	r0 := part % j.parts * j.rows
	kernel.MatMul(j.logits[i*experts:][:experts], experts, &m.router.Matrix, r0, min(r0+j.rows, experts), j.acts[i], formOf(m.router, j.s.Numerics), nil)
}
