package model

import (
	"bmoe/engine/kernel/vec"
)

// apart is what a block of experts has besides where router, shared and routed
// experts each read the residual through a norm of their own, and each output is
// normed before they are added up. The shared expert is what other families have as a
// layer's feed-forward network.
type apart struct {
	routerScale *Weight // [embd] of the router's input, whose norm has no other weights
	sharedNorm  *Weight // [embd]
	sharedPost  *Weight // [embd] of the shared expert's output
	routedPost  *Weight // [embd] of the weighted sum of the routed ones'
	post        *Weight // [embd] of the sum of both

	routerNorm []float32 // routerScale over the root of embd
	inputs     []*Weight // of the shared expert
	router     []*Weight
}

// moeApart returns such a block.
func (l *loader) moeApart(layer, embd int, spec moeSpec) *moe {
	name := l.names(layer)
	vector := func(stem string) *Weight { return l.vector(name(stem), embd) }
	m := &moe{moeSpec: spec, entry: entry{norm: vector(spec.input + ".weight")}, router: l.weight(name("ffn_gate_inp.weight"), embd, spec.route.experts)}
	l.supported(m.router)
	m.w = l.experts(name(""), embd, spec.ff, spec.route.experts, spec.act.Gated())
	m.inputs = m.w.ins
	m.shared = l.dense(layer, embd, spec.sharedFF, "", spec.sharedAct)
	m.apart = apart{routerScale: vector("ffn_gate_inp.scale"), sharedNorm: vector("ffn_norm.weight"), sharedPost: vector("post_ffw_norm_1.weight"),
		routedPost: vector("post_ffw_norm_2.weight"), post: vector("post_ffw_norm.weight"), inputs: m.shared.inputs(), router: []*Weight{m.router}}
	return m
}

// prepare makes the weights of the router's norm.
func (a *apart) prepare(embd int) {
	a.routerNorm = append(a.routerNorm[:0], a.routerScale.F32...)
	vec.Scale(a.routerNorm, inverseRoot(embd))
}

// routerNorm returns the weights of the norm of the router's input; nil where a mixer
// makes that of several streams.
func (m *moe) routerNorm() []float32 {
	if m.ownNorms {
		return m.apart.routerNorm
	}
	if m.entry.norm == nil {
		return nil
	}
	return m.entry.norm.F32
}

// routeResidual computes the router's logits, and the shared expert's input.
func (m *moe) routeResidual(s *stream) {
	m.job.s, m.job.b = s, m
	s.settle()
	s.acts.Reset(s.n, s.embd)
	m.job.shared.own.Reset(s.n, s.embd)
	s.Pool.Run(s.n, (*moeApart)(m.job))
	s.linear.run(s.Compute, s.acts, product{m.router, m.job.logits, m.route.experts})
}

// moeApart norms the residual for router and shared expert, a task of the pool with a
// token a part.
type moeApart moeJob

// Do implements pool.Task.
func (m *moeApart) Do(_, t int) {
	s, a, w := m.s, &m.b.apart, &m.shared
	x := s.x[t*s.embd:][:s.embd]
	vec.RMSNorm(s.y[t*s.embd:][:s.embd], x, a.routerNorm, s.eps)
	prepare(s.acts, s.Numerics, s.y, t, t+1, a.router...)
	vec.RMSNorm(w.x[t*s.embd:][:s.embd], x, a.sharedNorm.F32, s.eps)
	prepare(w.own, s.Numerics, w.x, t, t+1, a.inputs...)
}
