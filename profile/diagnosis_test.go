package profile

import (
	"os"
	"slices"
	"strings"
	"testing"

	"bmoe/internal/units"
)

const mib = units.MiB

// healthy is a run with which nothing is wrong: half computing, a tenth waiting.
func healthy() *Snapshot {
	s := &Snapshot{Run: 1, Turn: 1, Prompt: 20, TTFT: Some[int64](400e6)}
	s.Sum = Record{Tokens: 64, Wall: 64 * 100e6, Compute: 64 * 50e6, Mgmt: 64 * 10e6, Other: 64 * 30e6, Stall: Some[int64](64 * 10e6)}
	s.Model = Model{ExpertBytesAll: 8000 * mib, TokenCycle: 500 * mib, TokenBytes: 900 * mib}
	s.Cache = Cache{Streaming: true, Policy: "lru", Budget: 4000 * mib, Arena: 4000 * mib, LayerWorkingSet: 20 * mib, Fits: Some[int64](4096 * mib)}
	s.Lanes = Lanes{N: 4, Mode: "direct", Alone: Some(200.0 * mib), RateRun: Some(700.0 * mib)}
	s.Mapping = Mapping{State: MappingMapped, WeightsInside: Some[int64](0), Dense: "anon"}
	s.Process = Process{MajFltPerToken: Some(0.0), Threads: 2, Disturbed: Disturbed{Some(false), Some(false), Some(false)}}
	return s
}

// wait makes the token wait for so much of its time.
func wait(s *Snapshot, share float64) {
	s.Sum.Stall.Value = int64(share * float64(s.Sum.Wall))
	s.Sum.Compute = int64(0.8 * (1 - share) * float64(s.Sum.Wall))
	s.Sum.Mgmt, s.Sum.Other = 0, s.Sum.Wall-s.Sum.Stall.Value-s.Sum.Compute
}

func TestNothingIsWrong(t *testing.T) {
	if f := Diagnose(healthy()); len(f) != 0 {
		t.Errorf("%+v", f)
	}
	for _, s := range []*Snapshot{{}, {Run: 1}, {Run: 1, Sum: Record{Tokens: 100}}} {
		if f := Diagnose(s); len(f) != 0 {
			t.Errorf("of a run without figures: %+v", f)
		}
	}
}

