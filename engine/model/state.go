package model

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"bmoe/engine/kernel/attn"
	"bmoe/flashio"
	"bmoe/internal/units"
)

// State is what a model remembers of a sequence.
type State interface {
	// Len returns the number of positions in the state. A Forward that failed or
	// was cancelled leaves it as it was, but dirty: the next call must be Rewind.
	Len() int
	// Cap returns the number of positions that it has room for.
	Cap() int
	// Mark makes n a length that Rewind can go back to: the present one at once, a
	// later one when a Forward comes by it, and a Rewind forgets those that are to
	// come. Only a few marks are kept: the first one, at the end of what chats have
	// in common, and the newest. On a dirty state it is an error.
	Mark(n int) error
	// Rewind forgets the positions from n on, or from the nearest mark before n
	// where a layer cannot forget so few, and returns the length that is left.
	// The empty state is always within reach.
	Rewind(n int) (reached int, err error)
	// Marks tells what marks there are.
	Marks() Marks
	// Bytes returns the memory of a full state, its marks included.
	Bytes() int64
	// Save writes the state and its marks. Load takes it back into a state of the
	// same model and KV type with room for it, whatever was in it before. After
	// an error of Load the state is empty. That what is loaded belongs to this
	// model is the caller's to know; only sizes are checked, and that nothing was
	// damaged. On a dirty state Save is an error.
	Save(w io.Writer) error
	Load(r io.Reader) error
	Close() error
}

// Marks says how many marks a state keeps.
type Marks struct {
	Kept  int
	Most  int   // 0 where no layer needs marks: every length can be reached
	Bytes int64 // of all that may be kept
}

const (
	mostMarks = 4
	// markMemory bounds what marks take. One mark of a hybrid of 35 billion
	// parameters is about 63 MB.
	markMemory = 256 * units.MiB
)

// layerState is what one layer remembers of a sequence. A layer with keys of
// every position can go back to any of them. A recurrent layer has only its
// latest state, and a windowed layer only the keys of its window: they go back to
// marks.
type layerState interface {
	// reaches reports whether truncate(n) is possible without a mark; n is at
	// most what the layer has seen. It is true of 0 for every layer.
	reaches(n int) bool
	// truncate forgets the positions from n on.
	truncate(n int)
	// markBytes returns the size of what a mark keeps of the layer, at most: 0 if
	// it reaches every length. It does not change.
	markBytes() int
	// savedBytes returns the size of what save copies at length n. Of a layer
	// that needs marks it is at most markBytes.
	savedBytes(n int) int
	// save copies to dst all that load needs to bring the layer, or one of the same
	// shape, to its present length n.
	save(dst []byte)
	load(src []byte, n int)
}

// layerSpec is the shape of a layer's memory.
type layerSpec interface {
	// Bytes returns the memory of a full layer.
	Bytes() (int64, error)
	// open makes the layer's empty state in zeroed memory of that size.
	open(mem []byte) (layerState, error)
}

// state is the State of all families: a layerState for each layer.
type state struct {
	layers []layerState
	views  []layerState   // what each block remembers: a layer, or several as parts
	counts []int          // of each view, how many layers it is
	memory *flashio.Arena // off the Go heap; pages are touched as positions reach them
	n, cap int
	dirty  bool // a Forward has begun that has not ended well

	marks      []mark         // in the order of their positions
	planned    []int          // lengths to come that are to be marked, in order
	taking     []mark         // those that the Forward in progress comes by
	free       [][]byte       // pieces of markMemory for more marks
	markMemory *flashio.Arena // mostMarks pieces of markBytes; nil if no layer needs marks
	markBytes  int            // of one mark, all layers
	mostMarks  int
}

// mark is a captured state.
type mark struct {
	n     int
	bytes []byte // a piece of markMemory
}

