// Package tokenizer turns text into token ids and back, as a GGUF file's
// tokenizer.ggml.* metadata describes it.
//
// The ids are those that llama.cpp gives. Three things happen to a text: special
// tokens are cut out (special.go), what lies between them is split into pieces by
// the model's pre-tokenizer (pre.go), and each piece is merged on its own (bpe.go).
// SentencePiece merges without splitting first (spm.go). The splitters are written
// by hand: Go's regexp has no look-ahead, and a backtracking engine is too slow for
// them.
package tokenizer