// Each rule speaks where it should, says what it should, and is silent beside it.
func TestEachRule(t *testing.T) {
	for _, c := range []struct {
		rule       string
		speaks     func(s *Snapshot)
		evidence   string // a part of it
		action     string
		setting    string // with its value
		cost       Maybe[float64]
		silent     func(s *Snapshot) // of the same, on top
		whySilence string
	}{
		{"waits", func(s *Snapshot) { wait(s, 0.58) }, "58 % of a token waits for the drive: 58.0 of 100 ms", "memory has no room for a larger cache; a smaller quantization of the model reads less", "", Some(0.058),
			func(s *Snapshot) { wait(s, 0.14) }, "it waits little"},
		{"waits", func(s *Snapshot) {
			wait(s, 0.5)
			s.Cache.Fits = Some[int64](7000 * mib)
			for i, b := range []int64{4000, 6000, 8000} {
				s.Cache.WhatIf[i] = WhatIf{Budget: b * mib, InForce: i == 0, Hit: Some(50.0 + 20*float64(i)), TPS: Some(10.0 + float64(i))}
			}
			s.Cache.WhatIfs = 3
		}, "50 % of a token waits", "{cache=6000} fits in memory: 70.0 % hits, about 11.0 tokens/s [estimated]", "cache 6000", Some(0.05),
			func(s *Snapshot) { s.Sum.Stall.OK = false }, "stall is not measured"},
		{"fits", func(s *Snapshot) { wait(s, 0.2); s.Cache.Fits = Some[int64](8000 * mib) }, "the model fits in memory, but the cache holds 4000 of the 8000 MiB", "{cache=8000} holds them all; or do not stream: {moe-stream=off}", "cache 8000", Some(0.02),
			func(s *Snapshot) { s.Cache.Budget, s.Cache.Arena = 8000*mib, 8000*mib }, "the cache holds them all"},
		{"cycle", func(s *Snapshot) {
			s.Cache.Budget, s.Cache.Arena, s.Cache.BelowTokenCycle = 400*mib, 400*mib, true
			s.Cache.WhatIf[0], s.Cache.WhatIfs = WhatIf{Budget: 500 * mib, Hit: Some(30.0), TPS: Some(12.5)}, 1
		}, "the cache of 400 MiB holds less than the 500 MiB of one token", "{cache=500} holds one", "cache 500", Some(0.02),
			func(s *Snapshot) { s.Cache.Policy = "harmonic" }, "other policies have no cliff there"},
		{"lanes", func(s *Snapshot) { wait(s, 0.4); s.Lanes.RateRun = Some(202.0 * mib) }, "4 lanes together give 1.0x what one alone gives here: 202 MiB/s, one 200 MiB/s", "{release-mmap=on} and the question again tell", "release-mmap on", Maybe[float64]{},
			func(s *Snapshot) { s.Lanes.Alone = Maybe[float64]{} }, "what one lane gives is not known"},
		{"lanes", func(s *Snapshot) {
			wait(s, 0.4)
			s.Lanes.RateRun = Some(202.0 * mib)
			s.Mapping.State = MappingReleased
		}, "4 lanes together give 1.0x", "one lane may be all that this drive has", "", Maybe[float64]{},
			func(s *Snapshot) { s.Lanes.N = 1 }, "there is one"},
		{"compute", func(s *Snapshot) { wait(s, 0.05); s.Process.MemoryRate = Some(20e9) }, "76 % of a token computes: 76.0 of 100 ms with 2 threads; weights are read at 12.4 GB/s, 62 % of what this machine's memory gives", "", "", Some(0.076),
			func(s *Snapshot) { s.Sum.Compute = s.Sum.Wall / 2 }, "half of it does something else"},
		{"reclaimed", func(s *Snapshot) { s.Process.MajFltPerToken = Some(12.0) }, "12.0 pages a token come back from the drive: the system has moved some of our memory out", "{cache=3000} leaves it more room", "cache 3000", Maybe[float64]{},
			func(s *Snapshot) { s.Process.MajFltPerToken.OK = false }, "the host cannot tell"},
		{"reclaimed", func(s *Snapshot) { s.Process.MajFltPerToken, s.Mapping.Dense = Some(12.0), "mmap" }, "weights that lie in the file's mapping do not stay in memory", "{dense-weights=anon}", "", Maybe[float64]{},
			func(s *Snapshot) { s.Cache.Streaming = false }, "every expert is read by a fault then"},
		{"buffered", func(s *Snapshot) { s.Lanes.Mode, s.Lanes.Reason = "BUFFERED", "tmpfs has no direct I/O" }, "reads go through the system's page cache: tmpfs has no direct I/O", "a file on a local drive", "", Maybe[float64]{},
			func(s *Snapshot) { s.Lanes.Mode = "SIMULATED" }, "it is a simulated host"},
		{"disturbed", func(s *Snapshot) { s.Process.Disturbed.CPU, s.Process.ForeignCPU = Some(true), Some(83.0) }, "disturbed: CPU; others use 83 % of the processors now", "close other programs and ask again", "", Maybe[float64]{},
			func(s *Snapshot) { s.Process.Disturbed.CPU = Some(false) }, "nothing did"},
		{"disturbed", func(s *Snapshot) { s.Process.Disturbed.Throttled = Some(true) }, "disturbed: CPU throttled", "let it cool and ask again, or use fewer {threads}", "", Maybe[float64]{},
			func(s *Snapshot) { s.Process.Disturbed.Throttled.Value = false }, "it was not"},
		{"slowtype", func(s *Snapshot) { s.Model.SlowBytes, s.Model.SlowTypes = 450*mib, "Q1_X" }, "50 % of the weights that a token needs are Q1_X", "another quantization of the model", "", Maybe[float64]{},
			func(s *Snapshot) { wait(s, 0.9) }, "the token hardly computes"},
		{"slowtype", func(s *Snapshot) { s.Model.SlowBytes, s.Model.SlowTypes = 100*mib, "Q1_X" }, "11 % of the weights", "another quantization of the model", "", Maybe[float64]{},
			func(s *Snapshot) { s.Model.SlowBytes = 50 * mib }, "few weights are of such a type"},
		{"swapped", func(s *Snapshot) { s.Process.Swap = Some[int64](500 * mib) }, "the system has moved 500 MiB of our memory out", "{cache=3500} needs that much less", "cache 3500", Maybe[float64]{},
			func(s *Snapshot) { s.Process.Swap.Value = 20 * mib }, "that is little"},
		{"swapped", func(s *Snapshot) { s.Process.Swap = Some[int64](3990 * mib) }, "moved 3990 MiB", "close other programs", "", Maybe[float64]{},
			func(s *Snapshot) { s.Process.Swap.OK = false }, "the host cannot tell"},
		{"fits", func(s *Snapshot) { wait(s, 0.2); s.Cache.Fits = Some[int64](8000 * mib) }, "the model fits in memory", "{cache=8000} holds them all", "cache 8000", Some(0.02),
			func(s *Snapshot) { s.Cache.Fits = Some[int64](7999 * mib) }, "memory has no room for all of them"},
		{"fits", func(s *Snapshot) { wait(s, 0.2); s.Cache.Fits = Some[int64](8000 * mib) }, "the model fits in memory", "{moe-stream=off}", "cache 8000", Some(0.02),
			func(s *Snapshot) { wait(s, 0.01) }, "nothing waits"},
		{"cycle", func(s *Snapshot) { s.Cache.BelowTokenCycle, s.Cache.Fits = true, Some[int64](300*mib) }, "holds less than the 500 MiB of one token", "memory has no room for one", "", Maybe[float64]{},
			func(s *Snapshot) { s.Cache.BelowTokenCycle = false }, "it holds one"},
		{"compute", func(s *Snapshot) { wait(s, 0.05) }, "76 % of a token computes: 76.0 of 100 ms with 2 threads", "", "", Some(0.076),
			func(s *Snapshot) { wait(s, 0.4) }, "it waits"},
		{"anew", func(s *Snapshot) { s.Turn, s.Held, s.Kept, s.Prompt = 2, 200, 0, 400 }, "turn 2 kept 0 of the 200 tokens", "a new chat", "", Some(0.2),
			func(s *Snapshot) { s.Turn = 1 }, "it is the first turn"},
		{"arena", func(s *Snapshot) { s.Cache.Arena = 4200 * mib }, "the cache takes 4200 MiB of memory, more than its budget of 4000", "", "", Maybe[float64]{},
			func(s *Snapshot) { s.Cache.Arena = 4100 * mib }, "pages are whole"},
		{"anew", func(s *Snapshot) { s.Turn, s.Held, s.Kept, s.Prompt = 3, 900, 100, 1000 }, "turn 3 kept 100 of the 900 tokens", "a larger {ctx}, or a new chat", "", Some(0.32),
			func(s *Snapshot) { s.Kept = 890 }, "nearly all was kept"},
	} {
		find := func(s *Snapshot) *Finding {
			all := Diagnose(s)
			if i := slices.IndexFunc(all, func(f Finding) bool { return f.Rule == c.rule }); i >= 0 {
				return &all[i]
			}
			return nil
		}
		s := healthy()
		c.speaks(s)
		f := find(s)
		if f == nil {
			t.Errorf("%s: silent where it should say %q", c.rule, c.evidence)
			continue
		}
		if !strings.Contains(f.Evidence, c.evidence) || !strings.Contains(f.Action, c.action) || (c.action == "") != (f.Action == "") {
			t.Errorf("%s: %q, to do: %q", c.rule, f.Evidence, f.Action)
		}
		if got := strings.TrimSpace(f.Setting + " " + f.Value); got != c.setting {
			t.Errorf("%s: sets %q, want %q", c.rule, got, c.setting)
		}
		if f.Cost.OK != c.cost.OK || f.Cost.OK && (f.Cost.Value < 0.99*c.cost.Value || f.Cost.Value > 1.01*c.cost.Value) || f.Cost.OK == (f.Basis == NotMeasurable) && c.rule != "arena" {
			t.Errorf("%s: costs %v (%s), want %v", c.rule, f.Cost, f.Basis, c.cost)
		}
		c.silent(s)
		if f := find(s); f != nil {
			t.Errorf("%s: says %q although %s", c.rule, f.Evidence, c.whySilence)
		}
	}
}

