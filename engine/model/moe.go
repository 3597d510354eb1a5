package model

import "bmoe/engine/kernel"

// moeSpec is what a family's blocks of experts are like.
type moeSpec struct {
	route routing
	ff    int    // width of an expert
	input string // name of the norm's tensor
	act   kernel.Activation
}

// moe is routed experts behind a router.
type moe struct {
	moeSpec
	layer  int // set when the block is added to a model
	norm   *Weight
	router *Weight // [embd x experts]
	w      experts
	inputs []*Weight

	job *moeJob
}

// moe returns the block of a layer.
func (l *loader) moe(layer, embd int, spec moeSpec) *moe {
	name := l.names(layer)
	m := &moe{moeSpec: spec, norm: l.vector(name(spec.input+".weight"), embd),
		router: l.matrix(name("ffn_gate_inp"), embd, spec.route.experts),
		w:      l.experts(name(""), embd, spec.ff, spec.route.experts)}
	m.inputs = []*Weight{m.router, m.w.gate.Weight, m.w.up.Weight}
	return m
}

func (m *moe) prepare(s *stream) (err error) {
	shape := moeShape{experts: m.route.experts, used: m.route.used, embd: s.embd, ff: m.ff}
	m.job, err = share(s, shape, func() (*moeJob, error) { return newMoEJob(shape, s.max, s.Pool.Workers()), nil })
	return err
}

func (m *moe) add(s *stream, _ layerState) error {
	s.in(m.norm, m.inputs)
	s.linear.run(s.Compute, s.acts, product{m.router, m.job.logits, m.route.experts})
	return m.job.run(s, m)
}
