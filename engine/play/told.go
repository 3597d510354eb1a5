package play

import (
	"encoding/binary"

	"bmoe/profile"
)

// told is what a token's frame tells of experts: after a prompt all of those of which
// anything is known, after any other token those that were given up for it.
type told struct {
	all   bool
	token int32 // with all: ExpertMap.Token
	cells []toldCell
}

type toldCell struct {
	at int // of ExpertMap.Cells
	profile.ExpertCell
}

// of fills in what a frame is to tell of the map now, given that of the token before. What
// it returns is valid until the next call.
func (t *told) of(now, before *profile.ExpertMap, all bool) *told {
	t.all, t.token, t.cells = all, now.Token, t.cells[:0]
	for i := range now.Cells {
		c := &now.Cells[i]
		if all && *c != (profile.ExpertCell{By: -1}) || !all && i < len(before.Cells) && c.Gone != before.Cells[i].Gone {
			t.cells = append(t.cells, toldCell{i, *c})
		}
	}
	return t
}

func (t *told) append(b []byte) []byte {
	b = append(b, boolByte(t.all))
	if t.all {
		b = binary.AppendUvarint(b, uint64(uint32(t.token)))
	}
	b = binary.AppendUvarint(b, uint64(len(t.cells)))
	last := 0
	for i := range t.cells {
		c := &t.cells[i]
		b = binary.AppendUvarint(b, uint64(c.at-last))
		last = c.at
		b = append(b, c.Why, byte(c.State))
		b = binary.AppendUvarint(b, uint64(uint32(c.By+1)))
		if t.all {
			for _, at := range []int32{c.Used, c.Read, c.Gone, c.Guessed} {
				b = binary.AppendUvarint(b, uint64(uint32(at)))
			}
			b = binary.AppendUvarint(b, uint64(uint32(c.Uses)))
			b = binary.AppendUvarint(b, uint64(uint32(c.Reads)))
		}
	}
	return b
}

// readTold parses what append wrote.
func readTold(in *input) *told {
	const most = 1<<31 - 1
	t := &told{all: in.byte() != 0}
	if t.all {
		t.token = int32(in.number(most))
	}
	t.cells = make([]toldCell, min(in.number(mostCells), len(in.b)))
	last := 0
	for i := range t.cells {
		c := &t.cells[i]
		last += in.number(mostCells)
		c.at = last
		c.Why, c.State = in.byte(), profile.ExpertState(in.byte())
		if c.State > profile.Ahead {
			c.State = profile.Absent
		}
		c.By = int32(in.number(mostCells)) - 1
		if t.all {
			for _, at := range []*int32{&c.Used, &c.Read, &c.Gone, &c.Guessed, &c.Uses, &c.Reads} {
				*at = int32(in.number(most))
			}
		}
	}
	return t
}
