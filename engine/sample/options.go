// Package sample turns logits into a token.
package sample

// Options say how a token is chosen. The zero temperature is greedy: the
// largest logit wins, the lowest id among equals.
type Options struct {
	Temp          float64 `json:"temp"`
	TopK          int     `json:"top_k"`          // keep the k largest; 0: all
	TopP          float64 `json:"top_p"`          // keep the smallest set of at least this mass; 1: all
	MinP          float64 `json:"min_p"`          // drop what is less likely than this share of the likeliest; 0: none
	RepeatPenalty float64 `json:"repeat_penalty"` // 1: none
	RepeatLastN   int     `json:"repeat_last_n"`  // tokens that the penalty looks back on
	Seed          uint64  `json:"seed"`
}

// Defaults returns greedy sampling with a fixed seed, so that a run can be
// repeated. Flags and the model's general.sampling.* keys override it.
func Defaults() Options {
	return Options{TopK: 40, TopP: 0.95, MinP: 0.05, RepeatPenalty: 1, RepeatLastN: 64, Seed: 1}
}
