package tokenizer

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// sentence is a small "llama" model: bytes for a and é only, some words.
func sentence() fakeMeta {
	tokens := []string{"<unk>", "<s>", "</s>", "<0x61>", "<0xC3>", "<0xA9>", "\u2581", "h", "e", "l", "o", "he", "ll", "hell", "\u2581he", "<t>", "<", "s", ">", "<s"}
	scores := []float64{0, 0, 0, 0, 0, 0, -1, -2, -2, -2, -2, -3, -4, -6, -5, 0, -8, -8, -8, -9}
	types := []int64{2, 3, 3, 6, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4, 1, 1, 1, 1}
	return fakeMeta{keyModel: "llama", keyTokens: tokens, keyScores: scores, keyTokenType: types}
}

func TestSentencePiece(t *testing.T) {
	tok := mustNew(t, sentence())
	if tok.BOS() != 1 || tok.EOS() != 2 || len(tok.Warnings()) != 0 {
		t.Errorf("BOS %d, EOS %d, warnings %q", tok.BOS(), tok.EOS(), tok.Warnings())
	}
	for _, c := range []struct {
		text string
		o    Options
		want []int32
	}{
		{"", Options{}, nil},
		{"", Options{AddSpecial: true}, []int32{1}},
		// he (-3) joins before ll (-4); then the prefix takes he (-5) before hell (-6) can be made.
		{"hello", Options{AddSpecial: true}, []int32{1, 14, 12, 10}},
		{"a\u00e9?", Options{}, []int32{6, 3, 4, 5, 0}}, // bytes; one without a token is unknown
		{"o<t>o", Options{}, []int32{6, 10, 15, 6, 10}}, // the prefix comes again behind a token
		// What a person writes is no control token, even where merges lead to one.
		{"<s>", Options{}, []int32{6, 19, 18}},
		{"<s>", Options{ParseSpecial: true}, []int32{1}},
		{strings.Repeat("hell", 30), Options{}, append([]int32{14, 12}, slices.Repeat([]int32{13}, 29)...)},
	} {
		if got := tok.Encode(c.text, c.o); !slices.Equal(got, c.want) {
			t.Errorf("%q %+v: got %v, want %v", c.text, c.o, got, c.want)
		}
	}
	if got := tok.Decode([]int32{14, 12, 10, 4, 5, 1}, false); got != " hello\u00e9" {
		t.Errorf("decoded as %q", got)
	}
	m := sentence()
	m[keySpacePrefix], m[keyAddEOS], m[keyAddBOS] = false, true, false
	if got := mustNew(t, m).Encode("hello", Options{AddSpecial: true}); !slices.Equal(got, []int32{13, 10, 2}) {
		t.Errorf("without the prefix, and with EOS: %v", got)
	}
	m[keyScores].([]float64)[11] = math.NaN() // a token that cannot be compared is never made
	if got := mustNew(t, m).Encode("he", Options{}); !slices.Equal(got, []int32{7, 8}) {
		t.Errorf("got %v", got)
	}
	for key, value := range map[string]any{keyScores: []float64{1}, keySpacePrefix: "x", keyTokens: nil} {
		m := sentence()
		m[key] = value
		if _, err := New(m); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: error %v", key, err)
		}
	}
}

// An unknown pre-tokenizer is taken for the one that its name is most like.
func TestUnknownPre(t *testing.T) {
	for pre, like := range map[string]string{"qwen36": "qwen35", "deepseek-v9": "deepseek-v3", "GLM5": "glm4", "klingon": "llama-bpe"} {
		tok := mustNew(t, with(keyPre, pre))
		w := tok.Warnings()
		if len(w) != 1 || !strings.Contains(w[0], `"`+pre+`"`) || !strings.Contains(w[0], `"`+like+`"`) {
			t.Errorf("%s: warnings %q", pre, w)
		}
		if got, want := pieces(tok.model.(*bpe).pre.stages, ruleProbe), pieces(preTokenizers[like].stages, ruleProbe); !slices.Equal(got, want) {
			t.Errorf("%s splits into %q, not as %s", pre, got, like)
		}
	}
	if w := mustNew(t, with(keyPre, nil)).Warnings(); len(w) != 1 || !strings.Contains(w[0], "no "+keyPre) {
		t.Errorf("warnings %q", w)
	}
}

// A piece that is a token as a whole is taken so where the rule says it.
func TestWholePieces(t *testing.T) {
	m := with(keyPre, "llama-bpe")
	m[keyBOS] = int64(259)
	m[keyTokens] = append(slices.Clone(m[keyTokens].([]string)), "\u0120ehll")
	m[keyTokenType] = append(slices.Clone(m[keyTokenType].([]int64)), 1)
	if got := mustNew(t, m).Encode(" ehll", Options{AddSpecial: true}); !slices.Equal(got, []int32{259, 266}) {
		t.Errorf("got %v", got)
	}
	m[keyPre] = "qwen2"
	if got := mustNew(t, m).Encode(" ehll", Options{AddSpecial: true}); !slices.Equal(got, []int32{' ', 'e', 'h', 257}) {
		t.Errorf("merged: got %v", got)
	}
}
