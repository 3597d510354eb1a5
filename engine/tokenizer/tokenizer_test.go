package tokenizer

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// tiny is a vocabulary of all bytes, some merges, and special tokens of each kind.
func tiny() fakeMeta {
	var tokens []string
	var types []int64
	for _, r := range byteRunes {
		tokens, types = append(tokens, string(r)), append(types, 1)
	}
	add := func(text string, kind Kind) { tokens, types = append(tokens, text), append(types, int64(kind)) }
	add("he", Normal)          // 256
	add("ll", Normal)          // 257
	add("hell", Normal)        // 258
	add("<s>", Control)        // 259
	add("<s><s>", UserDefined) // 260
	add("<unk>", Unknown)      // 261
	add("<|im_end|>", Normal)  // 262: made a control token
	add("<pad>", Unused)       // 263
	add("", Normal)            // 264: a hole
	add("a b", Normal)         // 265: a space is not in the alphabet
	return fakeMeta{keyModel: "gpt2", keyPre: "qwen2", keyTokens: tokens, keyTokenType: types, keyMerges: []string{"h e", "l l", "he ll", "x y", "xy z"},
		keyBOS: int64(259), keyEOS: int64(259)}
}

func with(key string, value any) fakeMeta {
	m := maps.Clone(tiny())
	if value == nil {
		delete(m, key)
	} else {
		m[key] = value
	}
	return m
}

