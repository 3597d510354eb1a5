package tokenizer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Metadata is what New reads of a GGUF file; *gguf.Metadata is one.
type Metadata interface {
	Has(key string) bool
	String(key string) (string, error)
	StringOr(key, def string) (string, error)
	Bool(key string) (bool, error)
	IntOr(key string, def int64) (int64, error)
	Strings(key string) ([]string, error)
	Ints(key string) ([]int64, error)
	Floats(key string) ([]float64, error)
}

// The metadata keys that every tokenizer model shares.
const (
	keyModel     = "tokenizer.ggml.model"
	keyPre       = "tokenizer.ggml.pre"
	keyTokens    = "tokenizer.ggml.tokens"
	keyTokenType = "tokenizer.ggml.token_type"
	keyMerges    = "tokenizer.ggml.merges"
	keyBOS       = "tokenizer.ggml.bos_token_id"
	keyEOS       = "tokenizer.ggml.eos_token_id"
	keyEOT       = "tokenizer.ggml.eot_token_id"
	keyEOM       = "tokenizer.ggml.eom_token_id"
	keyUnknown   = "tokenizer.ggml.unknown_token_id"
	keyAddBOS    = "tokenizer.ggml.add_bos_token"
	keyAddEOS    = "tokenizer.ggml.add_eos_token"
)

// None is the id of a special token that the vocabulary does not have.
const None int32 = -1

// model is what differs between families of tokenizers: how a text without
// special tokens becomes ids, and which bytes a normal token stands for.
type model interface {
	// encode appends the ids of text, which lies between special tokens or the ends, to
	// dst.
	encode(dst []int32, text string) []int32
	// appendRaw appends the bytes that a token of this text stands for.
	appendRaw(dst []byte, text string) []byte
	// memory returns the size of its tables in bytes.
	memory() int64
}

// family is one value of tokenizer.ggml.model.
type family struct {
	// make makes the model, and tells whether BOS begins a text where the file does
	// not say. The vocabulary has its texts and kinds, and no raw bytes yet.
	make func(v *vocab, meta Metadata) (m model, addBOS bool, err error)
	// bos, eos and unknown are the tokens of a file that names none.
	bos, eos, unknown int32
	// always puts BOS in front even if the file says no: Gemma 4 was published with a
	// false key, and answers nonsense without.
	always bool
}

// families are the values of tokenizer.ggml.model that are understood.
var families = map[string]family{
	"gpt2":   {make: newBPE, bos: None, eos: None, unknown: None},
	"gemma4": {make: newGemma4, bos: None, eos: None, unknown: None, always: true},
	"llama":  {make: newSPM, bos: 1, eos: 2, unknown: 0},
}

// Tokenizer holds a vocabulary and the rules to use it. Its methods may be
// called from several goroutines at once.
type Tokenizer struct {
	vocab
	model          model
	specials       trie
	addBOS, addEOS bool
	shown          map[int32]bool // control tokens whose text is rendered
}

// Options say how Encode treats special tokens.
type Options struct {
	// AddSpecial puts the BOS and EOS token around the text where the model's
	// metadata asks for it.
	AddSpecial bool
	// ParseSpecial turns control tokens that are spelled out in the text, such as
	// <|im_start|>, into their ids. Text of a stranger must be encoded without it.
	// User-defined tokens, such as Qwen's <think>, are always recognised.
	ParseSpecial bool
}

// New makes the tokenizer that the metadata describes. It fails, naming what it
// knows, on a model that it does not know. For a pre-tokenizer that it does not know
// it takes the nearest, and warns.
func New(meta Metadata) (*Tokenizer, error) {
	name, err := meta.String(keyModel)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	f, ok := families[name]
	if !ok {
		return nil, fmt.Errorf("tokenizer: unknown %s %q (known: %s)", keyModel, name, known(families))
	}
	t := &Tokenizer{}
	if err := t.vocab.load(meta, f); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if t.model, t.addBOS, err = f.make(&t.vocab, meta); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	if err := t.loadAdd(meta); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	t.addBOS = t.addBOS || f.always && t.bos != None
	t.loadRaw(t.model)
	t.specials = newTrie(&t.vocab)
	return t, nil
}

