package ab

import (
	"fmt"
	"slices"
	"strings"

	"bmoe/engine/backend"
)

// Variant is one combination of settings that an experiment tries.
type Variant struct {
	Name   string            // "release-mmap on, lanes 4"
	Values map[string]string // by setting, in the form that Apply takes
}

// mostVariants bounds the combinations of an experiment.
const mostVariants = 32

// Variants reads what to try: settings with the values of each, as in
// "release-mmap=off,on;io-threads=1,4", by the names of the chat or of the command
// line. Every combination is a variant, in the order of the text; the first is what
// the others are held against. live says whether every setting can be changed
// between runs; otherwise each run needs a session of its own.
func Variants(text string, rows []backend.Setting) (variants []Variant, live bool, err error) {
	variants, live = []Variant{{Values: map[string]string{}}}, true
	seen := map[string]bool{}
	for axis := range strings.SplitSeq(text, ";") {
		name, list, ok := strings.Cut(axis, "=")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.TrimSpace(list) == "" {
			return nil, false, fmt.Errorf("%q: want a setting and its values, as in release-mmap=off,on", strings.TrimSpace(axis))
		}
		i := slices.IndexFunc(rows, func(r backend.Setting) bool { return r.Name == name || r.Flag == name })
		if i < 0 {
			return nil, false, fmt.Errorf("%q is no setting", name)
		}
		row := &rows[i]
		if seen[row.Name] {
			return nil, false, fmt.Errorf("%s stands twice", name)
		}
		seen[row.Name] = true
		live = live && row.Live
		var values []string
		for value := range strings.SplitSeq(list, ",") {
			value = strings.TrimSpace(value)
			if row.Kind == backend.Switch {
				switch value {
				case "true":
					value = backend.On
				case "false":
					value = backend.Off
				}
			}
			if err := row.Check(value); err != nil {
				return nil, false, err
			}
			if slices.Contains(values, value) {
				return nil, false, fmt.Errorf("%s has the value %s twice", name, value)
			}
			values = append(values, value)
		}
		variants = cross(variants, row, values)
		if len(variants) > mostVariants {
			return nil, false, fmt.Errorf("%d combinations and more: at most %d can be tried", len(variants), mostVariants)
		}
	}
	if len(variants) < 2 {
		return nil, false, fmt.Errorf("%q: one combination leaves nothing to compare", text)
	}
	return variants, live, nil
}

// cross combines variants with the values of another setting.
func cross(variants []Variant, row *backend.Setting, values []string) []Variant {
	var out []Variant
	for _, v := range variants {
		for _, value := range values {
			more := map[string]string{row.Name: value}
			for name, old := range v.Values {
				more[name] = old
			}
			name := row.Name + " " + row.Show(value)
			if v.Name != "" {
				name = v.Name + ", " + name
			}
			out = append(out, Variant{Name: name, Values: more})
		}
	}
	return out
}
