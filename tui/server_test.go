package tui

import (
	"strings"
	"testing"

	"bmoe/internal/units"
	"bmoe/profile"
)

// ofServer makes a snapshot one of a server's run: gaps between deltas, what it
// tells, and nothing of what only the local engine has.
func ofServer(s *profile.Snapshot, told bool) *profile.Snapshot {
	r := &profile.Snapshot{At: s.At, Phase: profile.Idle, Run: 1, Turn: 1, Step: 120, Count: 119, CtxUsed: 1140, Ctx: 8192, Elapsed: 6 * units.Second,
		TTFT: profile.Some[int64](800e6), DecodeTPS: profile.Some(23.1)}
	r.Model.Name, r.Mapping.State = "Qwen3-235B-A22B", profile.MappingNone
	for i := range r.Count {
		wall := 40e6 + (i*7919)%13*1e6
		r.Tokens[i] = profile.Record{Run: 1, Step: int(i) + 2, Wall: wall, Undivided: true}
		r.Sum.Add(&r.Tokens[i])
	}
	r.Sum.Undivided = true
	r.Mean = r.Sum.Means()
	r.Wall.P50, r.Wall.P95 = profile.Some[int64](46e6), profile.Some[int64](52e6)
	far := &r.Remote
	far.Server, far.Address, far.RoundTrip = "vLLM", "gpu-box:8000", profile.Some[int64](1_200_000)
	far.Run.Deltas = 120
	far.Load.Why = "this server has no metrics"
	if told {
		far.Run = profile.RemoteRun{Deltas: 120, Told: true, Prompt: profile.Some[int64](1020), Cached: profile.Some[int64](512), Queue: profile.Some(0.31),
			Prefill: profile.Some(0.42), Decode: profile.Some(4.1), DecodeTPS: profile.Some(29.2)}
		far.Load = profile.RemoteLoad{Known: true, Running: profile.Some[int64](3), Waiting: profile.Some[int64](1), KV: profile.Some(93.4), CacheHit: profile.Some(41.0),
			MostRunning: profile.Some[int64](4), MostWaiting: profile.Some[int64](2)}
	}
	return r
}

// Where a server computes, its pane shows what it tells; panes that have nothing say
// why, and leave their rows to the others.
func TestTheScreenOfAServer(t *testing.T) {
	for _, told := range []bool{false, true} {
		name := map[bool]string{false: "server-silent", true: "server-told"}[told]
		h := start(t, 120, 40, Options{}, newFake())
		s := ofServer(h.m.live, told)
		h.m.live = s
		h.m.show(s)
		golden(t, name+"-120x40", h.screen())
		screen := h.screen()
		for _, want := range []string{"2 cache  n/a: ", "3 lanes  n/a: ", "4 file  n/a: ", "5 server  vLLM", "gap between deltas"} {
			if !strings.Contains(screen, want) {
				t.Errorf("%s: %q is not shown", name, want)
			}
		}
		if before, _, ok := strings.Cut(screen, "2 cache"); !ok || strings.Count(before, "\n") < 18 {
			t.Errorf("%s: the timeline did not get the rows of the others", name)
		}
		h.m.w, h.m.h = 80, 24
		h.m.focus = onPanes
		h.m.layout()
		h.m.show(s)
		golden(t, name+"-80x24", h.screen())
	}
}

// A silence is told in the header while it lasts.
func TestASilentServer(t *testing.T) {
	h := start(t, 120, 40, Options{}, newFake())
	s := ofServer(h.m.live, false)
	s.Phase, s.Prompt = profile.Prefill, 0
	h.m.live = s
	if text := h.m.phaseText(); text != "waiting for the server" {
		t.Errorf("at first %q", text)
	}
	s.Remote.Silence = profile.Some[int64](12 * units.Second)
	if text := h.m.phaseText(); text != "nothing heard for 12 s" {
		t.Errorf("then %q", text)
	}
}
