package policy

import "math"

// historyTokens is how many tokens back a history looks. Twice as many gain two or
// three more points of the gap to the best possible (docs/streaming.md), and cost twice
// the time.
const historyTokens = 256

// sharpness is how much a past token counts for its likeness to the present one: the
// exponent of the share of routings that both have alike.
const sharpness = 8

// sharp is what likeness counts for, by the share in steps of a thousandth. It is
// rounded: systems disagree on the last bit of Exp, and all are to decide alike.
var sharp = func() (w [1001]float64) {
	for i := range w {
		w[i] = float64(float32(math.Exp(sharpness * float64(i) / 1000)))
	}
	return w
}()

// history remembers the routes of the latest tokens and tells of each expert how
// likely its layer's next visit is to use it. It looks at the route alone, whoever is
// resident.
type history struct {
	shape Shape
	place []int // by layer: its number among those with experts; -1: none
	used  int

	routes []int16 // [historyTokens][layers with experts][used] experts; -1: unknown
	token  int     // number of the first token of the pass in progress
	tokens int     // of the pass
	last   int     // place of the layer that was visited last

	like []int16 // [historyTokens] routings that a past token has alike with the present one
	seen int     // routings of the present token so far

	// idle: the budget holds all experts and nobody is ever given up, so that no chance
	// need be reckoned. Routes are remembered all the same.
	idle bool

	votes   []float64 // [historyTokens] of the present visit
	inLayer []bool    // by expert of the layer being visited
	// chance is by key: how likely the layer's next visit is to use the expert, by
	// recency alone and by recency and likeness.
	byAge, byLikeness []float64
}

func newHistory(s Shape) *history {
	h := &history{shape: s, used: s.Used, like: make([]int16, historyTokens), votes: make([]float64, historyTokens), inLayer: make([]bool, s.Experts), byAge: make([]float64, s.Keys()), byLikeness: make([]float64, s.Keys())}
	n := 0
	for _, b := range s.Bytes {
		if b == 0 {
			h.place = append(h.place, -1)
			continue
		}
		h.place = append(h.place, n)
		n++
	}
	h.routes = make([]int16, historyTokens*n*s.Used)
	h.reset()
	return h
}

func (h *history) reset() {
	for i := range h.routes {
		h.routes[i] = -1
	}
	clear(h.like)
	clear(h.byAge)
	clear(h.byLikeness)
	h.token, h.tokens, h.last, h.seen = 0, 0, len(h.place), 0
}

// row returns what a token was routed to in a layer.
func (h *history) row(token, place int) []int16 {
	layers := len(h.routes) / (historyTokens * h.used)
	return h.routes[(token%historyTokens*layers+place)*h.used:][:h.used]
}

// visit takes a layer's batch in.
func (h *history) visit(layer, tokens int, touches []Key) {
	place, first := h.place[layer], h.shape.Key(layer, 0)
	if place <= h.last { // another pass
		h.token += h.tokens
		h.tokens = tokens
		h.begin()
	}
	h.last = place
	k := len(touches) / max(1, tokens)
	for t := max(0, tokens-historyTokens); t < tokens; t++ {
		row := h.row(h.token+t, place)
		for i := range min(k, h.used) {
			row[i] = int16(touches[t*k+i] - first)
		}
	}
	now := h.token + tokens - 1
	if h.idle {
		return
	}
	if tokens == 1 {
		h.compare(now, place, touches, first)
	}
	h.guess(now, place, first, tokens == 1)
}

// setBudget says whether chances are wanted. When they are again, they are reckoned
// of all layers by recency, so that a budget that shrinks finds an order.
func (h *history) setBudget(slotBytes int64) {
	was := h.idle
	if h.idle = slotBytes >= h.shape.Total(); !was || h.idle {
		return
	}
	for layer, place := range h.place {
		if now := h.token + h.tokens - 1; place >= 0 && now >= 0 {
			h.guess(now, place, h.shape.Key(layer, 0), false)
		}
	}
}

// begin forgets what the tokens of a new pass displace.
func (h *history) begin() {
	clear(h.like)
	h.seen = 0
	layers := len(h.routes) / (historyTokens * h.used)
	for t := range min(h.tokens, historyTokens) {
		for place := range layers {
			row := h.row(h.token+t, place)
			for i := range row {
				row[i] = -1
			}
		}
	}
}

// compare counts what past tokens have alike with the present one.
func (h *history) compare(now, place int, touches []Key, first Key) {
	for _, k := range touches {
		h.inLayer[k-first] = true
	}
	h.seen += len(touches)
	for s := max(0, now-historyTokens+1); s < now; s++ {
		n := int16(0)
		for _, e := range h.row(s, place) {
			if e >= 0 && h.inLayer[e] {
				n++
			}
		}
		h.like[s%historyTokens] += n
	}
	for _, k := range touches {
		h.inLayer[k-first] = false
	}
}

// guess reckons the chances of a layer's experts: by recency the sum of 1/age over
// past uses, as a share of what it could be; and half of that and half of the votes
// of tokens that followed ones like the present.
func (h *history) guess(now, place int, first Key, vote bool) {
	from := max(0, now-historyTokens+1)
	ages, all := 0.0, 0.0
	for s := from; s <= now; s++ {
		ages += 1 / float64(now+1-s)
		v := 0.0
		if vote && s > from { // s is what followed s-1
			v = sharp[int(h.like[(s-1)%historyTokens])*(len(sharp)-1)/h.seen] / math.Sqrt(float64(now-s+1))
		}
		h.votes[s-from] = v
		all += v
	}
	byAge, byLikeness := h.byAge[first:][:h.shape.Experts], h.byLikeness[first:][:h.shape.Experts]
	clear(byAge)
	clear(byLikeness)
	for s := from; s <= now; s++ {
		a := 1 / (float64(now+1-s) * ages)
		v := a
		if all > 0 {
			v = (a + h.votes[s-from]/all) / 2
		}
		for _, e := range h.row(s, place) {
			if e >= 0 {
				byAge[e] += a
				byLikeness[e] += v
			}
		}
	}
}
