package model

import (
	"encoding/binary"
	"fmt"

	"bmoe/engine/kernel"
	"bmoe/engine/kernel/vec"
)

// moeSpec is what a family's blocks of experts are like.
type moeSpec struct {
	route routing
	ff    int    // width of an expert
	input string // name of the norm's tensor
	act   kernel.Activation

	// latent is the length of the routed experts' input and output, where a matrix makes
	// them shorter than the stream before the experts and another as long again behind;
	// 0: they are as long.
	latent int

	// hashed says that a token's experts are looked up by its id; the router weighs them.
	hashed bool

	// ownNorms says that router and shared expert read the residual through norms of their
	// own, as gemma4 has it.
	ownNorms bool

	sharedAct   kernel.Activation // of the shared expert; SiLU unless it is set
	sharedFF    int               // width of an expert that every token has besides; 0: none
	sharedGated bool              // its output is weighted by the sigmoid of a product with the input
}

// moe is routed experts behind a router, and perhaps one that is shared.
type moe struct {
	moeSpec
	layer      int // set when the block is added to a model
	entry      entry
	router     *Weight // [embd x experts]
	bias       *Weight // [experts] for the choice; nil: none
	hash       *Weight // [used x vocab] the experts of each token by its id; nil: the router chooses
	w          experts
	shared     dense
	sharedGate *Weight   // [embd]; nil: none
	toLatent   *Weight   // [embd x latent]; nil: none
	fromLatent *Weight   // [latent x embd]
	inputs     []*Weight // of the matrices that take the stream
	outputs    []*Weight // of fromLatent
	apart      apart

	job  *moeJob
	next *moe // of the next layer that has one
}

// moe returns the block of a layer.
func (l *loader) moe(layer, embd int, spec moeSpec) *moe {
	name := l.names(layer)
	if spec.ownNorms {
		return l.moeApart(layer, embd, spec)
	}
	m := &moe{moeSpec: spec, entry: l.entry(layer, spec.input, embd),
		router: l.matrix(name("ffn_gate_inp"), embd, spec.route.experts)}
	m.w = l.experts(name(""), m.width(embd), spec.ff, spec.route.experts, spec.act.Gated())
	m.inputs = []*Weight{m.router}
	if spec.latent > 0 {
		m.toLatent, m.fromLatent = l.matrix(name("ffn_latent_down"), embd, spec.latent), l.matrix(name("ffn_latent_up"), spec.latent, embd)
		m.inputs, m.outputs = append(m.inputs, m.toLatent), []*Weight{m.fromLatent}
	} else {
		m.inputs = append(m.inputs, m.w.ins...)
	}
	if spec.route.biased {
		m.bias = l.floats(name("exp_probs_b.bias"), spec.route.experts)
	}
	if spec.hashed {
		cols := l.key("expert_used_count") // a setting may take fewer of them
		if m.hash = l.table(name("ffn_gate_tid2eid.weight"), cols, l.model.info.Vocab); spec.route.used > cols {
			l.fail(fmt.Errorf("tensor %s has %d experts for a token, not %d", m.hash.Name, cols, spec.route.used))
		}
	}
	if spec.sharedFF > 0 {
		m.shared = l.dense(layer, embd, spec.sharedFF, "_shexp", spec.sharedAct)
		m.inputs = append(m.inputs, m.shared.inputs()...)
	}
	if spec.sharedGated {
		m.sharedGate = l.weight(name("ffn_gate_inp_shexp.weight"), embd)
		l.supported(m.sharedGate)
		m.inputs = append(m.inputs, m.sharedGate)
	}
	return m
}

// width returns the length of the routed experts' input and output.
func (m *moeSpec) width(embd int) int {
	if m.latent > 0 {
		return m.latent
	}
	return embd
}

func (m *moe) prepare(s *stream) (err error) {
	if m.ownNorms {
		m.apart.prepare(s.embd)
	}
	if m.hash != nil {
		if err := m.checkHash(); err != nil {
			return err
		}
	}
	shape := moeShape{experts: m.route.experts, used: m.route.used, width: m.width(s.embd), ff: m.ff, embd: s.embd, sharedFF: m.sharedFF,
		latent: m.latent > 0, ownNorms: m.ownNorms, steered: m.route.steered()}
	m.job, err = share(s, shape, func() (*moeJob, error) { return newMoEJob(shape, s.max, s.Pool.Workers()), nil })
	return err
}

// checkHash refuses a table that names experts which there are not.
func (m *moe) checkHash() error {
	for i := 0; i < len(m.hash.Data); i += 4 {
		if id := binary.LittleEndian.Uint32(m.hash.Data[i:]); id >= uint32(m.route.experts) {
			return fmt.Errorf("tensor %s: token %d has expert %d of %d", m.hash.Name, i/m.hash.RowBytes(), id, m.route.experts)
		}
	}
	return nil
}

func (m *moe) add(s *stream, _ layerState) error {
	if m.ownNorms {
		m.routeResidual(s)
		s.in(m.entry, m.inputs)
		return m.job.run(s, m)
	}
	s.in(m.entry, m.inputs)
	products := [3]product{{m.router, m.job.logits, m.route.experts}}
	n := 1
	if m.sharedGate != nil {
		products[n] = product{m.sharedGate, m.job.shared.open, 1}
		n++
	}
	if m.latent > 0 {
		products[n] = product{m.toLatent, m.job.short, m.latent}
		n++
	}
	s.linear.run(s.Compute, s.acts, products[:n]...)
	if m.sharedGate != nil {
		open := m.job.shared.open[:s.n]
		for t, x := range open {
			open[t] = vec.Sigmoid32(x)
		}
	}
	return m.job.run(s, m)
}
