package expert

import "bmoe/engine/expert/policy"

// byToken guesses by the token's id, which is known before its first layer.
var byToken = Predictor{Setting: "token-prefetch", Most: 1, Default: 1, Kinds: []Kind{{"token", 9, 0.6}},
	Help: "read ahead what the token's id was given before, from the moment the token is known, while the drive would be idle",
	start: func(s *Streamer) guesser {
		return &tokenGuesser{s, policy.NewTokenTable(s.shape, s.vocab), make([]int32, s.shape.Used)}
	}}

type tokenGuesser struct {
	s       *Streamer
	table   *policy.TokenTable
	scratch []int32
}

func (g *tokenGuesser) token(id int32) {
	for place, layer := range g.s.fore.order {
		n := g.table.Guess(id, layer, g.scratch)
		g.s.expect(place, byToken.first, g.scratch[:n])
	}
}

func (g *tokenGuesser) visited(layer, tokens int, ids []int32, _ bool) {
	k := len(ids) / max(1, tokens)
	for t, id := range g.s.fore.ids[:min(tokens, len(g.s.fore.ids))] {
		g.table.Learn(id, layer, ids[t*k:][:k])
	}
}
