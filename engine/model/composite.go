package model

// partSpecs is the shape of a block's memory that has parts of several kinds. The
// state keeps each as a layer's, because each goes back in its own way; the block
// gets them together, as parts.
type partSpecs struct {
	layerSpec // none: a state opens the parts
	list      []layerSpec
}

// parts is the memory of such a block.
type parts struct {
	layerState // none
	list       []layerState
}

// flatten returns the specs of all parts, and for each spec how many parts it has.
func flatten(specs []layerSpec) (flat []layerSpec, counts []int) {
	for _, s := range specs {
		list := []layerSpec{s}
		if p, ok := s.(partSpecs); ok {
			list = p.list
		}
		flat, counts = append(flat, list...), append(counts, len(list))
	}
	return flat, counts
}

// views returns the memory of each block, as counts say.
func views(layers []layerState, counts []int) []layerState {
	var all []layerState
	for _, n := range counts {
		if n == 1 {
			all = append(all, layers[0])
		} else {
			all = append(all, &parts{list: layers[:n:n]})
		}
		layers = layers[n:]
	}
	return all
}