func TestNewErrors(t *testing.T) {
	noBOS := with(keyBOS, nil)
	noBOS[keyAddBOS] = true
	for _, c := range []struct {
		meta fakeMeta
		want string
	}{
		{with(keyModel, nil), keyModel + ": missing"},
		{with(keyModel, "rwkv"), `unknown tokenizer.ggml.model "rwkv" (known: gemma4, gpt2, llama)`},
		{with(keyTokens, nil), keyTokens},
		{with(keyTokens, []string{}), "0 elements"},
		{with(keyTokenType, []int64{1, 1}), "has 2 elements, but"},
		{with(keyTokenType, "x"), "wrong type"},
		{with(keyMerges, nil), keyMerges},
		{with(keyMerges, []string{"h e", "hell"}), `element 1: "hell"`},
		{with(keyMerges, []string{" "}), "element 0"},
		{with(keyMerges, []string{"h "}), "element 0"},
		{with(keyBOS, "x"), "wrong type"},
		{noBOS, keyAddBOS + " is true, but " + keyBOS + " is missing"},
	} {
		if _, err := New(c.meta); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

// Published vocabularies have texts twice. They load, the later token is the one
// that a text becomes, both decode, and a warning names a pair.
func TestTextsThatAreThereTwice(t *testing.T) {
	m := tiny()
	texts := append(slices.Clone(m[keyTokens].([]string)), "he", "he", "")
	types := m[keyTokenType].([]int64)
	for range 3 {
		types = append(slices.Clone(types), int64(Normal))
	}
	m[keyTokens], m[keyTokenType] = texts, types
	tok := mustNew(t, m)
	first := int32(slices.Index(texts, "he"))
	last := int32(len(texts) - 2)
	if id, _ := tok.ID("he"); id != last || first == last {
		t.Errorf("the text has id %d, want the last of its tokens, %d (the first is %d)", id, last, first)
	}
	if got := tok.Encode("he", Options{}); !slices.Equal(got, []int32{last}) {
		t.Errorf("encoded as %v, want %d", got, last)
	}
	if got := tok.Decode([]int32{first, last}, false); got != "hehe" {
		t.Errorf("decoded as %q", got)
	}
	if w := tok.Warnings(); len(w) != 1 || !strings.Contains(w[0], `"he"`) || !strings.Contains(w[0], " too: 2 (") {
		t.Errorf("warnings %q", w)
	}
	if w := mustNew(t, tiny()).Warnings(); w != nil {
		t.Errorf("warnings about a sound vocabulary: %q", w)
	}
}

func TestEncodeSpecial(t *testing.T) {
	m := tiny()
	m[keyAddBOS], m[keyAddEOS] = true, true
	tok := mustNew(t, m)
	h := func(s string) (ids []int32) { // single bytes
		for i := range len(s) {
			ids = append(ids, int32(s[i]))
		}
		return ids
	}
	for _, c := range []struct {
		text string
		o    Options
		want []int32
	}{
		{"", Options{}, nil},
		{"", Options{AddSpecial: true}, []int32{259, 259}},
		{"hell", Options{AddSpecial: true}, []int32{259, 258, 259}},
		{"<s>hell", Options{}, append(h("<s>"), 258)},
		{"<s>hell", Options{ParseSpecial: true}, []int32{259, 258}},
		// The longest wins, wherever it lies; user-defined tokens always count.
		{"<s><s><s>", Options{}, append([]int32{260}, h("<s>")...)},
		{"<s><s><s>", Options{ParseSpecial: true}, []int32{260, 259}},
		{"x<unk>y<pad>", Options{ParseSpecial: true}, slices.Concat([]int32{'x', 261, 'y'}, h("<pad>"))},
		{"<|im_end|>", Options{}, h("<|im_end|>")},
		{"<|im_end|>", Options{ParseSpecial: true}, []int32{262}},
		// A merge whose result is no token falls apart again.
		{"xyz", Options{}, h("xyz")},
	} {
		if got := tok.Encode(c.text, c.o); !slices.Equal(got, c.want) {
			t.Errorf("%q %+v: got %v, want %v", c.text, c.o, got, c.want)
		}
	}
}

func TestDecode(t *testing.T) {
	tok := mustNew(t, tiny())
	ids := []int32{258, 259, 260, 261, 262, 263, 264, 265, 'o', -1, 266}
	if got, want := tok.Decode(ids, false), "hell<s><s>a bo\uFFFD\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := tok.Decode(ids, true), "hell<s><s><s><unk><|im_end|>a bo\uFFFD\uFFFD"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if text, kind := tok.Token(262); text != "<|im_end|>" || kind != Control {
		t.Errorf("token 262 is %q, %d", text, kind)
	}
	if text, kind := tok.Token(1000); text != "" || kind != Undefined {
		t.Errorf("token 1000 is %q, %d", text, kind)
	}
	if id, ok := tok.ID(""); ok || id != None {
		t.Errorf("the empty text has id %d", id)
	}
	if tok.BOS() != 259 || tok.EOS() != 259 || tok.eot != 262 || !tok.IsEOG(262) || !tok.IsEOG(259) || tok.IsEOG(None) || tok.Len() != 266 {
		t.Error("special ids are wrong")
	}
}

// A template may write BOS itself; it must not come twice.
func TestEncodePrompt(t *testing.T) {
	m := tiny()
	m[keyAddBOS], m[keyAddEOS] = true, true
	tok := mustNew(t, m)
	for text, want := range map[string][]int32{"hell": {259, 258}, "<s>hell": {259, 258}, "": {259}, "hell<s>": {259, 258, 259}} {
		if got := tok.EncodePrompt(text, nil); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
	if got := mustNew(t, tiny()).EncodePrompt("hell", nil); !slices.Equal(got, []int32{258}) {
		t.Errorf("got %v", got)
	}
	// What came out of a message is text.
	const text = "<s>hell<s>hell<s>"
	if got := mustNew(t, tiny()).EncodePrompt(text, []int{8}); !slices.Equal(got, slices.Concat([]int32{259, 258}, tok.Encode("<s>hell", Options{})[:4], []int32{259})) {
		t.Errorf("got %v", got)
	}
	if got := tok.Specials(text); !slices.Equal(got, [][2]int{{0, 3}, {7, 10}, {14, 17}}) {
		t.Errorf("places %v", got)
	}
}

// Control tokens that tell the reader something are rendered, and parsed as before.
func TestShow(t *testing.T) {
	tok := mustNew(t, tiny())
	tok.Show(func(text string) bool { return text == "<unk>" })
	ids := []int32{'x', 261, 259, 'y'}
	d := tok.NewDecoder()
	streamed := ""
	for _, id := range ids {
		streamed += d.Push(id)
	}
	if got := tok.Decode(ids, false); got != "x<unk>y" || streamed != got {
		t.Errorf("decoded as %q, streamed as %q", got, streamed)
	}
	if got := tok.Encode("<unk>", Options{}); len(got) != 5 {
		t.Errorf("a person's text becomes %v", got)
	}
}

// gpt-oss ends a call and an answer, but not with <|end|>.
func TestHarmony(t *testing.T) {
	m := tiny()
	for _, text := range []string{"<|end|>", "<|call|>", "<|return|>", "<|channel|>"} {
		m[keyTokens] = append(m[keyTokens].([]string), text)
		m[keyTokenType] = append(m[keyTokenType].([]int64), 3)
	}
	tok := mustNew(t, m)
	for text, want := range map[string]bool{"<|end|>": false, "<|call|>": true, "<|return|>": true, "<|channel|>": false} {
		id, _ := tok.ID(text)
		if tok.IsEOG(id) != want || (tok.Decode([]int32{id}, false) == text) == want {
			t.Errorf("%s: ends %v, shown as %q", text, tok.IsEOG(id), tok.Decode([]int32{id}, false))
		}
	}
}

// Bytes come in any pieces; what is shown is valid, and shown as soon as it is
// certain.
func TestDecoder(t *testing.T) {
	tok := mustNew(t, tiny())
	push := func(s string) (shown []string) {
		d := tok.NewDecoder()
		for i := range len(s) {
			shown = append(shown, d.Push(int32(s[i])))
		}
		return append(shown, d.Flush())
	}
	const bad = "\uFFFD"
	for s, want := range map[string][]string{
		"aé€🦙":              {"a", "", "é", "", "", "€", "", "", "", "🦙", ""},
		"\xf0\x9f\xa6a":     {"", "", "", bad + "a", ""},
		"\xf0\x9f":          {"", "", bad},
		"\xff\x80b":         {bad, bad, "b", ""},
		"\xe2\xe2\x82\xac":  {"", bad, "", "€", ""},
		"\xe0\x80\x80":      {"", bad + bad, bad, ""}, // no character begins with e0 80
		"\xed\xa0\x80":      {"", bad + bad, bad, ""}, // nor with ed a0
		"\xf4\x90":          {"", bad + bad, ""},
		"\xf0\x9f\xa6\xf0x": {"", "", "", bad, bad + "x", ""},
		"\xc3\xa9\uFFFD":    {"", "é", "", "", bad, ""},
	} {
		if got := push(s); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
	d := tok.NewDecoder()
	if got := d.Push(259) + d.Push(260) + d.Push(999); got != "<s><s>"+bad {
		t.Errorf("got %q", got)
	}
	d.RenderSpecial = true
	if got := d.Push(259); got != "<s>" {
		t.Errorf("got %q", got)
	}
}

// FuzzRoundTrip: the ids of any bytes decode to these bytes, and a Decoder shows
// them as valid UTF-8 with nothing lost.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range splitSamples {
		f.Add(s, true)
	}
	f.Add("<|im_start|>user\nhi<|im_end|><think>", true)
	tok, _ := openPart(f, "qwen3.json")
	f.Fuzz(func(t *testing.T, s string, special bool) {
		ids := tok.Encode(s, Options{ParseSpecial: special})
		if got := tok.Decode(ids, true); got != s {
			t.Fatalf("%q decodes to %q", s, got)
		}
		d := tok.NewDecoder()
		d.RenderSpecial = true
		var shown strings.Builder
		for _, id := range ids {
			part := d.Push(id)
			if !utf8.ValidString(part) {
				t.Fatalf("shown: %q", part)
			}
			shown.WriteString(part)
		}
		shown.WriteString(d.Flush())
		if utf8.ValidString(s) && shown.String() != s || !utf8.ValidString(shown.String()) {
			t.Fatalf("%q is shown as %q", s, shown.String())
		}
		if want := strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\uFFFD", ""); strings.ReplaceAll(shown.String(), "\uFFFD", "") != want {
			t.Fatalf("%q is shown as %q", s, shown.String())
		}
	})
}

func TestConcurrent(t *testing.T) {
	tok, f := openPart(t, "qwen3.json")
	done := make(chan bool)
	for range 4 {
		go func() {
			ok := true
			for range 20 {
				for _, c := range f.Cases {
					ok = ok && slices.Equal(f.real(tok.Encode(c.Text, Options{})), c.IDs)
				}
			}
			done <- ok
		}()
	}
	for range 4 {
		if !<-done {
			t.Error("ids differ between goroutines")
		}
	}
}
