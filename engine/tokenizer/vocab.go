package tokenizer

import (
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind is a token's type, numbered as in tokenizer.ggml.token_type.
type Kind uint8

// The kinds of tokens of the GGUF format.
const (
	Undefined   Kind = 0
	Normal      Kind = 1
	Unknown     Kind = 2
	Control     Kind = 3
	UserDefined Kind = 4
	Unused      Kind = 5
	Byte        Kind = 6
)

// special reports whether the token is hidden from the reader and parsed only
// where special tokens are asked for.
func (k Kind) special() bool { return k == Control || k == Unknown }

// parsed reports whether the token's text can be cut out of a text as a whole.
func (k Kind) parsed() bool { return k.special() || k == UserDefined }

// vocab is the list of tokens.
type vocab struct {
	texts []string // as the file has them; shared with the metadata
	kinds []Kind
	table table
	blob  string   // the bytes that the tokens stand for, one after the other
	ends  []uint32 // of each token's bytes in blob

	warnings []string // of what is odd beside these

	doubles int      // tokens whose text an earlier one has too
	double  [2]int32 // the first such pair

	bos, eos, eot, unknown int32
	eog                    map[int32]bool
}

// load reads tokens, kinds and special ids.
func (v *vocab) load(meta Metadata, f family) error {
	var err error
	if v.texts, err = meta.Strings(keyTokens); err != nil {
		return err
	}
	n := len(v.texts)
	if n == 0 || n > math.MaxInt32/4 {
		return fmt.Errorf("%s has %d elements", keyTokens, n)
	}
	if err := v.loadKinds(meta); err != nil {
		return err
	}
	v.table = newTable(n)
	for i, text := range v.texts {
		if text == "" { // some converters leave holes
			continue
		}
		if before, ok := v.table.add(v.texts, int32(i)); !ok {
			v.doubles++
			if v.doubles == 1 {
				v.double = [2]int32{before, int32(i)}
			}
		}
	}
	return v.loadSpecials(meta, f)
}

func (v *vocab) loadKinds(meta Metadata) error {
	v.kinds = make([]Kind, len(v.texts))
	if !meta.Has(keyTokenType) {
		for i := range v.kinds {
			v.kinds[i] = Normal
		}
		return nil
	}
	types, err := meta.Ints(keyTokenType)
	if err != nil {
		return err
	}
	if len(types) < len(v.kinds) {
		return fmt.Errorf("%s has %d elements, but %s has %d", keyTokenType, len(types), keyTokens, len(v.kinds))
	}
	for i := range v.kinds {
		if types[i] >= 0 && types[i] <= int64(Byte) {
			v.kinds[i] = Kind(types[i])
		}
	}
	return nil
}

// loadRaw fills in the bytes of every token.
func (v *vocab) loadRaw(m model) {
	size := 0
	for _, text := range v.texts {
		size += len(text)
	}
	blob := make([]byte, 0, size)
	v.ends = make([]uint32, len(v.texts))
	for i, text := range v.texts {
		switch k := v.kinds[i]; {
		case k.parsed():
			blob = append(blob, text...)
		case k == Normal || k == Byte:
			blob = m.appendRaw(blob, text)
		}
		v.ends[i] = uint32(len(blob))
	}
	v.blob = string(blob)
}

// raw returns the bytes that a token stands for. They must not be changed.
func (v *vocab) raw(id int32) string {
	start := uint32(0)
	if id > 0 {
		start = v.ends[id-1]
	}
	return v.blob[start:v.ends[id]]
}

// memory returns the bytes of the vocabulary, the texts that it shares with the
// metadata included.
func (v *vocab) memory() int64 {
	n := len(v.texts)*16 + len(v.kinds) + len(v.table.slots)*4 + len(v.blob) + len(v.ends)*4
	for _, text := range v.texts {
		n += len(text)
	}
	return int64(n)
}

// Len returns the number of tokens; ids run from 0 to Len-1.
func (v *vocab) Len() int { return len(v.texts) }

// Token returns a token's text as the file has it (in the byte-level alphabet
// for a normal one) and its kind. An id outside the vocabulary gives "" and
// Undefined.
func (v *vocab) Token(id int32) (text string, kind Kind) {
	if id < 0 || int(id) >= len(v.texts) {
		return "", Undefined
	}
	return v.texts[id], v.kinds[id]
}

// Warnings returns what is odd about the vocabulary but does not keep it from
// being used, a line each.
func (v *vocab) Warnings() []string {
	if v.doubles == 0 {
		return v.warnings
	}
	return append(slices.Clip(v.warnings), fmt.Sprintf("tokens of the vocabulary with a text that another one has too: %d (ids %d and %d are both %q); the last of them is used",
		v.doubles, v.double[0], v.double[1], v.texts[v.double[1]]))
}

// byteToken returns the id of the token that is written <0xXX>, or None.
func (v *vocab) byteToken(b byte) int32 {
	return v.table.find(v.texts, fmt.Sprintf("<0x%02X>", b))
}

// escape writes U+2581 for spaces, as the texts of some vocabularies have them.
func escape(text string) string { return strings.ReplaceAll(text, " ", "\u2581") }

// appendEscaped appends what a token's text stands for where spaces are written
// U+2581 and single bytes <0xXX>.
func appendEscaped(dst []byte, text string) []byte {
	if len(text) == 6 && strings.HasPrefix(text, "<0x") && text[5] == '>' {
		if b, err := strconv.ParseUint(text[3:5], 16, 8); err == nil {
			return append(dst, byte(b))
		}
	}
	return append(dst, strings.ReplaceAll(text, "\u2581", " ")...)
}

// ID returns the id of the token with this text, as the file has it.
func (v *vocab) ID(text string) (int32, bool) {
	if text == "" {
		return None, false
	}
	id := v.table.find(v.texts, text)
	return id, id != None
}

// BOS returns the id of the token that begins a text, or None.
func (v *vocab) BOS() int32 { return v.bos }

// EOS returns the id of the token that ends a text, or None.
func (v *vocab) EOS() int32 { return v.eos }

// IsEOG reports whether a generation ends with this token.
func (v *vocab) IsEOG(id int32) bool { return v.eog[id] }

// Texts whose tokens have a role by their text alone, because files do not name
// them in their metadata (llama.cpp, src/llama-vocab.cpp, at the same place).
var (
	eotTexts = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
		"[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>"}
	eogTexts = []string{"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>",
		"<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>",
		"<turn|>", "<|tool_response>", "<｜end▁of▁sentence｜>", "[e~["}
	// The parts of a fill-in-the-middle prompt are control tokens, and the last
	// three groups end a generation.
	fimTexts = []string{"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>",
		"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>",
		"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>"}
	fimEndTexts = []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]",
		"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>"}
	// What gpt-oss divides its channels with is for the reader of the text.
	renderedTexts = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}
)