// newState returns an empty state with room for n positions, of blocks that remember
// what specs say.
func newState(n int, specs []layerSpec) (_ *state, err error) {
	s := &state{cap: n}
	specs, s.counts = flatten(specs)
	defer func() {
		if err != nil {
			s.Close() // the error that matters is the first
		}
	}()
	total := 0
	sizes := make([]int, len(specs))
	for i, spec := range specs {
		size, err := spec.Bytes()
		if err != nil {
			return nil, err
		}
		sizes[i] = align(int(size))
		total += sizes[i]
	}
	if s.memory, err = flashio.NewArena(total); err != nil {
		return nil, fmt.Errorf("KV cache for %d positions: %w", n, err)
	}
	rest := s.memory.Bytes()
	for i, spec := range specs {
		l, err := spec.open(rest[:sizes[i]:sizes[i]])
		if err != nil {
			return nil, err
		}
		rest = rest[sizes[i]:]
		s.layers = append(s.layers, l)
		s.markBytes += align(l.markBytes())
	}
	s.views = views(s.layers, s.counts)
	if s.markBytes > 0 {
		// One mark is kept whatever it takes: without any, each turn of a chat
		// would compute the whole of it again.
		s.mostMarks = max(1, min(mostMarks, markMemory/s.markBytes))
		if s.markMemory, err = flashio.NewArena(s.mostMarks * s.markBytes); err != nil {
			return nil, fmt.Errorf("marks of the KV cache: %w", err)
		}
		for i := range s.mostMarks {
			s.free = append(s.free, s.markMemory.Bytes()[i*s.markBytes:][:s.markBytes])
		}
	}
	return s, nil
}

// align rounds a size up to whole cache lines.
func align(n int) int { return (n + 63) &^ 63 }

func (s *state) Len() int { return s.n }
func (s *state) Cap() int { return s.cap }

func (s *state) Marks() Marks {
	return Marks{Kept: len(s.marks), Most: s.mostMarks, Bytes: int64(s.mostMarks) * int64(s.markBytes)}
}

func (s *state) Bytes() int64 {
	n := int64(s.memory.Len())
	if s.markMemory != nil {
		n += int64(s.markMemory.Len())
	}
	return n
}

var errDirty = errors.New("the state is dirty: a forward pass failed, and it was not rewound since")

// begin starts a Forward of n ids and returns the position of the first.
func (s *state) begin(n int) (pos int, err error) {
	switch {
	case s.dirty:
		return 0, errDirty
	case n > s.cap-s.n:
		return 0, fmt.Errorf("%d positions after %d exceed the state's room for %d", n, s.n, s.cap)
	}
	for len(s.planned) > 0 && s.planned[0] <= s.n+n {
		s.taking = append(s.taking, mark{n: s.planned[0], bytes: s.freeMark()})
		s.planned = s.planned[1:]
	}
	s.dirty = true
	return s.n, nil
}

// commit ends a Forward that went well.
func (s *state) commit(n int) {
	s.n, s.dirty = s.n+n, false
	s.marks, s.taking = append(s.marks, s.taking...), s.taking[:0]
}

// cuts reports whether a block must stop at the marks that are being taken, since
// some of its view is not there any more when it has gone on.
func (s *state) cuts(view int) bool {
	if len(s.taking) == 0 {
		return false
	}
	first := s.first(view)
	return slices.ContainsFunc(s.layers[first:first+s.counts[view]], func(l layerState) bool { return l.markBytes() > 0 })
}

// first returns the number of the first layer of a view.
func (s *state) first(view int) (n int) {
	for _, c := range s.counts[:view] {
		n += c
	}
	return n
}

// take saves a view, whose block has come to the length of m, in m.
func (s *state) take(view int, m mark) {
	first, rest := s.first(view), m.bytes
	for i, l := range s.layers[:first+s.counts[view]] {
		size := l.markBytes()
		if i >= first {
			l.save(rest[:size])
		}
		rest = rest[align(size):]
	}
}

