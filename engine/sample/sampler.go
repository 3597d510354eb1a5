package sample

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"bmoe/engine/kernel/vec"
)

// Check returns an error that names the first option out of range.
func (o Options) Check() error {
	// Written so that NaN is out of range.
	switch {
	case !(o.Temp >= 0) || math.IsInf(o.Temp, 0):
		return fmt.Errorf("temperature %v: want 0 or more", o.Temp)
	case o.TopK < 0:
		return fmt.Errorf("top-k %d: want 0 (all) or more", o.TopK)
	case !(o.TopP >= 0 && o.TopP <= 1):
		return fmt.Errorf("top-p %v: want 0 to 1", o.TopP)
	case !(o.MinP >= 0 && o.MinP <= 1):
		return fmt.Errorf("min-p %v: want 0 to 1", o.MinP)
	case !(o.RepeatPenalty > 0) || math.IsInf(o.RepeatPenalty, 0):
		return fmt.Errorf("repeat penalty %v: want a positive number, 1 for none", o.RepeatPenalty)
	case o.RepeatLastN < 0:
		return fmt.Errorf("repeat last n %d: want 0 or more", o.RepeatLastN)
	}
	return nil
}

// candidate is a token that may be drawn.
type candidate struct {
	id    int32
	logit float32
}

