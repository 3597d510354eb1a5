package expert

import (
	"math/rand/v2"
	"testing"

	"bmoe/engine/expert/policy"
	"bmoe/profile"
)

// told keeps by hand what a census should know of an expert.
type told struct {
	used, read, gone, uses, reads int32
	by                            policy.Key
}

// TestTheCensusKnowsWhatHappened holds the map of experts against the directory's own
// decisions, in prompts that touch more than the cache holds and in single tokens.
func TestTheCensusKnowsWhatHappened(t *testing.T) {
	f := newFixture(t)
	shape := f.shape(t)
	s := f.streamer(t, 150_000, 2, true)
	rng := rand.New(rand.NewPCG(3, 4))
	want := make([]told, shape.Keys())
	token := int32(0)
	var m profile.ExpertMap
	check := func() {
		t.Helper()
		s.Experts(&m)
		if m.Token != token || m.Experts != 12 || len(m.Layers) != 4 || m.Layers[1].Bytes != 0 || m.Layers[0].Bytes != 17001 {
			t.Fatalf("token %d of %d, %d experts, layers %+v", m.Token, token, m.Experts, m.Layers)
		}
		for k := range m.Cells {
			c, w := &m.Cells[k], &want[k]
			resident := s.dir.IsResident(policy.Key(k))
			if c.Used != w.used || c.Uses != w.uses || c.Read != w.read || c.Reads != w.reads || c.Gone != w.gone || (c.State == profile.Resident) != resident {
				t.Fatalf("token %d, expert %d: %+v, want %+v and resident %v", token, k, *c, *w, resident)
			}
			if w.gone > 0 && (c.By != int32(w.by) || m.Policies[c.Why-profile.GonePolicy] != "lru") {
				t.Fatalf("token %d, expert %d: given up for %d by %d, want %d by lru", token, k, c.By, c.Why, w.by)
			}
		}
	}
	evictions := 0
	for step := range 150 {
		layer, tokens := []int{0, 2, 3}[step%3], 1
		if step%30 < 3 {
			tokens = 8
		}
		var ids []int32
		for range tokens {
			for _, e := range rng.Perm(12)[:3] {
				ids = append(ids, int32(e))
			}
		}
		if layer == 0 {
			s.Tokens(make([]int32, tokens))
			token += int32(tokens)
		}
		b := s.Acquire(layer, tokens, ids)
		for _, st := range b.plan.Steps {
			w := &want[st.Key]
			w.used = token
			w.uses++
			if st.Hit {
				continue
			}
			w.read = token
			w.reads++
			if st.Evicted != policy.None {
				want[st.Evicted].gone, want[st.Evicted].by = token, st.Key
				evictions++
			}
		}
		f.compute(b, 2, func(int32, bool) {})
		if err := b.Release(); err != nil {
			t.Fatal(err)
		}
		check()
	}
	if evictions == 0 {
		t.Fatal("nothing was evicted: the case shows nothing")
	}
	before := append([]profile.ExpertCell(nil), m.Cells...)
	if err := s.Resize(100_000, 0); err != nil {
		t.Fatal(err)
	}
	s.Experts(&m)
	gone := 0
	for k := range m.Cells {
		if c := &m.Cells[k]; before[k].State == profile.Resident && c.State != profile.Resident {
			gone++
			if c.Why != profile.GoneShrunk || c.By != -1 || c.Gone != token {
				t.Errorf("expert %d went with the budget: %+v", k, *c)
			}
		}
	}
	if gone == 0 {
		t.Error("a smaller budget took nothing away")
	}
	s.Empty()
	s.Experts(&m)
	for k, c := range m.Cells {
		if c != (profile.ExpertCell{By: -1}) {
			t.Fatalf("an emptied cache knows of expert %d: %+v", k, c)
		}
	}
	if n := testing.AllocsPerRun(20, func() { s.Experts(&m) }); n != 0 {
		t.Errorf("%v allocations for a look", n)
	}
}

func TestTheCensusKnowsOfGuesses(t *testing.T) {
	f := newFixture(t)
	s, h := aheadStreamer(t, f)
	key := f.shape(t).Key(2, 5)
	var m profile.ExpertMap
	look := func(what string, state profile.ExpertState, event profile.Event) {
		t.Helper()
		s.Experts(&m)
		c := &m.Cells[key]
		if got, _ := m.Latest(c); c.State != state || got != event {
			t.Errorf("%s: %+v, event %d; want state %d and event %d", what, *c, got, state, event)
		}
	}
	s.Tokens([]int32{1})
	s.readAhead(key)
	look("read ahead", profile.Ahead, profile.WasGuessed)
	s.cancel(key)
	look("taken back", profile.Absent, profile.WasGuessed)
	s.Tokens([]int32{1})
	s.readAhead(key)
	b := s.Acquire(2, 1, []int32{5})
	look("demanded", profile.Resident, profile.WasRead)
	for len(h.queue) > 0 {
		h.complete(0)
	}
	b.Computed(0, StageIn)
	b.Computed(0, StageOut)
	if err := b.Release(); err != nil {
		t.Fatal(err)
	}
	s.Tokens([]int32{1})
	if err := s.Acquire(2, 1, []int32{5}).Release(); err == nil {
		look("used again", profile.Resident, profile.WasHit)
	}
}