// loadAdd reads whether BOS and EOS belong around a text. A file that asks for a
// token which it does not name contradicts itself.
func (t *Tokenizer) loadAdd(meta Metadata) error {
	t.addBOS = t.addBOS && t.bos != None
	for _, a := range []struct {
		key, idKey string
		id         int32
		dst        *bool
	}{{keyAddBOS, keyBOS, t.bos, &t.addBOS}, {keyAddEOS, keyEOS, t.eos, &t.addEOS}} {
		if !meta.Has(a.key) {
			continue
		}
		add, err := meta.Bool(a.key)
		if err != nil {
			return err
		}
		if add && a.id == None {
			return fmt.Errorf("%s is true, but %s is missing", a.key, a.idKey)
		}
		*a.dst = add
	}
	return nil
}

// Bytes returns the memory of the vocabulary and the tables over it, without the
// scratch of Encode.
func (t *Tokenizer) Bytes() int64 { return t.vocab.memory() + t.model.memory() }

// known lists the keys of a registry, sorted.
func known[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

// Encode returns the ids of a text. Bytes that are not UTF-8 are kept: decoding
// the ids gives the same bytes again.
func (t *Tokenizer) Encode(text string, o Options) []int32 { return t.encode(text, o, nil) }

func (t *Tokenizer) encode(text string, o Options, plain []int) []int32 {
	ids := make([]int32, 0, len(text)/3+4)
	if o.AddSpecial && t.addBOS {
		ids = append(ids, t.bos)
	}
	end := 0
	for _, m := range t.specials.find(text, o.ParseSpecial, plain) {
		ids = t.model.encode(ids, text[end:m.start])
		ids = append(ids, m.id)
		end = m.end
	}
	ids = t.model.encode(ids, text[end:])
	if o.AddSpecial && t.addEOS {
		ids = append(ids, t.eos)
	}
	return ids
}

// Specials returns the places in a text, from and up to, where a token is spelled
// out that only Options.ParseSpecial recognises; overlapping ones included.
func (t *Tokenizer) Specials(text string) [][2]int {
	var places [][2]int
	for _, m := range t.specials.every(text, true) {
		if t.kinds[m.id].special() {
			places = append(places, [2]int{m.start, m.end})
		}
	}
	return places
}

// EncodePrompt returns the ids of a rendered chat template: special tokens are
// parsed, except over one of the places in plain, which ascend; BOS is put in front where the model asks for it and the template has
// not written it, and no EOS behind, since the model goes on from here.
func (t *Tokenizer) EncodePrompt(text string, plain []int) []int32 {
	ids := t.encode(text, Options{ParseSpecial: true}, plain)
	if t.addBOS && (len(ids) == 0 || ids[0] != t.bos) {
		ids = slices.Insert(ids, 0, t.bos)
	}
	return ids
}

// Show has the texts of control tokens rendered for which is says so, such as marks that
// tell a reader something. They are parsed as before. It is for before the first use.
func (t *Tokenizer) Show(is func(text string) bool) {
	for id, k := range t.kinds {
		if k.special() && is(t.texts[id]) {
			if t.shown == nil {
				t.shown = map[int32]bool{}
			}
			t.shown[int32(id)] = true
		}
	}
}

// hidden reports whether a token's text is not for the reader.
func (t *Tokenizer) hidden(id int32) bool { return t.kinds[id].special() && !t.shown[id] }

// AppendBytes appends the bytes that a token stands for. Control and unknown
// tokens stand for nothing unless renderSpecial is set; then, and for
// user-defined tokens always, it is their text. An id outside the vocabulary
// gives U+FFFD.
func (t *Tokenizer) AppendBytes(dst []byte, id int32, renderSpecial bool) []byte {
	if id < 0 || int(id) >= len(t.texts) {
		return append(dst, replacement...)
	}
	if t.hidden(id) && !renderSpecial {
		return dst
	}
	return append(dst, t.raw(id)...)
}

// Decode returns the bytes that the ids stand for as they are: invalid UTF-8 if
// the ids are such. What a person is shown goes through a Decoder.
func (t *Tokenizer) Decode(ids []int32, renderSpecial bool) string {
	b := make([]byte, 0, len(ids)*4)
	for _, id := range ids {
		b = t.AppendBytes(b, id, renderSpecial)
	}
	return string(b)
}
