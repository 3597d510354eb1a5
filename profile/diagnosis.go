package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bmoe/internal/units"
)

// Finding is one reason why tokens take as long as they do.
type Finding struct {
	Rule     string `json:"rule"`     // its name, as in docs/telemetry.md
	Evidence string `json:"evidence"` // what was seen, with figures
	// Cost is what it costs in seconds of every token, or of what Per says.
	Cost Maybe[float64] `json:"cost_s"`
	Per  string         `json:"per"` // token, turn
	// Basis says where the cost comes from.
	Basis Basis `json:"basis"`
	// Action is what to do about it; empty where nothing that can be set helps. It
	// mentions settings: {cache=3000}.
	Action string `json:"action"`
	// Setting and Value are the change of a setting that acts on it, if there is one.
	Setting string `json:"setting"`
	Value   string `json:"value"`
}

// Basis says where a finding's cost comes from.
type Basis string

// The bases of a cost.
const (
	Measured      Basis = "measured"
	Estimated     Basis = "estimated"
	NotMeasurable Basis = "not measurable here"
)

// String returns the finding as a line, but for its action.
func (f *Finding) String() string {
	note := string(f.Basis)
	if f.Cost.OK {
		note = "costs " + units.Seconds(int64(f.Cost.Value*units.Second)) + " a " + f.Per + ", " + note
	}
	return f.Evidence + " [" + note + "]"
}

// What a diagnosis takes for worth saying.
const (
	leastTokens = 8    // decoded: of fewer nothing is said
	leastWait   = 0.15 // part of a token's time that waits for the drive
	mostCompute = 0.6  // part of it that computes
	laneGain    = 1.25 // times one lane's rate: below it more lanes bring nothing
	laneWait    = 0.1  // part of a token's time below which lanes do not matter
	reclaimed   = 0.5  // major faults a token
	slowShare   = 0.1  // of a token's weights, in types without kernels
	slowCompute = 0.25 // part of a token's time that computes, for those to matter
	mostSwapped = 32 * units.MiB
	anewTokens  = 64   // prompt tokens read again for nothing
	anewShare   = 0.25 // of those that the state held
)

// Diagnose says why the run that a snapshot tells of, under way or over, is as
// slow as it is: what costs most comes first, then what has no known cost. A run
// with nothing wrong has no findings.
func Diagnose(s *Snapshot) []Finding {
	if s.Run == 0 || s.Sum.Tokens < leastTokens || s.Sum.Wall <= 0 {
		return nil
	}
	d := diagnosis{Snapshot: s, wall: float64(s.Sum.Wall)}
	for _, rule := range rules {
		d.found = Finding{Rule: rule.name, Per: "token", Basis: Measured}
		if rule.find(&d) {
			d.findings = append(d.findings, d.found)
		}
	}
	slices.SortStableFunc(d.findings, func(a, b Finding) int {
		perToken := func(f *Finding) float64 {
			if !f.Cost.OK {
				return 0
			}
			if f.Per == "turn" {
				return f.Cost.Value / float64(s.Sum.Tokens)
			}
			return f.Cost.Value
		}
		return cmp.Compare(perToken(&b), perToken(&a))
	})
	return d.findings
}

// rules are all that is looked for. A rule fills d.found and reports whether it
// applies.
var rules = []struct {
	name string
	find func(d *diagnosis) bool
}{
	{"fits", (*diagnosis).fits},
	{"cycle", (*diagnosis).belowCycle},
	{"waits", (*diagnosis).waits},
	{"lanes", (*diagnosis).lanes},
	{"compute", (*diagnosis).computes},
	{"slowtype", (*diagnosis).slowType},
	{"reclaimed", (*diagnosis).reclaims},
	{"swapped", (*diagnosis).swapped},
	{"buffered", (*diagnosis).buffered},
	{"disturbed", (*diagnosis).disturbed},
	{"arena", (*diagnosis).arena},
	{"anew", (*diagnosis).anew},
	{"queue", (*diagnosis).queued},
	{"held", (*diagnosis).held},
	{"shared", (*diagnosis).shared},
	{"full", (*diagnosis).full},
}

