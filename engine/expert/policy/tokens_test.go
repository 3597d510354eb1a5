package policy

import (
	"slices"
	"testing"
)

// guesses returns what a table knows of a token in a layer.
func (t *TokenTable) guesses(id int32, layer int) []int32 {
	dst := make([]int32, t.shape.Used)
	return dst[:t.Guess(id, layer, dst)]
}

func TestTokenTableRemembersByTokenAndLayer(t *testing.T) {
	s := same(16, 2, 10, 0, 10)
	tab := NewTokenTable(s, 100)
	if got := tab.guesses(7, 0); len(got) != 0 {
		t.Errorf("%v is known of a token that never came", got)
	}
	tab.Learn(7, 0, []int32{3, 4})
	tab.Learn(7, 2, []int32{5, 6})
	tab.Learn(8, 0, []int32{9, 10})
	for _, c := range []struct {
		id    int32
		layer int
		want  []int32
	}{{7, 0, []int32{3, 4}}, {7, 2, []int32{5, 6}}, {8, 0, []int32{9, 10}}, {8, 2, nil}} {
		if got := tab.guesses(c.id, c.layer); !slices.Equal(got, c.want) {
			t.Errorf("token %d, layer %d: %v, want %v", c.id, c.layer, got, c.want)
		}
	}
	tab.Reset()
	if got := tab.guesses(7, 0); len(got) != 0 {
		t.Errorf("%v is known after everything was forgotten", got)
	}
}

// What came often and lately is guessed first; what came once gives way to it.
func TestTokenTableForgetsSlowly(t *testing.T) {
	tab := NewTokenTable(same(16, 2, 10), 100)
	for range 3 {
		tab.Learn(1, 0, []int32{3, 4})
	}
	tab.Learn(1, 0, []int32{3, 5})
	if got := tab.guesses(1, 0); !slices.Equal(got, []int32{3, 4}) {
		t.Errorf("%v after 3,4 three times and 3,5 once, want 3 and 4", got)
	}
	tab.Learn(1, 0, []int32{5, 3})
	tab.Learn(1, 0, []int32{5, 3})
	if got := tab.guesses(1, 0); !slices.Equal(got, []int32{3, 5}) {
		t.Errorf("%v after 5 came twice more, want 3 and 5", got)
	}
	// There is room for four experts: new ones take the place of the rarest.
	for e := range int32(10) {
		tab.Learn(1, 0, []int32{5, 6 + e})
	}
	if got := tab.guesses(1, 0); got[0] != 5 {
		t.Errorf("%v: what came every time is not the first guess", got)
	}
}

func TestTokenTableIsBounded(t *testing.T) {
	tab := NewTokenTable(same(16, 2, 10), 3*tableTokens)
	size := len(tab.experts)
	for id := range int32(tableTokens + 10) {
		tab.Learn(id, 0, []int32{id % 16, (id + 1) % 16})
	}
	if len(tab.experts) != size {
		t.Error("the table has grown")
	}
	for id := range int32(tableTokens + 10) {
		got, want := tab.guesses(id, 0), []int32{id % 16, (id + 1) % 16}
		if forgotten := id < 10; forgotten != (len(got) == 0) || !forgotten && !slices.Equal(got, want) {
			t.Fatalf("token %d of %d: %v; the ten oldest are forgotten, and nothing else", id, tableTokens+10, got)
		}
	}
}
