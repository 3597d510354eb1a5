package engine

import (
	"sync/atomic"

	"bmoe/engine/pool"
	"bmoe/profile"
)

// layerCosts adds up what each layer of the run's decoded tokens cost. The goroutine that
// generates writes it; whoever looks waits for nobody.
type layerCosts struct {
	layers []layerCost
	on     bool       // the answer has begun
	single bool       // the pass is over one token of it
	last   pool.Times // at the end of the layer before
}

type layerCost struct{ tokens, compute, mgmt, stall, other atomic.Int64 }

func (c *layerCosts) init(layers int) { c.layers = make([]layerCost, layers) }

// begin begins a run.
func (c *layerCosts) begin() {
	c.on, c.single = false, false
	for i := range c.layers {
		l := &c.layers[i]
		for _, n := range []*atomic.Int64{&l.tokens, &l.compute, &l.mgmt, &l.stall, &l.other} {
			n.Store(0)
		}
	}
}

// add counts the time since the layer before: of each state the workers' sum divided by
// their number, as in a token's record.
func (c *layerCosts) add(layer int, now *pool.Times) {
	l, n := &c.layers[layer], int64(now.Workers)
	part := func(to *atomic.Int64, s pool.State) { to.Store(to.Load() + (now.State[s]-c.last.State[s])/n) }
	part(&l.compute, pool.Compute)
	part(&l.mgmt, pool.Mgmt)
	part(&l.stall, pool.Stall)
	part(&l.other, pool.Other)
	l.tokens.Store(l.tokens.Load() + 1)
	c.last = *now
}

// read fills in what the layers cost so far.
func (c *layerCosts) read(dst *profile.ExpertMap) {
	dst.Timed = true
	for i := range c.layers {
		from, to := &c.layers[i], &dst.Layers[i]
		to.Tokens, to.Compute, to.Mgmt, to.Stall, to.Other = from.tokens.Load(), from.compute.Load(), from.mgmt.Load(), from.stall.Load(), from.other.Load()
	}
}
