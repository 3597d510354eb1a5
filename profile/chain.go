package profile

import (
	"fmt"
	"math"
	"slices"
	"unsafe"

	"bmoe/internal/units"
)

// Miss is how an expert came that a decoded token needed and the cache did not hold.
type Miss struct {
	Layer, Expert uint16
	Away          uint16 // tokens since it was evicted; see NeverThere, LongAway
	Behind        uint8  // experts whose reads were asked for earlier and not over; 255: as many or more
	Early         bool   // its reads had begun before it was asked for
	Wait          uint32 // µs from when it was asked for until it was there
	Drive         uint32 // µs that its slowest read spent inside the system call
}

// What Away says beside a number of tokens.
const (
	NeverThere = math.MaxUint16     // it had not been in the cache before
	LongAway   = math.MaxUint16 - 1 // so many tokens, or more
)

const (
	// ChainTokens is of how many of the latest tokens misses are kept.
	ChainTokens = 4096
	// chainBytes bounds the memory for them: some 250 misses a token, and fewer tokens
	// where a token has more.
	chainBytes = 16 * units.MiB
	missBytes  = int64(unsafe.Sizeof(Miss{}))
	// chainChunk is by how many misses the memory grows, before a run begins.
	chainChunk = 1 << 14
	mostMisses = chainBytes/missBytes - ChainTokens*16/missBytes
	chainParts = mostMisses / chainChunk
	mostKept   = chainParts * chainChunk
)

// chains keeps the misses of the latest tokens: a ring of misses, and a ring that
// says whose they are. The recorder's mu guards it.
type chains struct {
	misses [chainParts]*[chainChunk]Miss
	tokens []chainToken // ChainTokens of them, made with the first chunk
	count  int64        // misses ever written
}

type chainToken struct {
	first int64 // number of its first miss
	n     int32
	set   bool
}

// reserve takes the memory for n more misses.
func (c *chains) reserve(n int64) {
	if n == 0 {
		return
	}
	if c.tokens == nil {
		c.tokens = make([]chainToken, ChainTokens)
	}
	first := c.count / chainChunk
	for i := first; i <= (c.count+min(n, mostKept))/chainChunk; i++ {
		if part := &c.misses[i%chainParts]; *part == nil {
			*part = new([chainChunk]Miss)
		}
	}
}

// bytes returns the memory that is taken.
func (c *chains) bytes() int64 {
	n := int64(len(c.tokens)) * int64(unsafe.Sizeof(chainToken{}))
	for _, part := range c.misses {
		if part != nil {
			n += chainChunk * missBytes
		}
	}
	return n
}

// add writes down the misses of record number i. Where there is no memory for them,
// as in an answer that is longer than was said, it is not known.
func (c *chains) add(i int64, misses []Miss) {
	if c.tokens == nil {
		return
	}
	t := &c.tokens[i%ChainTokens]
	*t = chainToken{first: c.count}
	for _, m := range misses {
		part := c.misses[c.count/chainChunk%chainParts]
		if part == nil {
			return
		}
		part[c.count%chainChunk] = m
		c.count++
	}
	t.n, t.set = int32(len(misses)), true
}

// get copies the misses of record number i of n, and reports whether they are known.
func (c *chains) get(i, n int64, dst []Miss) (int, bool) {
	if i < 0 || i >= n || i < n-ChainTokens || c.tokens == nil {
		return 0, false
	}
	t := c.tokens[i%ChainTokens]
	if !t.set || t.first < c.count-mostKept {
		return 0, false
	}
	k := min(int(t.n), len(dst))
	for j := range k {
		at := t.first + int64(j)
		dst[j] = c.misses[at/chainChunk%chainParts][at%chainChunk]
	}
	return k, true
}

// Missed hands over the misses of the token that Token records next.
func (r *Recorder) Missed(misses []Miss) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.chains.add(r.live.Count, misses)
}

// Chain copies the misses of record number i, in the order in which they were asked
// for, and returns how many there were; false where they are not known, or no longer.
// See History for the numbers.
func (r *Recorder) Chain(i int64, dst []Miss) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.chains.get(i, r.live.Count, dst)
}