// diagnosis is a diagnosis being made.
type diagnosis struct {
	*Snapshot
	wall     float64 // of the run's decoded tokens, ns
	found    Finding
	findings []Finding
}

// perToken returns a sum over the run's tokens as seconds of one.
func (d *diagnosis) perToken(ns float64) Maybe[float64] {
	return Some(ns / float64(d.Sum.Tokens) / units.Second)
}

// waiting returns the part of a token's time that waits for the drive, 0 where
// that is not measured.
func (d *diagnosis) waiting() float64 {
	if !d.Sum.Stall.OK || d.wall <= 0 {
		return 0
	}
	return float64(d.Sum.Stall.Value) / d.wall
}

// set names the change that acts on the finding.
func (d *diagnosis) set(name, value string) string {
	d.found.Setting, d.found.Value = name, value
	return "{" + name + "=" + value + "}"
}

func mibText(bytes int64) string { return fmt.Sprint(units.MiBUp(bytes)) }

// whole is the budget for all experts.
func (d *diagnosis) whole() int64 { return units.WholeMiB(d.Model.ExpertBytesAll) }

// allFit reports whether memory has room for all experts, though the cache does
// not hold them.
func (d *diagnosis) allFit() bool {
	return d.Cache.Streaming && d.Cache.Fits.OK && d.Cache.Fits.Value >= d.whole() && d.Cache.Budget < d.whole()
}

