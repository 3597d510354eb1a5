package flashio

// span is a half-open range of addresses.
type span struct{ from, to uintptr }

// inside returns the indices of the addresses that lie in one of the spans.
func inside(spans []span, ptrs []uintptr) []int {
	var in []int
	for i, p := range ptrs {
		for _, s := range spans {
			if p >= s.from && p < s.to {
				in = append(in, i)
				break
			}
		}
	}
	return in
}
