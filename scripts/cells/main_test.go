package main

import (
	"strings"
	"testing"
)

func TestCellsAreDrawn(t *testing.T) {
	const cells = `cell,round,variant,excluded,decode_tps,flags
0,0,"lanes 1, cache 9 MiB",warm-up,1,
1,1,"lanes 1, cache 9 MiB",,10,simulated
2,1,lanes 4,disturbed: CPU,30,simulated
3,2,"lanes 1, cache 9 MiB",,20,simulated
4,2,lanes 4,,,simulated
`
	v, err := read(strings.NewReader(cells))
	if err != nil || len(v) != 2 || len(v[0].counted) != 2 || len(v[1].counted) != 0 || len(v[1].other) != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	got := svg("Lanes & caches", v)
	for _, want := range []string{"Lanes &amp; caches (SIMULATED)", ">15.0 tok/s<", ">n/a<", "lanes 1, cache 9 MiB", `fill="none"`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	for text, want := range map[string]string{"": "no cells", "a,b\n1,2\n": "no column variant"} {
		if _, err := read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