// before is the order of preference: the larger logit, then the lower id.
func before(a, b candidate) int {
	if c := cmp.Compare(b.logit, a.logit); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// Sampler chooses one token after another. The steps and their order are those
// of llama.cpp: repeat penalty, top-k, top-p, min-p, temperature, draw. The
// same options, history and logits give the same tokens on every machine.
type Sampler struct {
	o     Options
	temp  float32
	vocab int
	rng   *rand.PCG

	recent []int32 // ring of the last RepeatLastN tokens
	next   int     // where the next goes
	full   bool
	stamp  []uint32 // [vocab] when a token was last penalised
	now    uint32
	saved  []candidate // what the penalty changed

	cands   []candidate
	weights []float32
	sums    []float32 // of every vec.SoftmaxLen weights
	mass    [buckets]float64
}

// buckets and perUnit cut the logits below the largest into intervals for the
// search of top-p: 1/16 wide, the last one open.
const (
	buckets = 1024
	perUnit = 16
)

// pcgStream is the second half of the generator's seed, an arbitrary constant.
const pcgStream = 0x9e3779b97f4a7c15

// New returns a Sampler over a vocabulary of the given size. It is an error if
// an option is out of range.
func New(o Options, vocab int) (*Sampler, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if vocab < 1 || vocab > math.MaxInt32 {
		return nil, fmt.Errorf("vocabulary of %d tokens", vocab)
	}
	s := &Sampler{o: o, temp: float32(o.Temp), vocab: vocab, rng: rand.NewPCG(o.Seed, pcgStream)}
	if o.RepeatPenalty != 1 && o.RepeatLastN > 0 {
		s.recent = make([]int32, o.RepeatLastN)
		s.stamp = make([]uint32, vocab)
		s.saved = make([]candidate, 0, min(o.RepeatLastN, vocab))
	}
	if s.temp > 0 {
		n := vocab
		if o.TopK > 0 {
			n = min(n, o.TopK)
		}
		s.cands = make([]candidate, 0, n)
		s.weights = make([]float32, n)
		s.sums = make([]float32, 0, n/vec.SoftmaxLen+1)
	}
	return s, nil
}

// Accept adds tokens to the history that the repeat penalty looks back on: the
// prompt's, and each one that was chosen. Ids outside the vocabulary are left
// out.
func (s *Sampler) Accept(ids ...int32) {
	if len(s.recent) == 0 {
		return
	}
	for _, id := range ids {
		if id < 0 || int(id) >= s.vocab {
			continue
		}
		s.recent[s.next] = id
		s.next++
		if s.next == len(s.recent) {
			s.next, s.full = 0, true
		}
	}
}

// Sample chooses a token by its logits, one for each id of the vocabulary. A
// token with a logit of -Inf is never chosen. It is an error if a logit is NaN
// or +Inf, or if all are -Inf. The logits are as before when Sample returns;
// while it runs they may differ. It allocates nothing.
func (s *Sampler) Sample(logits []float32) (int32, error) {
	if len(logits) != s.vocab {
		return 0, fmt.Errorf("%d logits for a vocabulary of %d", len(logits), s.vocab)
	}
	s.penalise(logits)
	id, err := s.choose(logits)
	for _, c := range s.saved {
		logits[c.id] = c.logit
	}
	s.saved = s.saved[:0]
	return id, err
}

// penalise makes recent tokens less likely: a positive logit is divided by the
// penalty, another one multiplied.
func (s *Sampler) penalise(logits []float32) {
	recent := s.recent
	if !s.full {
		recent = recent[:s.next]
	}
	s.now++
	if s.now == 0 { // after 2^32 tokens
		clear(s.stamp)
		s.now = 1
	}
	p := float32(s.o.RepeatPenalty)
	for _, id := range recent {
		if s.stamp[id] == s.now {
			continue
		}
		s.stamp[id] = s.now
		l := logits[id]
		s.saved = append(s.saved, candidate{id, l})
		if l > 0 {
			logits[id] = l / p
		} else {
			logits[id] = l * p
		}
	}
}

func (s *Sampler) choose(logits []float32) (int32, error) {
	best, err := argmax(logits)
	if err != nil || s.temp == 0 {
		return best, err
	}
	top := logits[best]
	if k := s.o.TopK; k > 0 && k < len(logits) {
		s.selectTopK(logits, k)
		if s.o.TopP < 1 {
			total := 0.0
			for _, c := range s.cands {
				total += float64(vec.Exp32(c.logit - top))
			}
			s.cutTopP(top, total)
		}
	} else if s.o.TopP < 1 {
		s.cutTopP(top, s.selectTopP(logits, top))
	} else if s.o.MinP > 0 {
		// What is far below the line is not even looked at closely.
		least := top + float32(math.Log(s.o.MinP)) - 0.01
		s.cands = s.cands[:0]
		for i, l := range logits {
			if l >= least {
				s.cands = append(s.cands, candidate{int32(i), l})
			}
		}
	} else {
		return s.drawAny(logits, top), nil
	}
	if s.o.MinP > 0 {
		s.cutMinP(top)
	}
	return s.draw(top), nil
}

// argmax returns the lowest id among those with the largest logit.
func argmax(logits []float32) (int32, error) {
	best, top := -1, float32(math.Inf(-1))
	for i := skip(logits, 0, top); i < len(logits); i = skip(logits, i+1, top) {
		l := logits[i]
		if l <= top {
			continue
		}
		// Larger, or NaN.
		if l != l || l > math.MaxFloat32 {
			return 0, fmt.Errorf("logit of token %d is %v: the model's numbers broke down", i, l)
		}
		best, top = i, l
	}
	if best < 0 {
		return 0, fmt.Errorf("all %d logits are -Inf: the model's numbers broke down", len(logits))
	}
	return int32(best), nil
}

// skip returns the first i of at least from at which logits[i] may be larger
// than top, or NaN, or their number. Nearly all are smaller, so it looks at four
// at once.
func skip(logits []float32, from int, top float32) int {
	for ; from+4 <= len(logits); from += 4 {
		if b := logits[from:][:4]; !(b[0] <= top && b[1] <= top && b[2] <= top && b[3] <= top) {
			break
		}
	}
	return from
}

// selectTopK leaves the k preferred tokens in cands, in order. cands is a heap
// meanwhile, with the least preferred at the root.
func (s *Sampler) selectTopK(logits []float32, k int) {
	h := s.cands[:0]
	for i, l := range logits[:k] {
		h = append(h, candidate{int32(i), l})
	}
	for i := k/2 - 1; i >= 0; i-- {
		sink(h, i)
	}
	for i := skip(logits, k, h[0].logit); i < len(logits); i = skip(logits, i+1, h[0].logit) {
		if l := logits[i]; l > h[0].logit { // among equals the lower id, which is in already
			h[0] = candidate{int32(i), l}
			sink(h, 0)
		}
	}
	slices.SortFunc(h, before)
	s.cands = h
}

// sink moves element i of the heap to its place.
func sink(h []candidate, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && before(h[c+1], h[c]) > 0 {
			c++
		}
		if before(h[c], h[i]) < 0 {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// selectTopP leaves at least the tokens that top-p keeps in cands, in order,
// and returns the mass of the whole vocabulary. Sorting all of it would take
// longer than the rest of the step, so the mass is first summed in buckets.
func (s *Sampler) selectTopP(logits []float32, top float32) (total float64) {
	clear(s.mass[:])
	s.weigh(logits, top, 1)
	for i, l := range logits {
		p := float64(s.weights[i])
		s.mass[bucket(l, top)] += p
		total += p
	}
	want, sum, last := s.o.TopP*total, 0.0, 0
	for ; last < buckets-1; last++ {
		if sum += s.mass[last]; sum >= want {
			break
		}
	}
	s.cands = s.cands[:0]
	for i, l := range logits {
		if bucket(l, top) <= last {
			s.cands = append(s.cands, candidate{int32(i), l})
		}
	}
	slices.SortFunc(s.cands, before)
	return total
}

// bucket returns the interval that a logit lies in.
func bucket(l, top float32) int {
	d := (top - l) * perUnit
	if d >= buckets-1 {
		return buckets - 1
	}
	return int(d)
}

// cutTopP keeps the shortest prefix of the sorted cands that has the share TopP
// of the total mass.
func (s *Sampler) cutTopP(top float32, total float64) {
	sum := 0.0
	for i, c := range s.cands {
		if sum += float64(vec.Exp32(c.logit - top)); sum >= s.o.TopP*total {
			s.cands = s.cands[:i+1]
			return
		}
	}
}

// cutMinP drops what is less likely than MinP times the likeliest.
func (s *Sampler) cutMinP(top float32) {
	least := float32(s.o.MinP)
	kept := s.cands[:0]
	for _, c := range s.cands {
		if vec.Exp32(c.logit-top) >= least {
			kept = append(kept, c)
		}
	}
	s.cands = kept
}

// weigh sets weights to e^((l - top) / temp) for each logit, and sums to those of
// every vec.SoftmaxLen weights.
func (s *Sampler) weigh(logits []float32, top, temp float32) {
	s.sums = s.sums[:0]
	for i := 0; i < len(logits); i += vec.SoftmaxLen {
		var block [vec.SoftmaxLen]float32
		n := min(len(block), len(logits)-i)
		for j, l := range logits[i:][:n] {
			block[j] = (l - top) / temp
		}
		for j := n; j < len(block); j++ {
			block[j] = float32(math.Inf(-1))
		}
		_, sum := vec.SoftmaxBlock(&block, 1, 0, false)
		copy(s.weights[i:], block[:])
		s.sums = append(s.sums, sum)
	}
}

// random returns a number of at least 0 and below total.
func (s *Sampler) random(total float64) float64 {
	return float64(s.rng.Uint64()>>11) * (1.0 / (1 << 53)) * total
}

// drawAny picks one of all tokens by its share at the temperature: first the block,
// then the token in it.
func (s *Sampler) drawAny(logits []float32, top float32) int32 {
	s.weigh(logits, top, s.temp)
	total := 0.0
	for _, sum := range s.sums {
		total += float64(sum)
	}
	r, block := s.random(total), 0
	for b, sum := range s.sums {
		if sum == 0 {
			continue
		}
		block = b
		if r < float64(sum) {
			break
		}
		r -= float64(sum)
	}
	first := block * vec.SoftmaxLen
	last := first
	for i, w := range s.weights[first:min(first+vec.SoftmaxLen, len(logits))] {
		if w == 0 {
			continue
		}
		last = first + i
		if r -= float64(w); r < 0 {
			break
		}
	}
	return int32(last)
}

// draw picks one of cands by its share at the temperature.
func (s *Sampler) draw(top float32) int32 {
	total := 0.0
	for i, c := range s.cands {
		w := vec.Exp32((c.logit - top) / s.temp)
		s.weights[i] = w
		total += float64(w)
	}
	r := s.random(total)
	last := 0
	for i := range s.cands {
		w := float64(s.weights[i])
		if w == 0 {
			continue
		}
		last = i
		if r -= w; r < 0 {
			break
		}
	}
	return s.cands[last].id
}
