package model

import (
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

// moeSpec is what a family's blocks of experts are like.
type moeSpec struct {
	route routing
	ff    int    // width of an expert
	input string // name of the norm's tensor
	act   kernel.Activation

	sharedFF    int  // width of an expert that every token has besides; 0: none
	sharedGated bool // its output is weighted by the sigmoid of a product with the input
}

// moe is routed experts behind a router, and perhaps one that is shared.
type moe struct {
	moeSpec
	layer      int // set when the block is added to a model
	norm       *Weight
	router     *Weight // [embd x experts]
	bias       *Weight // [experts] for the choice; nil: none
	w          experts
	shared     dense
	sharedGate *Weight // [embd]; nil: none
	inputs     []*Weight

	job  *moeJob
	next *moe // of the next layer that has one
}

// moe returns the block of a layer.
func (l *loader) moe(layer, embd int, spec moeSpec) *moe {
	name := l.names(layer)
	m := &moe{moeSpec: spec, norm: l.vector(name(spec.input+".weight"), embd),
		router: l.matrix(name("ffn_gate_inp"), embd, spec.route.experts),
		w:      l.experts(name(""), embd, spec.ff, spec.route.experts)}
	m.inputs = []*Weight{m.router, m.w.gate.Weight, m.w.up.Weight}
	if spec.route.biased {
		m.bias = l.floats(name("exp_probs_b.bias"), spec.route.experts)
	}
	if spec.sharedFF > 0 {
		m.shared = l.dense(layer, embd, spec.sharedFF, "_shexp")
		m.inputs = append(m.inputs, m.shared.gate, m.shared.up)
	}
	if spec.sharedGated {
		m.sharedGate = l.weight(name("ffn_gate_inp_shexp.weight"), embd)
		l.supported(m.sharedGate)
		m.inputs = append(m.inputs, m.sharedGate)
	}
	return m
}

func (m *moe) prepare(s *stream) (err error) {
	shape := moeShape{experts: m.route.experts, used: m.route.used, embd: s.embd, ff: m.ff, sharedFF: m.sharedFF, steered: m.route.steered()}
	m.job, err = share(s, shape, func() (*moeJob, error) { return newMoEJob(shape, s.max, s.Pool.Workers()), nil })
	return err
}

func (m *moe) add(s *stream, _ layerState) error {
	s.in(m.norm, m.inputs)
	router := product{m.router, m.job.logits, m.route.experts}
	if m.sharedGate != nil {
		open := m.job.shared.open
		s.linear.run(s.Compute, s.acts, router, product{m.sharedGate, open, 1})
		for t := range s.n {
			open[t] = vec.Sigmoid32(open[t])
		}
	} else {
		s.linear.run(s.Compute, s.acts, router)
	}
	return m.job.run(s, m)
}
