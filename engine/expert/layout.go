// Package expert brings routed experts into memory at the moment they are
// needed: the slot arena, the cache and the streamer that fills it.
package expert

import (
	"fmt"
	"os"
	"slices"

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

// Layout says where the routed experts of a model lie.
type Layout struct {
	Experts int            // of a layer
	Used    int            // of them, routed to by a token
	Layers  [][]Projection // by layer; empty for a layer without routed experts
}

// Shape returns what policies need to know of the layout. An expert's size is
// the sum of its projections, without the rounding of windows.
func (l Layout) Shape() policy.Shape {
	s := policy.Shape{Experts: l.Experts, Used: l.Used, Bytes: make([]int64, len(l.Layers))}
	for i, projections := range l.Layers {
		for _, p := range projections {
			s.Bytes[i] += p.Bytes
		}
	}
	return s
}

// slots is how experts lie in cache slots. All slots have one size, that of
// the largest expert's windows, so that any slot can take any expert.
type slots struct {
	bytes int                   // of one slot, aligned
	start [][MaxProjections]int // by layer: where a projection's window begins in a slot
}

// layOut computes the slots for a layout. Each projection's place in a slot
// fits the largest of its windows, since how far a window reaches beyond the
// expert depends on where the expert lies in the file.
func layOut(l Layout, files *flashio.Files) (slots, error) {
	s := slots{start: make([][MaxProjections]int, len(l.Layers))}
	for layer, projections := range l.Layers {
		if len(projections) > MaxProjections {
			return s, fmt.Errorf("layer %d: an expert of %d matrices, the most is %d", layer, len(projections), MaxProjections)
		}
		at := 0
		for p, proj := range projections {
			largest := 0
			for e := range l.Experts {
				w, err := files.Window(proj.File, proj.Offset+int64(e)*proj.Bytes, proj.Bytes)
				if err != nil {
					return s, fmt.Errorf("%s, expert %d: %w", proj.Name, e, err)
				}
				largest = max(largest, w.Length)
			}
			s.start[layer][p] = at
			at += largest
		}
		s.bytes = max(s.bytes, at)
	}
	// Slots are committed one by one, in whole pages.
	page := os.Getpagesize()
	s.bytes = (s.bytes + page - 1) / page * page
	return s, nil
}

// most returns how many experts a budget can hold at once: as many as fit when
// the smallest are taken first.
func most(s policy.Shape, budget int64) int {
	sizes := slices.Clone(s.Bytes)
	slices.Sort(sizes)
	n := 0
	for _, b := range sizes {
		if b == 0 {
			continue
		}
		fit := min(budget/b, int64(s.Experts))
		n += int(fit)
		budget -= fit * b
	}
	return n
}