func (s *state) Mark(n int) error {
	switch {
	case s.dirty:
		return errDirty
	case n < s.n || n > s.cap:
		return fmt.Errorf("mark length %d of a state of %d positions with room for %d", n, s.n, s.cap)
	case s.mostMarks == 0 || n == 0:
		return nil // within reach without
	case n > s.n:
		if i, have := slices.BinarySearch(s.planned, n); !have {
			s.planned = slices.Insert(s.planned, i, n)
		}
		return nil
	case len(s.marks) > 0 && s.marks[len(s.marks)-1].n == s.n:
		return nil
	}
	m := mark{n: s.n, bytes: s.freeMark()}
	for view := range s.counts {
		s.take(view, m)
	}
	s.marks = append(s.marks, m)
	return nil
}

// freeMark returns the memory for one more mark. If there is none left, the
// oldest gives way but for the first, which is what chats have in common.
func (s *state) freeMark() []byte {
	if last := len(s.free) - 1; last >= 0 {
		b := s.free[last]
		s.free = s.free[:last]
		return b
	}
	list, at := &s.marks, min(1, s.mostMarks-1)
	if at >= len(s.marks) { // the others are being taken
		list, at = &s.taking, at-len(s.marks)
	}
	b := (*list)[at].bytes
	*list = slices.Delete(*list, at, at+1)
	return b
}

func (s *state) Rewind(n int) (reached int, err error) {
	if n < 0 || n > s.n {
		return s.n, fmt.Errorf("rewind a state of %d positions to %d", s.n, n)
	}
	s.planned = s.planned[:0]
	for _, m := range s.taking { // by a Forward that failed
		s.free = append(s.free, m.bytes)
	}
	s.taking = s.taking[:0]
	if n == s.n && !s.dirty {
		return n, nil
	}
	// Marks behind n are of what is forgotten.
	for last := len(s.marks) - 1; last >= 0 && s.marks[last].n > n; last-- {
		s.free = append(s.free, s.marks[last].bytes)
		s.marks = s.marks[:last]
	}
	if slices.ContainsFunc(s.layers, func(l layerState) bool { return !l.reaches(n) }) {
		if len(s.marks) > 0 {
			s.restore(s.marks[len(s.marks)-1])
			return s.n, nil
		}
		n = 0
	}
	for _, l := range s.layers {
		l.truncate(n)
	}
	s.n, s.dirty = n, false
	return n, nil
}

// restore brings every layer back to a mark.
func (s *state) restore(m mark) {
	rest := m.bytes
	for _, l := range s.layers {
		size := l.markBytes()
		if size == 0 {
			l.truncate(m.n)
		} else {
			l.load(rest[:size], m.n)
		}
		rest = rest[align(size):]
	}
	s.n, s.dirty = m.n, false
}

func (s *state) Close() error {
	var errs []error
	for _, a := range []*flashio.Arena{s.memory, s.markMemory} {
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	return errors.Join(errs...)
}

// kvSpec is a layer with attention.
type kvSpec struct{ attn.KVSpec }

func (k kvSpec) open(mem []byte) (layerState, error) {
	kv, err := attn.NewKV(k.KVSpec, mem)
	if err != nil {
		return nil, err
	}
	return kvLayer{kv}, nil
}

// kvLayer keeps the keys and values of every position, or of a window: then a
// mark keeps those that the next token sees.
type kvLayer struct{ *attn.KV }

func (k kvLayer) reaches(n int) bool     { return k.Reaches(n) }
func (k kvLayer) truncate(n int)         { k.Truncate(n) }
func (k kvLayer) markBytes() int         { return k.MarkBytes() }
func (k kvLayer) savedBytes(n int) int   { return k.SavedBytes(n) }
func (k kvLayer) save(dst []byte)        { k.Save(dst) }
func (k kvLayer) load(src []byte, n int) { k.Load(src, n) }
