package engine

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"sort"

	"bmoe/engine/expert"
	"bmoe/engine/gguf"
)

const (
	tailShare   = 10  // the last one of so many experts of a shard are sampled
	tailSamples = 16  // how many of them are looked at
	tailProbe   = 512 // bytes from the middle of each
)

// zeroTails returns a warning for every shard whose last experts are all zeros,
// as a download leaves them that took its place on the drive at once and was
// never finished: such a file has its full size and a sound header. Trained
// weights have no such expert, let alone a tenth of them.
func zeroTails(f *gguf.File, l expert.Layout) ([]string, error) {
	type place struct{ offset, bytes int64 } // of one expert's matrix
	places := make([][]place, len(f.Shards))
	for _, projections := range l.Layers {
		for _, p := range projections {
			for e := range int64(l.Experts) {
				places[p.File] = append(places[p.File], place{p.Offset + e*p.Bytes, p.Bytes})
			}
		}
	}
	var warnings []string
	for i, list := range places {
		slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.offset, b.offset) })
		tail := list[len(list)-len(list)/tailShare:]
		if len(tail) == 0 {
			continue
		}
		file, err := os.Open(f.Shards[i].Path)
		if err != nil {
			return nil, err
		}
		zero := func(p place) bool {
			var probe [tailProbe]byte
			b := probe[:min(tailProbe, p.bytes)]
			if _, e := file.ReadAt(b, p.offset+(p.bytes-int64(len(b)))/2); e != nil && err == nil {
				err = e
			}
			return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 })
		}
		all := true
		n := min(tailSamples, len(tail))
		for k := 0; k < n && all; k++ {
			all = zero(tail[len(tail)-1-k*len(tail)/n])
		}
		if all {
			// Where the zeros begin: whoever stopped writing had written what lies before.
			from := list[sort.Search(len(list)-1, func(k int) bool { return zero(list[k]) })].offset
			warnings = append(warnings, fmt.Sprintf("%s holds only zeros from about byte %d of %d on, as an unfinished download does: compare its checksum, or get the file again",
				f.Shards[i].Path, from, f.Shards[i].Size))
		}
		file.Close() // opened for reading: nothing is lost if closing fails
		if err != nil {
			return nil, err
		}
	}
	return warnings, nil
}
