package expert

// byTokenBefore guesses that a token is given what the one before was given.
var byTokenBefore = Predictor{Setting: "prefetch", Most: 64, Kinds: []Kind{{"previous", 8, 0.3}},
	Help:  "read ahead what the token before was given in so many layers; it is what the cache holds anyway, and there for comparison only",
	start: func(s *Streamer) guesser { return beforeGuesser{s} }}

type beforeGuesser struct{ s *Streamer }

func (g beforeGuesser) token(int32) {}

func (g beforeGuesser) visited(layer, tokens int, ids []int32, quiet bool) {
	if tokens == 1 && !quiet {
		g.s.expect(g.s.fore.place[layer], byTokenBefore.first, ids) // of the next token
	}
}
