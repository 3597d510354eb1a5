package model

import "bmoe/engine/kernel/vec"

// convolution is a causal one over the positions, for each channel on its own. What
// comes before the sequence is zeros.
type convolution struct {
	taps, channels int
	apart          int       // positions from one tap to the next
	weights        []*Weight // [taps x channels], one after the other
	bias           *Weight   // [channels]; nil: none

	byTap []float32 // the weights, [channels x taps]: the oldest position first
}

func (c *convolution) bytes() int64 { return int64(len(c.byTap)) * 4 }

// convolution returns one whose channels are those of the named tensors.
func (l *loader) convolution(taps int, channels int, names ...string) convolution {
	c := convolution{taps: taps, channels: channels * len(names), apart: 1}
	for _, name := range names {
		// Converters leave dimensions of 1 between and behind the two that matter.
		dims := []int{taps, channels}
		if t, ok := l.file.Tensor(name); ok && len(t.Dims) > 2 {
			dims = dims[:1]
			for _, d := range t.Dims[1:] {
				if d == 1 {
					dims = append(dims, 1)
				} else {
					dims = append(dims, channels)
				}
			}
		}
		c.weights = append(c.weights, l.numbers(name, dims...))
	}
	return c
}

// prepare turns the weights, so that channels lie together.
func (c *convolution) prepare(s *stream) error {
	_, err := share(s, c, func() (*convolution, error) {
		c.byTap = make([]float32, c.taps*c.channels)
		from := 0
		for _, w := range c.weights {
			n := len(w.F32) / c.taps
			for ch := range n {
				for i := range c.taps {
					c.byTap[i*c.channels+from+ch] = w.F32[ch*c.taps+i]
				}
			}
			from += n
		}
		return c, nil
	})
	return err
}

// run replaces channels c0 to c1-1 of the batch's rows, u [n x stride] of which the
// first is at position pos, by the convolution, and keeps those of its input that
// the next batch needs. tmp is scratch of room floats.
func (c *convolution) run(u []float32, stride, n, pos int, mem *recurrentLayer, c0, c1 int, tmp []float32) {
	w := c1 - c0
	sum, kept := tmp[:w], tmp[w:]
	keep := min(n, c.rows())
	for i := range keep {
		copy(kept[i*w:][:w], u[(n-keep+i)*stride+c0:])
	}
	// From the last to the first: a row's place is free once all later ones are done.
	for t := n - 1; t >= 0; t-- {
		if c.bias != nil {
			copy(sum, c.bias.F32[c0:c1])
		} else {
			clear(sum)
		}
		for i := range c.taps {
			var row []float32
			if at := t - (c.taps-1-i)*c.apart; at >= 0 {
				row = u[at*stride+c0:][:w]
			} else {
				row = mem.row(pos + at)[c0:c1]
			}
			vec.AddProducts(sum, row, c.byTap[i*c.channels+c0:][:w])
		}
		copy(u[t*stride+c0:], sum)
	}
	for i := range keep {
		copy(mem.row(pos + n - keep + i)[c0:c1], kept[i*w:][:w])
	}
}

// rows returns how many rows of its input the convolution must remember.
func (c *convolution) rows() int { return (c.taps - 1) * c.apart }

// room returns how much scratch run wants for so many channels.
func (c *convolution) room(channels int) int { return (c.rows() + 1) * channels }
