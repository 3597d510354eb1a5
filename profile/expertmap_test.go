package profile

import "testing"

// A token's waiting goes to the layers by their longest misses, whole.
func TestStallIsSharedAmongLayers(t *testing.T) {
	var m ExpertMap
	m.Reset(4, 8)
	r := &Record{Stall: Some[int64](9_000_000)}
	m.ShareStall(r, []Miss{{Layer: 0, Wait: 100}, {Layer: 0, Wait: 200}, {Layer: 3, Wait: 100}, {Layer: 9, Wait: 0}})
	m.ShareStall(&Record{}, []Miss{{Layer: 1, Wait: 100}})
	for i, want := range []int64{6_000_000, 0, 0, 3_000_000} {
		if l := m.Layers[i]; l.Stall != want || l.Tokens != 1 {
			t.Errorf("layer %d: %+v, want %d of one token", i, l, want)
		}
	}
	if !m.Estimated || m.Timed {
		t.Error("an estimate passes for a measurement")
	}
}

func TestTheLatestEventOfAnExpert(t *testing.T) {
	m := &ExpertMap{Token: 20}
	for _, c := range []struct {
		cell ExpertCell
		want Event
		age  int32
	}{
		{ExpertCell{}, NoEvent, 20},
		{ExpertCell{Used: 18, Read: 3, Gone: 2}, WasHit, 2},
		{ExpertCell{Used: 18, Read: 18, Gone: 2}, WasRead, 2},
		{ExpertCell{Used: 18, Read: 18, Gone: 18}, WasEvicted, 2},
		{ExpertCell{Used: 18, Read: 18, Gone: 18, State: Resident}, WasRead, 2},
		{ExpertCell{Used: 18, Guessed: 20}, WasGuessed, 0},
	} {
		if e, age := m.Latest(&c.cell); e != c.want || age != c.age {
			t.Errorf("%+v: event %d %d tokens ago, want %d %d", c.cell, e, age, c.want, c.age)
		}
	}
	c := ExpertCell{Uses: 8, Reads: 2}
	if s := c.HitShare(); !s.OK || s.Value != 75 {
		t.Errorf("hit share %+v", s)
	}
	if s := (&ExpertCell{}).HitShare(); s.OK {
		t.Error("a share of no uses")
	}
}
