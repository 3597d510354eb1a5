package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The flags' types. Type is what the help shows for the value. Each refuses what it cannot take at once, naming what it
// can, so that no wrong value reaches the engine.

// intValue is a whole number within bounds.
type intValue struct {
	dst         *int
	least, most int
	auto        string // a word for zero, if that is how the default is chosen
}

func (v *intValue) Type() string { return "N" }

func (v *intValue) String() string {
	switch {
	case v.dst == nil, *v.dst == 0 && v.auto == "" && v.least > 0:
		return "" // the engine chooses
	case *v.dst == 0 && v.auto != "":
		return v.auto
	}
	return strconv.Itoa(*v.dst)
}

func (v *intValue) Set(s string) error {
	if v.auto != "" && s == v.auto {
		*v.dst = 0
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < v.least || n > v.most {
		return fmt.Errorf("want %s", v.want())
	}
	*v.dst = n
	return nil
}

func (v *intValue) want() string {
	w := fmt.Sprintf("%d to %d", v.least, v.most)
	if v.most == math.MaxInt {
		w = fmt.Sprintf("%d or more", v.least)
	}
	if v.auto != "" {
		w += ", or " + v.auto
	}
	return w
}

// floatValue is a number that holds what ok asks for.
type floatValue struct {
	dst  *float64
	ok   func(float64) bool
	want string
}

func (v *floatValue) Type() string { return "F" }

func (v *floatValue) String() string {
	if v.dst == nil {
		return ""
	}
	return strconv.FormatFloat(*v.dst, 'g', -1, 64)
}

func (v *floatValue) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) || !v.ok(f) { // NaN fails every comparison
		return fmt.Errorf("want %s", v.want)
	}
	*v.dst = f
	return nil
}

// wordValue is one of some words.
type wordValue struct {
	dst   *string
	words []string
}

func (v *wordValue) Type() string { return strings.Join(v.words, "|") }

func (v *wordValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}

func (v *wordValue) Set(s string) error {
	if !slices.Contains(v.words, s) {
		return fmt.Errorf("want %s", strings.Join(v.words, ", "))
	}
	*v.dst = s
	return nil
}

// textValue is any text; what it stands for is its type.
type textValue struct {
	dst  *string
	kind string
}

func (v *textValue) Type() string { return v.kind }

func (v *textValue) String() string {
	if v.dst == nil {
		return ""
	}
	return *v.dst
}

func (v *textValue) Set(s string) error {
	*v.dst = s
	return nil
}

// idsValue is a list of token ids.
type idsValue struct{ dst *[]int32 }

func (v *idsValue) Type() string { return "1,2,3" }

func (v *idsValue) String() string { return "" }

func (v *idsValue) Set(s string) error {
	var ids []int32
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a token id: want ids like 1,2,3", word)
		}
		ids = append(ids, int32(n))
	}
	*v.dst = ids
	return nil
}
