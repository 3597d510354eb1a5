// Package replay runs cache policies over recorded routes: what each would have
// hit and read at any budget, without a model and without a drive.
package replay

import (
	"fmt"
	"io"

	"bmoe/profile/trace"
)

// Key names one expert: the place of its layer among those with routed experts,
// times experts of a layer, plus its number.
type Key = int32

// Batch is what one layer was asked for at once: all tokens of a piece of a prompt,
// or one token of an answer.
type Batch struct {
	Turn, Step int
	Decode     bool
	Token      int // of all decoded tokens of the trace, from 0; -1 in a prompt
	Place      int // of the layer
	Tokens     int
	ID         int32 // of a decoded token; -1: not recorded
	Touches    []Key // [tokens x used], token-major, in rank order
	Emptied    bool  // the cache was emptied before
	Misses     int   // touches that the recording engine had to read; -1: not recorded
	distinct   []Key
}

// Distinct returns the experts of the batch, each once, in the order of first touch.
func (b *Batch) Distinct() []Key { return b.distinct }

// Batches reads a trace to its end and tells of every batch, in order. What it tells
// of is valid during the call only.
func Batches(rows *trace.RouteRows, each func(*Batch) error) error {
	g := &grouper{each: each, seen: make([]int, len(rows.Layers)*rows.Experts)}
	g.b.Token = -1
	decoded, passes, emptied := -1, 0, 0
	var last trace.RouteRow
	for n := 0; ; n++ {
		var row trace.RouteRow
		err := rows.Next(&row)
		if err == io.EOF {
			return g.flush()
		}
		if err != nil {
			return err
		}
		if n > 0 && rows.Passes == passes {
			if err := ordered(rows, &last, &row); err != nil {
				return fmt.Errorf("line %d: %w", rows.Line(), err)
			}
		}
		token := n == 0 || row.Turn != last.Turn || row.Phase != last.Phase || row.Step != last.Step
		if n == 0 || row.Turn != last.Turn || row.Phase != last.Phase || row.Place != last.Place || row.Phase == 1 && token || rows.Passes != passes {
			if err := g.flush(); err != nil {
				return err
			}
			if row.Phase == 1 && token {
				decoded++
			}
			g.b.Turn, g.b.Step, g.b.Decode, g.b.Place, g.b.ID = row.Turn, row.Step, row.Phase == 1, row.Place, row.TokenID
			if g.b.Token = -1; g.b.Decode {
				g.b.Token = decoded
			}
			g.b.Tokens = 1
			g.b.Emptied = rows.Emptied != emptied
			passes, emptied = rows.Passes, rows.Emptied
		} else if token {
			g.b.Tokens++
		}
		if last = row; row.Dropped {
			continue // nobody asked for it
		}
		if row.Rank != 0 && len(g.b.Touches)%rows.Used != row.Rank || row.Rank == 0 && len(g.b.Touches)%rows.Used != 0 {
			return fmt.Errorf("line %d: turn %d, step %d, layer %d: slot %d is out of order: rows of one token and layer must stand together", rows.Line(), row.Turn, row.Step, rows.Layers[row.Place], row.Rank)
		}
		if len(g.b.Touches) == mostTouches {
			return fmt.Errorf("line %d: turn %d, layer %d: more than %d rows of one batch", rows.Line(), row.Turn, rows.Layers[row.Place], mostTouches)
		}
		g.touch(Key(row.Place*rows.Experts+row.Expert), row.Residency)
	}
}

// mostTouches bounds what is gathered of one batch.
const mostTouches = 1 << 24

// ordered refuses a row that comes twice, or before the one that it follows.
func ordered(rows *trace.RouteRows, last, row *trace.RouteRow) error {
	behind := func(what string, n, than int) error {
		return fmt.Errorf("turn %d, step %d, layer %d, slot %d: %s %d comes after %s %d: rows are missing their order", row.Turn, row.Step, rows.Layers[row.Place], row.Rank, what, n, what, than)
	}
	switch {
	case row.Turn < last.Turn:
		return behind("turn", row.Turn, last.Turn)
	case row.Turn > last.Turn:
	case row.Phase < last.Phase:
		return behind("phase", row.Phase, last.Phase)
	case row.Phase > last.Phase:
	case row.Step < last.Step && (row.Phase == 1 || row.Place == last.Place):
		return behind("step", row.Step, last.Step)
	case row.Step == last.Step && row.Place < last.Place:
		return behind("layer", rows.Layers[row.Place], rows.Layers[last.Place])
	case row.Step == last.Step && row.Place == last.Place && row.Rank <= last.Rank:
		return fmt.Errorf("turn %d, step %d, layer %d, slot %d comes twice, or out of order", row.Turn, row.Step, rows.Layers[row.Place], row.Rank)
	}
	return nil
}

// grouper gathers the rows of a batch.
type grouper struct {
	each func(*Batch) error
	b    Batch
	seen []int // by key: number of the batch that touched it last
	n    int
}

func (g *grouper) touch(k Key, residency int) {
	if len(g.b.Touches) == 0 {
		g.n++
		g.b.Misses = 0
	}
	g.b.Touches = append(g.b.Touches, k)
	if g.seen[k] != g.n {
		g.seen[k] = g.n
		g.b.distinct = append(g.b.distinct, k)
		if residency != 1 { // what was read ahead is a miss whose bytes came early
			g.b.Misses++
		}
	}
	if residency < 0 {
		g.b.Misses = -1 << 30
	}
}

func (g *grouper) flush() error {
	if len(g.b.Touches) == 0 {
		return nil
	}
	g.b.Misses = max(g.b.Misses, -1)
	err := g.each(&g.b)
	g.b.Touches, g.b.distinct = g.b.Touches[:0], g.b.distinct[:0]
	return err
}
