package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bmoe/engine"
)

// The flags' types. Type is what the help shows for the value. Each refuses what it cannot take at once, naming what it
// can, so that no wrong value reaches the engine.

// intValue is a whole number within bounds.
type intValue struct {
	dst         *int
	least, most int
}

func (v *intValue) Type() string { return "N" }

func (v *intValue) String() string {
	switch {
	case v.dst == nil, *v.dst == 0 && v.least > 0:
		return "" // the engine chooses
	}
	return strconv.Itoa(*v.dst)
}

func (v *intValue) Set(s string) error {
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
	return w
}

// budgetValue is the cache's budget: MiB, or auto.
type budgetValue struct{ dst *engine.Budget }

func (v *budgetValue) Type() string { return "N" }

func (v *budgetValue) String() string {
	switch {
	case v.dst == nil:
		return ""
	case v.dst.Auto:
		return "auto"
	}
	return strconv.FormatInt(v.dst.MiB(), 10)
}

func (v *budgetValue) Set(s string) error {
	if s == "auto" {
		*v.dst = engine.Budget{Auto: true}
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return fmt.Errorf("want 1 to %d, or auto", math.MaxInt32)
	}
	*v.dst = engine.Budget{Bytes: int64(n) << 20}
	return nil
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
