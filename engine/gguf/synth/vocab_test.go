package synth

import (
	"strings"
	"testing"
)

// Every token but bytes and controls is made by the merge of its rank, from
// tokens that come before it, and none is there twice.
func TestVocabulary(t *testing.T) {
	for _, n := range []int{minVocab, 300, 512, 4096, 151936} {
		tokens, types, merges := vocabulary(n)
		if len(tokens) != n || len(types) != n || len(merges) != n-256-controls {
			t.Fatalf("%d tokens: got %d, %d types, %d merges", n, len(tokens), len(types), len(merges))
		}
		rank := map[string]int{}
		for i, s := range tokens {
			if s == "" {
				t.Fatalf("token %d is empty", i)
			}
			if j, ok := rank[s]; ok {
				t.Fatalf("tokens %d and %d are both %q", j, i, s)
			}
			rank[s] = i
			if (types[i] == tokenControl) != (i >= n-controls) {
				t.Errorf("token %d has type %d", i, types[i])
			}
		}
		for i, m := range merges {
			a, b, ok := strings.Cut(m, " ")
			ra, oka := rank[a]
			rb, okb := rank[b]
			if made := 256 + i; !ok || !oka || !okb || ra >= made || rb >= made || tokens[made] != a+b {
				t.Fatalf("merge %d is %q, token %d is %q", i, m, made, tokens[made])
			}
		}
	}
}

func TestByteCharacters(t *testing.T) {
	runes := byteRunes()
	seen := map[rune]bool{}
	for b, r := range runes {
		if seen[r] {
			t.Errorf("byte %d shares %q", b, r)
		}
		seen[r] = true
	}
	// Known values of GPT-2's table.
	for b, want := range map[byte]rune{' ': 'Ġ', '\n': 'Ċ', 'A': 'A', 0: 'Ā', 0xff: 'ÿ', 0xad: 'Ń', 0x7f: 'ġ'} {
		if runes[b] != want {
			t.Errorf("byte %#x is %q, want %q", b, runes[b], want)
		}
	}
}
