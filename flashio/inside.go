package flashio

import (
	"fmt"
	"slices"
)

// InsideMapping asks the operating system which of the addresses lie inside a
// mapping of one of the set's files, made by this process in whatever way, and
// returns their indices in order. ErrNotAvailable means that the system cannot
// tell: then nothing may be released.
//
// The answer decides whether memory is unmapped under live pointers, so it is
// checked: views that this package made of these files are asked about as well,
// and must be found.
func InsideMapping(s *Files, ptrs []uintptr) ([]int, error) {
	known := live.viewsOf(s)
	in, err := insideMapping(s, append(slices.Clone(ptrs), known...))
	if err != nil {
		return nil, fmt.Errorf("ask which addresses lie in mappings: %w", err)
	}
	own := len(in) - len(known)
	for i := range known {
		if own < 0 || in[own+i] != len(ptrs)+i {
			return nil, fmt.Errorf("ask which addresses lie in mappings: the system does not know the mapping at %#x: %w", known[i], ErrNotAvailable)
		}
	}
	return slices.Clip(in[:own]), nil
}

// span is a half-open range of addresses.
type span struct{ from, to uintptr }

func (s span) has(p uintptr) bool { return p >= s.from && p < s.to }

// insideBy returns the indices of the addresses that lie in mappings of the
// set's files. region tells the region around an address, and whether it is
// one; it is asked once per region.
func insideBy(ptrs []uintptr, region func(uintptr) (sp span, ofSet bool, err error)) ([]int, error) {
	type verdict struct {
		span
		ofSet bool
	}
	var seen []verdict
	var in []int
	for i, p := range ptrs {
		at := slices.IndexFunc(seen, func(v verdict) bool { return v.has(p) })
		if at < 0 {
			sp, ofSet, err := region(p)
			if err != nil {
				return nil, err
			}
			at = len(seen)
			seen = append(seen, verdict{sp, ofSet})
		}
		if seen[at].ofSet {
			in = append(in, i)
		}
	}
	return in, nil
}
