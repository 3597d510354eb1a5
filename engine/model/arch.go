// Package model holds the architectures: each family's forward pass in one
// file, registered by its GGUF name, and the state that it keeps of a sequence.
package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bmoe/engine/expert"
	"bmoe/engine/gguf"
	"bmoe/engine/kernel"
	"bmoe/engine/kernel/attn"
	"bmoe/engine/pool"
)

// Info is a model's shape, as far as others need to know it.
type Info struct {
	Arch    string
	Layers  int
	Embd    int // length of the residual stream
	Vocab   int
	Context int // positions the model was trained for
	Experts expert.Layout
}

// MoELayers returns how many layers have routed experts.
func (i Info) MoELayers() int {
	n := 0
	for _, l := range i.Experts.Layers {
		if len(l) > 0 {
			n++
		}
	}
	return n
}

// Arch is a family's forward pass over the weights of one model.
type Arch interface {
	Info() Info
	// NewState returns an empty state with room for n positions.
	NewState(n int, kv attn.KVType) (State, error)
	// Prepare allocates scratch for batches of up to n positions in contexts of
	// up to ctx, computed with c.
	Prepare(c *Compute, n, ctx int) error
	// Scratch returns the bytes of scratch in use. Forms of activations are
	// allocated when they are first met, so it may grow once.
	Scratch() int64
	// Forward appends ids to st. logits receives [vocab] for the last position
	// or [len(ids) x vocab] for every one, and may be nil if none is wanted. It
	// polls ctx between layers. After an error or a cancellation the state's
	// Len is what it was before, and the state is dirty until Rewind.
	Forward(ctx context.Context, st State, ids []int32, logits []float32) error
}

// Compute is what a forward pass is given: everything that is shared between
// families and does not belong to a model.
type Compute struct {
	Pool     *pool.Pool
	Numerics kernel.Numerics
	Experts  expert.Source
	// Rows reads the tables that are gathered from; only models with such tables need it.
	Rows expert.Rows
	// Force, if set, replaces what the router chose for the token at a position:
	// ids and weights, in rank order, are its to overwrite. It is called by all
	// workers at once.
	Force func(layer, pos int, ids []int32, weights []float32)
	// Thrift, if set, saves reads of passes over one token; it changes the result.
	Thrift *Thrift
	// Ahead, if set, hears in decode what the routers of later layers say early.
	Ahead Ahead

	observers []*Observer
}

// Observer hears of forward passes as they go, on the goroutine that runs them. A
// field may be nil. What it is given is valid during the call.
type Observer struct {
	// Route learns of every layer's routing when its experts have been looked up:
	// ids and weights are [tokens x k] token-major, in rank order. What Thrift leaves
	// out comes last.
	Route func(layer, tokens int, ids []int32, weights []float32)
	// Layer learns of the end of every layer.
	Layer func(layer, tokens int)
	// Residual learns of the residual stream after every layer, [tokens x width]. It
	// costs a task of the pool: otherwise the next block adds what the last computed.
	Residual func(layer int, x []float32)
	// Step learns of the end of every step of a pass: what it was, and its layer, -1
	// for what is of none. It is for whoever times them.
	Step func(layer int, op string)
}

// Watch has an observer told from now on. It is called between passes.
func (c *Compute) Watch(o *Observer) { c.observers = append(c.observers, o) }

// Unwatch ends that.
func (c *Compute) Unwatch(o *Observer) {
	c.observers = slices.DeleteFunc(c.observers, func(have *Observer) bool { return have == o })
}

// routed tells of a layer's routing.
func (c *Compute) routed(layer, tokens int, ids []int32, weights []float32) {
	for _, o := range c.observers {
		if o.Route != nil {
			o.Route(layer, tokens, ids, weights)
		}
	}
}

// layered tells of a layer's end.
func (s *stream) layered(layer int) {
	for _, o := range s.observers {
		if o.Layer != nil {
			o.Layer(layer, s.n)
		}
		if o.Residual != nil {
			s.settle()
			o.Residual(layer, s.x[:s.n*s.width()])
		}
	}
}

// stepped tells of a step's end.
func (c *Compute) stepped(layer int, op string) {
	for _, o := range c.observers {
		if o.Step != nil {
			o.Step(layer, op)
		}
	}
}

// builder makes an architecture from a file's header. The weights' data is
// bound later, through the registry.
type builder func(l *loader) (Arch, error)

// family is an architecture that is known.
type family struct {
	models string // names that people know some of its models by
	build  builder
}

var families = map[string]family{}

// register adds an architecture under its GGUF name; each family's file calls
// it from init. models are names that people know some of its models by.
func register(name, models string, b builder) { families[name] = family{models, b} }

// Archs returns the names of the known architectures, sorted.
func Archs() []string {
	return slices.Sorted(maps.Keys(families))
}

// Models returns names that people know some models of an architecture by.
func Models(arch string) string { return families[arch].models }

// Build returns the model that a GGUF header describes, and the registry of its
// weights, whose data is still to be bound. used is how many experts a token gets;
// 0 leaves it to the file.
func Build(f *gguf.File, used int) (Arch, *Registry, error) {
	path := f.Shards[0].Path
	name, err := f.Meta.String("general.architecture")
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	known, ok := families[name]
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("%s: unknown architecture %q; known: %s", path, name, strings.Join(Archs(), ", "))
	case len(f.Tensors) == 0:
		return nil, nil, fmt.Errorf("%s: holds a vocabulary but no weights: its tokenizer and its chat template are all that can be used", path)
	}
	l := &loader{file: f, prefix: name + ".", reg: &Registry{}, topK: used}
	a, err := known.build(l)
	if err == nil {
		err = l.err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if l.reg.Unused, err = l.unused(a.Info().Layers); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, l.reg, nil
}