// loadSpecials finds the special ids, by key and by text, and decides which
// tokens end a generation. Unlike llama.cpp it does not take token 11 for BOS and
// EOS where a file of a "gpt2" model names none.
func (v *vocab) loadSpecials(meta Metadata, f family) error {
	var eom int32
	for _, s := range []struct {
		key string
		dst *int32
		def int32
	}{{keyBOS, &v.bos, f.bos}, {keyEOS, &v.eos, f.eos}, {keyEOT, &v.eot, None}, {keyEOM, &eom, None}, {keyUnknown, &v.unknown, f.unknown}} {
		id, err := meta.IntOr(s.key, int64(s.def))
		if err != nil {
			return err
		}
		if *s.dst = None; id >= 0 && id < int64(len(v.texts)) {
			*s.dst = int32(id)
		}
	}
	v.eog = map[int32]bool{}
	mark := func(texts []string, end bool) {
		for _, text := range texts {
			if id, ok := v.ID(text); ok {
				v.kinds[id] = Control
				if end {
					v.eog[id] = true
				}
			}
		}
	}
	mark(fimTexts, false)
	mark(fimEndTexts, true)
	mark(eogTexts, true)
	for _, text := range eotTexts {
		if id, ok := v.ID(text); ok && v.eot == None {
			v.eot = id
		}
	}
	for _, text := range renderedTexts {
		if id, ok := v.ID(text); ok {
			v.kinds[id] = UserDefined
		}
	}
	for _, id := range []int32{v.eos, v.eot, eom} {
		if id != None {
			v.eog[id] = true
		}
	}
	v.amendEOG()
	return nil
}

// amendEOG takes back two tokens that only look like the end: <|end|> where
// other tokens end a call and an answer (gpt-oss, Solar Open), and </s> where
// <|tool_response> is a token (Gemma 4).
func (v *vocab) amendEOG() {
	ends := func(text string) bool {
		id, ok := v.ID(text)
		return ok && v.eog[id]
	}
	call := ends("<|call|>") || ends("<|calls|>")
	if id, ok := v.ID("<|end|>"); ok && call && (ends("<|return|>") || ends("<|flush|>")) {
		delete(v.eog, id)
		v.kinds[id] = UserDefined
	}
	if id, ok := v.ID("</s>"); ok && ends("<|tool_response>") {
		delete(v.eog, id)
		v.kinds[id] = Normal
	}
}

// table finds a text's id: open addressing over ids, a power of two of slots. It
// takes a sixth of a map's memory and time to build.
type table struct {
	seed  maphash.Seed
	slots []int32 // id+1; 0 is free
}

func newTable(n int) table {
	size := 16
	for size < n*2 {
		size *= 2
	}
	return table{seed: maphash.MakeSeed(), slots: make([]int32, size)}
}

// add enters an id. If its text is there already the later id takes its place,
// as in llama.cpp, and add returns the earlier one and false.
func (t *table) add(texts []string, id int32) (int32, bool) {
	mask := uint64(len(t.slots) - 1)
	for i := maphash.String(t.seed, texts[id]) & mask; ; i = (i + 1) & mask {
		switch s := t.slots[i]; {
		case s == 0:
			t.slots[i] = id + 1
			return id, true
		case texts[s-1] == texts[id]:
			t.slots[i] = id + 1
			return s - 1, false
		}
	}
}

// find returns the id of a text, or None.
func (t *table) find(texts []string, text string) int32 {
	mask := uint64(len(t.slots) - 1)
	for i := maphash.String(t.seed, text) & mask; ; i = (i + 1) & mask {
		switch s := t.slots[i]; {
		case s == 0:
			return None
		case texts[s-1] == text:
			return s - 1
		}
	}
}

// findBytes is find for bytes.
func (t *table) findBytes(texts []string, text []byte) int32 {
	mask := uint64(len(t.slots) - 1)
	for i := maphash.Bytes(t.seed, text) & mask; ; i = (i + 1) & mask {
		switch s := t.slots[i]; {
		case s == 0:
			return None
		case texts[s-1] == string(text):
			return s - 1
		}
	}
}
