// Package expert brings routed experts into memory at the moment they are
// needed: the slots, the cache and the streamer that fills it.
package expert

import (
	"fmt"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
)

// MaxProjections is the most matrices that one expert can consist of: gate, up
// and down (a fused gate-up counts as one).
const MaxProjections = 3

// Projection is one matrix of every expert of a layer, as it lies in a file:
// expert e's part is the Bytes bytes at Offset + e*Bytes.
type Projection struct {
	Name   string // of the tensor
	File   int    // index of the shard
	Offset int64
	Bytes  int64 // of one expert
}

// Layout says where the routed experts of a model lie. A layer's projections
// stand in the order in which they are computed: the last works on what the
// others made.
type Layout struct {
	Experts int            // of a layer
	Used    int            // of them, routed to by a token
	Layers  [][]Projection // by layer; empty for a layer without routed experts
}

// Shape returns what policies and budgets need to know of the layout: of each
// layer the bytes of an expert, and the bytes of a slot that can hold any of
// them as the aligned windows that the files are read by.
func (l Layout) Shape(files *flashio.Files) (policy.Shape, error) {
	s := policy.Shape{Experts: l.Experts, Used: l.Used, Bytes: make([]int64, len(l.Layers)), Slots: make([]int64, len(l.Layers))}
	for layer, projections := range l.Layers {
		if len(projections) > MaxProjections {
			return s, fmt.Errorf("layer %d: an expert of %d matrices, the most is %d", layer, len(projections), MaxProjections)
		}
		for _, proj := range projections {
			n, err := l.window(files, proj)
			if err != nil {
				return s, err
			}
			s.Bytes[layer] += proj.Bytes
			s.Slots[layer] += int64(n)
		}
	}
	s.Level()
	return s, nil
}

// window returns the length of the largest window of a projection: how far one
// reaches beyond the expert depends on where the expert lies in the file.
func (l Layout) window(files *flashio.Files, proj Projection) (largest int, err error) {
	for e := range l.Experts {
		w, err := files.Window(proj.File, proj.Offset+int64(e)*proj.Bytes, proj.Bytes)
		if err != nil {
			return 0, fmt.Errorf("%s, expert %d: %w", proj.Name, e, err)
		}
		largest = max(largest, w.Length)
	}
	return largest, nil
}

// starts returns where in a slot the windows of each layer begin.
func (l Layout) starts(files *flashio.Files) ([][MaxProjections]int, error) {
	starts := make([][MaxProjections]int, len(l.Layers))
	for layer, projections := range l.Layers {
		at := 0
		for p, proj := range projections {
			starts[layer][p] = at
			n, err := l.window(files, proj)
			if err != nil {
				return nil, err
			}
			at += n
		}
	}
	return starts, nil
}
