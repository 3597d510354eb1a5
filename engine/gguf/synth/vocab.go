package synth

// The vocabulary is a real byte-level BPE, though of a language that nobody
// speaks: 256 tokens for the bytes, then syllables of a consonant and a vowel,
// then words of one, two and three syllables after a space, each made by one
// merge, as in the vocabularies of real models. So a random model writes
// something like words, and a file's header is as large as a real one's.

const (
	consonants = "tsnrlmdkpbvgfhjwzxcqy"
	vowels     = "aeiou"
	syllables  = len(consonants) * len(vowels)
	controls   = 3 // the last tokens
	minVocab   = 256 + controls + 1
	maxVocab   = 256 + controls + syllables*(2+syllables+syllables*syllables)
)

// controlTokens are what ChatML needs.
var controlTokens = [controls]string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

// Token types of tokenizer.ggml.token_type (llama.cpp, enum llama_token_type).
const (
	tokenNormal  = int32(1)
	tokenControl = int32(3)
)

// chatTemplate is ChatML.
const chatTemplate = `{%- for message in messages %}{{- '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{%- endfor %}` +
	`{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}`

// byteRunes returns the characters by which byte-level BPE writes bytes: the
// byte's own where that is printable, else one from U+0100 on (GPT-2's table).
func byteRunes() (runes [256]rune) {
	next := rune(0x100)
	for b := range runes {
		if b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae {
			runes[b] = rune(b)
			continue
		}
		runes[b] = next
		next++
	}
	return runes
}

// vocabulary returns n tokens, their types, and the merges that make all but
// the bytes and the control tokens.
func vocabulary(n int) (tokens []string, types []int32, merges []string) {
	runes := byteRunes()
	for _, r := range runes {
		tokens = append(tokens, string(r))
	}
	pairs(func(a, b string) bool {
		if len(tokens) == n-controls {
			return false
		}
		tokens = append(tokens, a+b)
		merges = append(merges, a+" "+b)
		return true
	}, string(runes[' ']))
	for range tokens {
		types = append(types, tokenNormal)
	}
	for _, t := range controlTokens {
		tokens = append(tokens, t)
		types = append(types, tokenControl)
	}
	return tokens, types, merges
}

// pairs yields the two parts of each word in order of rank, until yield returns
// false or the language is exhausted.
func pairs(yield func(a, b string) bool, space string) {
	var parts []string
	for _, c := range consonants {
		for _, v := range vowels {
			if !yield(string(c), string(v)) {
				return
			}
			parts = append(parts, string(c)+string(v))
		}
	}
	words := []string{space}
	for range 3 {
		var longer []string
		for _, w := range words {
			for _, p := range parts {
				if !yield(w, p) {
					return
				}
				longer = append(longer, w+p)
			}
		}
		words = longer
	}
}