// fits: the model would fit in memory.
func (d *diagnosis) fits() bool {
	if !d.allFit() || d.waiting() < leastWait/3 {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("the model fits in memory, but the cache holds %s of the %s MiB of its experts", mibText(d.Cache.Budget), mibText(d.whole()))
	f.Cost, f.Basis = d.perToken(float64(d.Sum.Stall.Value)), Estimated
	f.Action = d.set("cache", mibText(d.whole())) + " holds them all; or do not stream: {moe-stream=off}"
	return true
}

// belowCycle: the budget is below one token cycle.
func (d *diagnosis) belowCycle() bool {
	c := &d.Cache
	if !c.Streaming || !c.BelowTokenCycle || c.Policy != "lru" {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("the cache of %s MiB holds less than the %s MiB of one token: what is evicted is what is needed soonest", mibText(c.Budget), mibText(d.Model.TokenCycle))
	f.Cost, f.Basis = Maybe[float64]{}, NotMeasurable
	if w, ok := d.whatIf(units.WholeMiB(d.Model.TokenCycle)); ok && w.TPS.OK {
		f.Cost, f.Basis = d.saved(w), Estimated
	}
	if room := c.Fits; !room.OK || room.Value >= d.Model.TokenCycle {
		f.Action = d.set("cache", mibText(d.Model.TokenCycle)) + " holds one"
	} else {
		f.Action = "memory has no room for one: close other programs, or take a smaller model"
	}
	return true
}

// whatIf returns the estimate for a budget.
func (d *diagnosis) whatIf(budget int64) (*WhatIf, bool) {
	for i := range d.Cache.WhatIf[:d.Cache.WhatIfs] {
		if w := &d.Cache.WhatIf[i]; w.Budget == budget && w.Hit.OK {
			return w, true
		}
	}
	return nil, false
}

// saved returns by how much a token would be shorter.
func (d *diagnosis) saved(w *WhatIf) Maybe[float64] {
	return Maybe[float64]{max(0, d.wall/float64(d.Sum.Tokens)/units.Second-1/w.TPS.Value), w.TPS.OK}
}

// better returns the largest budget that memory allows among those of which
// something is known, if it is larger than the one in force.
func (d *diagnosis) better() (*WhatIf, bool) {
	for _, w := range slices.Backward(d.Cache.WhatIf[:d.Cache.WhatIfs]) {
		if w.Hit.OK && d.Cache.Fits.OK && w.Budget <= d.Cache.Fits.Value && w.Budget > d.Cache.Budget {
			return &w, true
		}
	}
	return nil, false
}

// waits: the token waits for the drive.
func (d *diagnosis) waits() bool {
	share := d.waiting()
	if share < leastWait {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("%s of a token waits for the drive: %s of %s ms", units.Share(share),
		units.Ms(d.Sum.Stall.Value/d.Sum.Tokens), units.Ms(d.Sum.Wall/d.Sum.Tokens))
	f.Cost = d.perToken(float64(d.Sum.Stall.Value))
	switch w, ok := d.better(); {
	case d.allFit(): // said already, with what to do
	case d.Cache.Streaming && d.Cache.Budget >= d.whole():
		f.Evidence += "; the cache holds all experts, once each was read"
	case ok:
		f.Action = d.set("cache", mibText(w.Budget)) + " fits in memory: " + d.promise(w)
	case d.Cache.Fits.OK && d.Cache.Fits.Value <= d.Cache.Budget+d.Cache.Budget/8:
		f.Action = "memory has no room for a larger cache; a smaller quantization of the model reads less"
	}
	return true
}

// promise words an estimate.
func (d *diagnosis) promise(w *WhatIf) string {
	words := units.Percent(w.Hit.Value) + " % hits"
	if w.TPS.OK {
		words += ", about " + units.Sig(w.TPS.Value) + " tokens/s"
	}
	return words + " [estimated]"
}

// lanes: several lanes together get what one alone does.
func (d *diagnosis) lanes() bool {
	l := &d.Lanes
	if l.N < 2 || !l.Alone.OK || !l.RateRun.OK || d.waiting() < laneWait {
		return false
	}
	times := l.RateRun.Value / l.Alone.Value
	if times >= laneGain {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("%d lanes together give %.1fx what one alone gives here: %s, one %s", l.N, times, units.MiBPerSecond(l.RateRun.Value), units.MiBPerSecond(l.Alone.Value))
	f.Basis = NotMeasurable
	if d.Mapping.State == MappingMapped && d.Mapping.WeightsInside.OK && d.Mapping.WeightsInside.Value == 0 {
		f.Action = "a mapped file can be the cause, or one lane may be all that this drive has: " + d.set("release-mmap", "on") + " and the question again tell"
	} else {
		f.Action = "one lane may be all that this drive has"
	}
	return true
}

// computes: most of a token is computing.
func (d *diagnosis) computes() bool {
	share := float64(d.Sum.Compute) / d.wall
	if share < mostCompute {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("%s of a token computes: %s of %s ms with %s", units.Share(share), units.Ms(d.Sum.Compute/d.Sum.Tokens), units.Ms(d.Sum.Wall/d.Sum.Tokens), units.Plural(int64(d.Process.Threads), "thread"))
	if r := d.Process.MemoryRate; r.OK && d.Model.TokenBytes > 0 {
		rate := float64(d.Model.TokenBytes) * float64(d.Sum.Tokens) * units.Second / float64(d.Sum.Compute)
		f.Evidence += fmt.Sprintf("; weights are read at %s GB/s, %s of what this machine's memory gives", units.Sig(rate/units.GB), units.Share(rate/r.Value))
	}
	f.Cost = d.perToken(float64(d.Sum.Compute))
	return true
}

// reclaims: pages come back from the drive that should have stayed in memory.
func (d *diagnosis) reclaims() bool {
	p := &d.Process
	if !p.MajFltPerToken.OK || p.MajFltPerToken.Value < reclaimed || !d.Cache.Streaming {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("%s pages a token come back from the drive: ", units.Sig(p.MajFltPerToken.Value))
	f.Basis = NotMeasurable
	if d.Mapping.Dense == "anon" {
		f.Evidence += "the system has moved some of our memory out"
		if less := d.Cache.Budget * 3 / 4 / units.MiB * units.MiB; less >= d.Cache.LayerWorkingSet {
			f.Action = "close other programs, or " + d.set("cache", mibText(less)) + " leaves it more room"
		} else {
			f.Action = "close other programs"
		}
	} else {
		f.Evidence += "weights that lie in the file's mapping do not stay in memory"
		f.Action = "start with {dense-weights=anon}, which keeps them in memory of our own"
	}
	return true
}

// slowType: weights of a type that is turned into floats first.
func (d *diagnosis) slowType() bool {
	m := &d.Model
	if m.TokenBytes <= 0 || float64(m.SlowBytes) < slowShare*float64(m.TokenBytes) || float64(d.Sum.Compute) < slowCompute*d.wall {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("%s of the weights that a token needs are %s, for which there is no fast kernel: each row is turned into floats first",
		units.Share(float64(m.SlowBytes)/float64(m.TokenBytes)), m.SlowTypes)
	f.Basis = NotMeasurable
	f.Action = "another quantization of the model, such as Q4_K_M, computes faster"
	return true
}

// swapped: the system has moved some of our memory out.
func (d *diagnosis) swapped() bool {
	p := &d.Process
	if !p.Swap.OK || p.Swap.Value < mostSwapped || d.Cache.Budget == 0 {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("the system has moved %s MiB of our memory out, to a drive or compressed (zram): what is used again has to come back first", mibText(p.Swap.Value))
	f.Basis = NotMeasurable
	f.Action = "close other programs"
	if less := (d.Cache.Budget - p.Swap.Value) / units.MiB * units.MiB; less >= d.Cache.LayerWorkingSet && less > 0 {
		f.Action += ", or " + d.set("cache", mibText(less)) + " needs that much less"
	}
	return true
}

// buffered: direct I/O was not to be had.
func (d *diagnosis) buffered() bool {
	if d.Lanes.Mode != "BUFFERED" {
		return false
	}
	f := &d.found
	f.Evidence = strings.TrimSuffix("reads go through the system's page cache: "+d.Lanes.Reason, ": ")
	f.Basis = NotMeasurable
	f.Action = "a file on a local drive can be read directly, which takes less of the CPU and leaves memory to the cache"
	return true
}

// disturbed: other programs or heat kept the machine from working for us.
func (d *diagnosis) disturbed() bool {
	p := &d.Process
	if !p.Disturbed.Any() {
		return false
	}
	f := &d.found
	f.Evidence, f.Basis = p.Disturbed.String(), NotMeasurable
	if p.ForeignCPU.OK {
		f.Evidence += fmt.Sprintf("; others use %s of the processors now", units.Share(p.ForeignCPU.Value/100))
	}
	if p.ForeignIO.OK {
		f.Evidence += fmt.Sprintf(" and move %s on the drive", units.MiBPerSecond(p.ForeignIO.Value))
	}
	f.Action = "close other programs and ask again: these figures are not of this program alone"
	if p.Disturbed.Throttled.Value {
		f.Action = "the processor slowed itself down: let it cool and ask again, or use fewer {threads}"
	}
	return true
}

// arena: slots take more memory than the budget.
func (d *diagnosis) arena() bool {
	c := &d.Cache
	if !c.Streaming || float64(c.Arena) <= 1.03*float64(c.Budget)+units.MiB {
		return false
	}
	d.found.Evidence = fmt.Sprintf("the cache takes %s MiB of memory, more than its budget of %s: please report this", mibText(c.Arena), mibText(c.Budget))
	d.found.Basis = Measured
	return true
}

// anew: the conversation is read again in each turn.
func (d *diagnosis) anew() bool {
	lost := d.Held - d.Kept
	if d.Turn < 2 || lost < anewTokens || float64(lost) < anewShare*float64(d.Held) || d.Prompt <= 0 || !d.TTFT.OK {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("turn %d kept %d of the %d tokens that had been read, and read the conversation behind them again", d.Turn, d.Kept, d.Held)
	part := min(float64(lost)/float64(d.Prompt), 1)
	f.Cost, f.Per, f.Basis = Some(part*float64(d.TTFT.Value)/units.Second), "turn", Estimated
	f.Action = "the model's template changes what was said before, or turns were dropped: a larger {ctx}, or a new chat, avoids it"
	return true
}