// Bytes returns the memory of all that is kept of tokens.
func (r *Recorder) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.chains.bytes()
	for _, chunk := range r.history {
		if chunk != nil {
			n += chunkTokens * int64(unsafe.Sizeof(Record{}))
		}
	}
	return n
}

// Savings is by how much shorter a token would have waited, ns, each thing alone.
// They are estimates: a token's waiting is shared out among its misses by how long
// each took.
type Savings struct {
	Cache int64 // a cache that had not given up what this token missed
	Lanes int64 // a lane for every read: nothing read behind anything else
	Ahead int64 // all of it read ahead in time
}

// Save returns what would have saved how much of a token's waiting; false where it is
// not known how long that was.
func Save(r *Record, misses []Miss) (Savings, bool) {
	var s Savings
	if !r.Stall.OK {
		return s, false
	}
	var all, gone, queued float64
	for i := range misses {
		m := &misses[i]
		all += float64(m.Wait)
		if m.Away != NeverThere {
			gone += float64(m.Wait)
		}
		if m.Behind > 0 {
			queued += max(0, float64(m.Wait)-float64(m.Drive))
		}
	}
	if all == 0 {
		return s, true
	}
	stall := float64(r.Stall.Value)
	return Savings{Cache: int64(stall * gone / all), Lanes: int64(stall * queued / all), Ahead: r.Stall.Value}, true
}

// String tells of a miss: what happened, and how long it took.
func (m *Miss) String() string {
	s := fmt.Sprintf("layer %d, expert %d: ", m.Layer, m.Expert)
	switch {
	case m.Away == NeverThere:
		s += "never there before"
	case m.Away == 0:
		s += "evicted for this token"
	case m.Away == LongAway:
		s += fmt.Sprintf("evicted %d tokens ago or earlier", m.Away)
	default:
		s += "evicted " + units.Plural(int64(m.Away), "token") + " ago"
	}
	switch {
	case m.Early && m.Wait == 0:
		return s + ", read ahead in time"
	case m.Early:
		s += ", read ahead too late"
	case m.Behind > 0:
		s += fmt.Sprintf(", read behind %d others", m.Behind)
		if m.Behind == 1 {
			s = s[:len(s)-1]
		}
	}
	return s + ", " + units.Ms(int64(m.Wait)*units.Microsecond) + " ms"
}

// mostLinks is how many misses WhySlow tells of.
const mostLinks = 5

// WhySlow tells in lines why a token took as long as it did: what it waited for, the
// longest wait first, and what would have saved how much. known says whether misses
// are those of the token.
func WhySlow(r *Record, misses []Miss, known bool) []string {
	head := fmt.Sprintf("token %d took %s ms", r.Step, units.Ms(r.Wall))
	if r.Stall.OK {
		head += fmt.Sprintf(", of which it waited %s", units.Ms(r.Stall.Value))
	}
	if !known {
		return []string{head + "; what for is n/a: it is kept of streamed tokens, the latest 4096"}
	}
	if len(misses) == 0 {
		return []string{head + "; every expert was in the cache"}
	}
	lines := []string{head + "; " + units.Plural(int64(len(misses)), "expert") + " missed"}
	sorted := slices.Clone(misses)
	slices.SortStableFunc(sorted, func(a, b Miss) int { return int(b.Wait) - int(a.Wait) })
	for i := range sorted[:min(len(sorted), mostLinks)] {
		lines = append(lines, sorted[i].String())
	}
	if n := len(sorted) - mostLinks; n > 0 {
		lines = append(lines, fmt.Sprintf("and %d more, each no longer", n))
	}
	if s, ok := Save(r, misses); ok && r.Stall.Value > 0 {
		lines = append(lines, fmt.Sprintf("a cache that had kept them: %s ms less; a lane for each read: %s; reading them ahead in time: %s [estimated]",
			units.Ms(s.Cache), units.Ms(s.Lanes), units.Ms(s.Ahead)))
	}
	return lines
}
