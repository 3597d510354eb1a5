package expert

import (
	"math"

	"bmoe/engine/expert/policy"
	"bmoe/flashio"
	"bmoe/internal/units"
	"bmoe/profile"
)

// links writes down how each expert came that a single token missed. The streamer's
// mu guards what reads fill in.
type links struct {
	census *census // who was evicted when
	asked  int64   // when the batch's misses were asked for; 0: they are not written down
	behind int     // of the batch's misses so far, those that had reads to wait for
	misses []profile.Miss
	single bool // the pass is of one token
}

func (l *links) init(s policy.Shape, c *census) {
	l.census = c
	n := 0
	for _, b := range s.Bytes {
		if b > 0 {
			n += s.Used
		}
	}
	l.misses = make([]profile.Miss, 0, n)
}

// pass begins a pass over n tokens.
func (l *links) pass(n int) {
	l.misses, l.single = l.misses[:0], n == 1
}

// batch begins another layer.
func (l *links) batch() { l.asked, l.behind = 0, 0 }

// missed writes down an expert for which the batch has a slot now.
func (l *links) missed(sl *slot) {
	if sl.link = -1; !l.single || len(l.misses) == cap(l.misses) {
		return
	}
	layer := l.census.shape.Layer(sl.key)
	m := profile.Miss{Layer: uint16(layer), Expert: uint16(sl.key - l.census.shape.Key(layer, 0)), Away: profile.NeverThere,
		Behind: uint8(min(l.behind, math.MaxUint8)), Early: !sl.user.fresh}
	if age, ok := l.census.goneFor(sl.key); ok {
		m.Away = uint16(min(age, profile.LongAway))
	}
	if !sl.arrived() {
		l.behind++
		sl.link = int32(len(l.misses))
	}
	l.misses = append(l.misses, m)
}

// read fills in a read that has arrived.
func (l *links) read(sl *slot, r *flashio.Request) {
	m := &l.misses[sl.link]
	micros := func(ns int64) uint32 { return uint32(min(max(ns, 0)/units.Microsecond, math.MaxUint32)) }
	m.Drive = max(m.Drive, micros(r.Ended-r.Started))
	m.Wait = max(m.Wait, micros(r.Ended-l.asked))
}

// Misses returns how each expert came that the latest pass missed, if it was over a
// single token. They are valid until the next pass; no batch may be open.
func (s *Streamer) Misses() []profile.Miss { return s.links.misses }
