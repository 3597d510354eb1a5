package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// preTokenizer is one value of tokenizer.ggml.pre: how a text is split into pieces
// that are merged on their own.
type preTokenizer struct {
	// stages are applied one after the other, each to the pieces of the one before.
	stages []splitter
	// whole takes a piece that is a token as that token, without merging.
	whole bool
	// addBOS is whether BOS begins a text where the file does not say.
	addBOS bool
}

// The splitters that several names share.
var (
	preQwen2   = preTokenizer{stages: []splitter{words{letters: letter, digits: 1, tail: "\r\n"}.split}}
	preLlama3  = preTokenizer{stages: []splitter{words{letters: letter, digits: 3, tail: "\r\n"}.split}}
	preLlama3B = preTokenizer{stages: preLlama3.stages, whole: true, addBOS: true}
	preGPT4o   = preTokenizer{stages: []splitter{cased{digits: 3, endings: true}.split}}
	preGPT2    = preTokenizer{stages: []splitter{splitGPT2}}
	preDigits  = preTokenizer{stages: []splitter{isolate(upTo(number, 1)), splitGPT2}} // digits singly, then GPT-2
	preV3      = preTokenizer{stages: []splitter{isolate(upTo(number, 3)), isolate(kanaHan.run), isolate(wordsDeepSeek)}}
	// preDefault is what llama.cpp splits by where a file names nothing.
	preDefault = preTokenizer{stages: []splitter{isolate(signsFalcon(false)), splitGPT2, isolate(runOf(number)), isolate(threeDigits)}}
)

// preTokenizers are the values of tokenizer.ggml.pre that are understood.
var preTokenizers = map[string]preTokenizer{
	"qwen2": preQwen2, "deepseek-r1-qwen": preQwen2, "kormo": preQwen2, "megrez": preQwen2, "hunyuan": preQwen2,
	"stablelm2": preQwen2, "solar-open": preQwen2,
	"bailingmoe": preQwen2, "bailingmoe2": preQwen2, "llada-moe": preQwen2, // written otherwise, and the same
	"qwen35": {stages: []splitter{words{letters: letter | mark, digits: 1, tail: "\r\n"}.split}},

	"llama-bpe": preLlama3B, "llama3": preLlama3B, "llama-v3": preLlama3B, "falcon3": preLlama3B, "falcon-h1": preLlama3B,
	"pixtral": preLlama3B, "midm-2.0": preLlama3B, "lfm2": preLlama3B,
	"dbrx": preLlama3, "smaug-bpe": preLlama3, "glm4": preLlama3, "chatglm-bpe": preLlama3,

	"gpt-4o": preGPT4o, "llama4": preGPT4o, "kanana2": preGPT4o, "minimax-m2": preGPT4o,
	"tekken": {stages: []splitter{cased{digits: 1}.split}, whole: true, addBOS: true},

	"gpt-2": preGPT2, "phi-2": preGPT2, "mpt": preGPT2, "olmo": preGPT2, "gigachat": preGPT2, "exaone4": preGPT2, "a.x-4.0": preGPT2,
	"mellum": preGPT2, "modern-bert": preGPT2, "jais": preGPT2, "trillion": preGPT2, "granite-docling": preGPT2,
	"refact": preDigits, "starcoder": preDigits, "smollm": preDigits, "codeshell": preDigits, "command-r": preDigits,
	"exaone": preDigits, "minerva-7b": preDigits,

	"deepseek-v3": preV3, "joyai-llm": preV3, "hunyuan-dense": preV3,
	"deepseek-coder": {stages: []splitter{isolate(upTo(newline, 1)), isolate(afterSpace(runOf(letter))), isolate(afterSpace(runOf(punct))),
		isolate(cjk.run), isolate(upTo(number, 1))}},
	"deepseek-llm": {stages: []splitter{isolate(upTo(newline, 1)), isolate(afterSpace(casedLetters.run)), isolate(afterSpace(deepseekSigns.run)),
		splitEnd, isolate(cjk.run), isolate(runOf(number))}},

	"falcon":     {stages: []splitter{isolate(signsFalcon(true)), splitGPT2, isolate(threeDigits)}},
	"default":    preDefault,
	"kimi-k2":    {stages: []splitter{splitKimi}},
	"exaone-moe": {stages: []splitter{words{letters: letter, digits: 1, tail: "\r\n/", once: true, spaced: true}.split}},
	"seed-coder": {stages: []splitter{words{letters: letter, digits: 1}.split}},
	"gemma4":     {stages: []splitter{splitLines}, addBOS: true},
	"laguna":     {stages: []splitter{splitLines, preQwen2.stages[0]}},
}

// nearestPre returns the pre-tokenizer of a name, or of the known name that is most
// like it, and then a warning: text splits a little otherwise than the model was
// trained on, which costs quality, but not the use of it.
func nearestPre(name string) (preTokenizer, string) {
	if pre, ok := preTokenizers[name]; ok {
		return pre, ""
	}
	if name == "" {
		return preDefault, fmt.Sprintf("the file has no %s; text is split by the default rule, and answers may be worse than the model's", keyPre)
	}
	best, most := "llama-bpe", 2 // a beginning of three letters at least
	for _, known := range slices.Sorted(maps.Keys(preTokenizers)) {
		if n := commonPrefix(strings.ToLower(name), known); n > most {
			best, most = known, n
		}
	}
	return preTokenizers[best], fmt.Sprintf("unknown %s %q; text is split as for %q, and answers may be worse than the model's", keyPre, name, best)
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// splitLines parts runs of line feeds from runs of others: [^\n]+|[\n]+.
func splitLines(s string, i int) int {
	if s[i] != '\n' {
		if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
			return i + n
		}
		return len(s)
	}
	for i < len(s) && s[i] == '\n' {
		i++
	}
	return i
}

// signsFalcon matches [\p{P}\$\+<=>\^~\|`]+, with the backtick or without.
func signsFalcon(backtick bool) matcher {
	return func(x input, i int) int {
		for {
			c, n := x.at(i)
			switch {
			case c&punct != 0:
			case n == 1 && c&symbol != 0 && x.s[i] < utf8.RuneSelf && (x.s[i] != '`' || backtick): // not a byte that is no character
			default:
				return i
			}
			i += n
		}
	}
}

// threeDigits matches [0-9][0-9][0-9].
func threeDigits(x input, i int) int {
	if i+3 > len(x.s) {
		return i
	}
	for _, b := range []byte(x.s[i : i+3]) {
		if b < '0' || b > '9' {
			return i
		}
	}
	return i + 3
}
