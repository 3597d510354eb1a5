package replay

import (
	"io"
	"math/bits"
	"slices"

	"bmoe/profile/trace"
)

// Analysis is what a trace says of its routes, whatever the cache. Shares are 0 to 1
// and of the answers' tokens; not measured is left out.
type Analysis struct {
	Tokens   int   `json:"tokens"`   // decoded
	Distinct []int `json:"distinct"` // by layer: experts that any token used, prompts included
	// Hot is the share of lookups that go to the experts which are used most, a layer
	// at a time: as many of them as one token needs, twice as many, four times.
	Hot [3]float64 `json:"hot"`
	// Overlap is the share of a token's experts that the token so many before it used
	// too: 1, 2, 4, 8 tokens.
	Overlap [4]float64 `json:"overlap"`
	// Adjacent is the share of a layer's experts whose number is one above another's of
	// the same token: reads that could be one.
	Adjacent float64 `json:"adjacent"`
	// Union is how many experts 1 to 4 tokens in a row use together, in multiples of
	// what one uses.
	Union [4]float64 `json:"union"`
	// Reuse is the share of lookups whose expert was used last so many tokens before:
	// 1, 2, up to 4, 8, 16, 32, 64, more, never.
	Reuse [9]float64 `json:"reuse"`
}

// ReuseBounds name the parts of Analysis.Reuse.
var ReuseBounds = [...]string{"1", "2", "3-4", "5-8", "9-16", "17-32", "33-64", "65+", "never"}

// overlapLags are the distances of Analysis.Overlap.
var overlapLags = [...]int{1, 2, 4, 8}

// mostLag is how many earlier tokens are kept.
const mostLag = 8

// analyzer gathers an Analysis. A set of experts is a bit for each.
type analyzer struct {
	head   *trace.RouteHead
	words  int        // of a layer's set
	last   [][]uint64 // a ring of the last tokens' sets, all layers one after the other
	uses   []int      // by key, of answers
	ever   []bool
	used   []int // by key: token of the last use, from 1; prompt tokens count
	now    int   // tokens so far
	tokens int

	lookups, adjacent int
	same, compared    [4]int
	united, asked     [4]int
	reuse             [9]int
	token             int
}

// Analyze reads a trace to its end.
func Analyze(in io.Reader) (*trace.RouteHead, *Analysis, error) {
	rows, err := trace.NewRouteRows(in)
	if err != nil {
		return nil, nil, err
	}
	keys := len(rows.Layers) * rows.Experts
	a := &analyzer{head: &rows.RouteHead, words: (rows.Experts + 63) / 64, uses: make([]int, keys), ever: make([]bool, keys), used: make([]int, keys), token: -1}
	for range mostLag + 1 {
		a.last = append(a.last, make([]uint64, len(rows.Layers)*a.words))
	}
	if err := Batches(rows, a.batch); err != nil {
		return nil, nil, err
	}
	return a.head, a.end(), nil
}

func (a *analyzer) set(lag, place int) []uint64 {
	return a.last[(a.tokens+len(a.last)*mostLag-lag)%len(a.last)][place*a.words:][:a.words]
}

func (a *analyzer) batch(b *Batch) error {
	base := Key(b.Place * a.head.Experts)
	if !b.Decode {
		if b.Place == 0 {
			a.now += b.Tokens
		}
		for i, k := range b.Touches {
			a.ever[k] = true
			a.used[k] = a.now - b.Tokens + 1 + i/a.head.Used
		}
		return nil
	}
	if b.Token != a.token {
		a.token = b.Token
		a.tokens++
		a.now++
	}
	mine := a.set(0, b.Place)
	clear(mine)
	for _, k := range b.Distinct() {
		a.lookups++
		a.uses[k]++
		a.reuse[reusePart(a.now, a.used[k], a.ever[k])]++
		a.ever[k], a.used[k] = true, a.now
		e := k - base
		mine[e/64] |= 1 << (e % 64)
	}
	for _, k := range b.Distinct() {
		if e := k - base; e > 0 && mine[(e-1)/64]&(1<<((e-1)%64)) != 0 {
			a.adjacent++
		}
	}
	n := len(b.Distinct())
	for i, lag := range overlapLags {
		if a.tokens > lag {
			a.compared[i] += n
			a.same[i] += count(mine, a.set(lag, b.Place), func(x, y uint64) uint64 { return x & y })
		}
	}
	union := slices.Clone(mine)
	for i := range a.united {
		if i > 0 {
			if a.tokens <= i {
				break
			}
			for w, bits := range a.set(i, b.Place) {
				union[w] |= bits
			}
		}
		a.asked[i] += n
		a.united[i] += count(union, union, func(x, _ uint64) uint64 { return x })
	}
	return nil
}

func count(x, y []uint64, both func(x, y uint64) uint64) (n int) {
	for i := range x {
		n += bits.OnesCount64(both(x[i], y[i]))
	}
	return n
}

// reusePart returns the part of Analysis.Reuse that a lookup belongs to.
func reusePart(now, last int, ever bool) int {
	age := now - last
	switch {
	case !ever:
		return 8
	case age > 64:
		return 7
	case age <= 1:
		return 0
	}
	return bits.Len(uint(age - 1))
}

func (a *analyzer) end() *Analysis {
	share := func(n, of int) float64 { return float64(n) / float64(max(of, 1)) }
	out := &Analysis{Tokens: a.tokens, Adjacent: share(a.adjacent, a.lookups)}
	for place := range a.head.Layers {
		uses := slices.Clone(a.uses[place*a.head.Experts:][:a.head.Experts])
		distinct := 0
		for _, used := range a.ever[place*a.head.Experts:][:a.head.Experts] {
			if used {
				distinct++
			}
		}
		out.Distinct = append(out.Distinct, distinct)
		slices.SortFunc(uses, func(x, y int) int { return y - x })
		for i := range out.Hot {
			for _, n := range uses[:min(a.head.Used<<i, len(uses))] {
				out.Hot[i] += share(n, a.lookups)
			}
		}
	}
	for i := range out.Overlap {
		out.Overlap[i] = share(a.same[i], a.compared[i])
		out.Union[i] = share(a.united[i], a.asked[i])
	}
	for i, n := range a.reuse {
		out.Reuse[i] = share(n, a.lookups)
	}
	return out
}
