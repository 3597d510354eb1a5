package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"bmoe/engine/backend"
	"bmoe/internal/hub"
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

// settingValue is a setting of the engine's table, which checks what it is
// given.
type settingValue struct {
	row backend.Setting
	set func(name, value string) error
}

func (v *settingValue) Type() string {
	switch v.row.Kind {
	case backend.Switch:
		return "bool"
	case backend.Word:
		return strings.Join(v.row.Words, "|")
	case backend.Number:
		return "F"
	case backend.Text:
		return v.row.Unit
	}
	return strings.Join(append([]string{"N"}, v.row.Words...), "|")
}

func (v *settingValue) choices() []string { return v.row.Words }

// String is the default: the flag is not asked for the value again.
func (v *settingValue) String() string {
	if v.row.Kind == backend.Switch {
		return strconv.FormatBool(v.row.Default == backend.On)
	}
	return v.row.Default
}

// Set takes for a switch what flags are used to.
func (v *settingValue) Set(s string) error {
	if v.row.Kind == backend.Switch {
		switch s {
		case "true", "1":
			s = backend.On
		case "false", "0":
			s = backend.Off
		}
	}
	err := v.set(v.row.Name, s)
	var refused *backend.SettingError
	if errors.As(err, &refused) {
		return errors.New(refused.Problem) // the flag's name and the value stand before it
	}
	return err
}

// wordValue is one of some words.
type wordValue struct {
	dst   *string
	words []string
}

func (v *wordValue) Type() string { return strings.Join(v.words, "|") }

func (v *wordValue) choices() []string { return v.words }

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

// listValue is a path for each time that it is given.
type listValue struct{ dst *[]string }

func (v *listValue) Type() string { return "PATH" }

func (v *listValue) String() string { return "" }

func (v *listValue) Set(s string) error {
	if s == "" {
		return errors.New("want a folder")
	}
	*v.dst = append(*v.dst, s)
	return nil
}

// specValue is a model of the hub.
type specValue struct{ dst *string }

func (v *specValue) Type() string { return "OWNER/REPO[:QUANT]" }

func (v *specValue) String() string { return "" }

func (v *specValue) Set(s string) error {
	if _, err := hub.ParseSpec(s); err != nil {
		return errors.New("want OWNER/REPO or OWNER/REPO:QUANT, as in ggml-org/gpt-oss-20b-GGUF:mxfp4")
	}
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