// A drive of a fixed rate, which several lanes share, is not blamed on a mapping.
func TestACappedDriveIsNotTheMappingsFault(t *testing.T) {
	s := healthy()
	wait(s, 0.6)
	s.Lanes.RateRun = Some(201.0 * mib)
	for _, f := range Diagnose(s) {
		if f.Rule == "lanes" && (!strings.Contains(f.Action, "one lane may be all") || f.Cost.OK) {
			t.Errorf("%+v", f)
		}
	}
}

func TestWhatCostsMostComesFirst(t *testing.T) {
	s := healthy()
	wait(s, 0.3)
	s.Cache.BelowTokenCycle = true
	s.Cache.WhatIf[0], s.Cache.WhatIfs = WhatIf{Budget: 500 * mib, Hit: Some(30.0), TPS: Some(10.5)}, 1
	s.Process.Disturbed.Drive = Some(true)
	var rules []string
	for _, f := range Diagnose(s) {
		rules = append(rules, f.Rule)
	}
	if want := []string{"waits", "cycle", "disturbed"}; !slices.Equal(rules, want) {
		t.Errorf("%q, want %q", rules, want)
	}
}

func TestRulesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !strings.Contains(string(page), "- `"+r.name+"`") {
			t.Errorf("docs/telemetry.md does not tell of the rule %s", r.name)
		}
	}
}
