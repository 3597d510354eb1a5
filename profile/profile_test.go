package profile

import (
	"encoding/json"
	"math"
	"testing"
)

func TestNotMeasuredIsNull(t *testing.T) {
	got, err := json.Marshal(struct {
		None, NaN, Inf, Zero, Half Maybe[float64]
		Count                      Maybe[int64]
		Word                       Maybe[string]
		Flag                       Maybe[bool]
	}{NaN: Some(math.NaN()), Inf: Some(math.Inf(1)), Zero: Some(0.0), Half: Some(0.5), Count: Some[int64](0), Flag: Some(false)})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"None":null,"NaN":null,"Inf":null,"Zero":0,"Half":0.5,"Count":0,"Word":null,"Flag":false}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMaybeComesBack(t *testing.T) {
	for _, text := range []string{"null", "0", "1.5"} {
		var m Maybe[float64]
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if back, err := json.Marshal(m); err != nil || string(back) != text {
			t.Errorf("%s came back as %s (%v)", text, back, err)
		}
	}
}

func TestRatioOfNothingIsNotMeasured(t *testing.T) {
	if r := Ratio(1, 0); r.OK {
		t.Errorf("1/0 is %v", r.Value)
	}
	if r := Ratio(1, 2); !r.OK || r.Value != 0.5 {
		t.Errorf("1/2 is %+v", r)
	}
}

func TestASumIsMeasuredOnlyIfAllPartsAre(t *testing.T) {
	sum := newSum(&Start{Run: 3, Turn: 1})
	sum.Add(&Record{Run: 9, Wall: 10, Compute: 4, Mgmt: 1, MgmtSerial: 2, Stall: Some[int64](3), StallUnion: Some[int64](3), Other: 2, Hits: 5, MajorFaults: Some[int64](2), CPU: Some[int64](7)})
	sum.Add(&Record{Run: 9, Wall: 20, Compute: 14, Stall: Some[int64](3), Other: 3, StallUnion: Some[int64](4), Hits: 1, CPU: Some[int64](1)})
	want := Record{Run: 3, Turn: 1, Tokens: 2, Wall: 30, Compute: 18, Mgmt: 1, MgmtSerial: 2, Stall: Some[int64](6), Other: 5, StallUnion: Some[int64](7), Hits: 6,
		MajorFaults: Maybe[int64]{Value: 2}, CPU: Some[int64](8)}
	if sum != want {
		t.Errorf("got  %+v\nwant %+v", sum, want)
	}
	sum.Add(&Record{Wall: 6})
	mean := Means{Wall: Some[int64](12), Compute: Some[int64](6), Mgmt: Some[int64](0), MgmtSerial: Some[int64](0), Other: Some[int64](1)}
	if got := sum.Means(); got.Stall.OK || got.StallUnion.OK || got.Wall != mean.Wall || got.Compute != mean.Compute || got.Other != mean.Other {
		t.Errorf("means %+v", got)
	}
	none := newSum(&Start{Run: 1, Turn: 1})
	if got := none.Means(); got != (Means{}) {
		t.Errorf("the means of no tokens are %+v", got)
	}
}

func TestLatestWalksTheRing(t *testing.T) {
	var s Snapshot
	if _, ok := s.Latest(0); ok {
		t.Error("a record before the first token")
	}
	for i := range RingTokens + 10 {
		s.Tokens[s.Count%RingTokens] = Record{Step: i}
		s.Count++
	}
	for _, c := range []struct{ back, step int }{{0, RingTokens + 9}, {1, RingTokens + 8}, {RingTokens - 1, 10}} {
		if r, ok := s.Latest(c.back); !ok || r.Step != c.step {
			t.Errorf("%d back: %+v, %v, want step %d", c.back, r, ok, c.step)
		}
	}
	if _, ok := s.Latest(RingTokens); ok {
		t.Error("a record that was overwritten")
	}
}

func TestADisturbedResultSaysSoInWords(t *testing.T) {
	yes, no := Some(true), Some(false)
	for _, c := range []struct {
		d     Disturbed
		words string
	}{{Disturbed{}, ""}, {Disturbed{Drive: no, CPU: no}, ""}, {Disturbed{CPU: yes}, "disturbed: CPU"}, {Disturbed{Drive: yes, CPU: yes}, "disturbed: drive, CPU"},
		{Disturbed{Throttled: yes}, "disturbed: CPU throttled"}} {
		r := Result{Flags: append([]string{"simulated"}, c.d.Flags()...)}
		want := "SIMULATED"
		if c.words != "" {
			want += ", " + c.words
		}
		if c.d.String() != c.words || r.Qualifiers() != want || c.d.Any() != (c.words != "") {
			t.Errorf("%+v: %q, and of %q %q", c.d, c.d, r.Flags, r.Qualifiers())
		}
	}
	part := Disturbed{CPU: no, Drive: yes}.Or(Disturbed{CPU: yes})
	if part != (Disturbed{CPU: yes, Drive: yes}) {
		t.Errorf("two parts: %+v", part)
	}
}
