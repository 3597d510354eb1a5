package engine

import (
	"fmt"
	"strings"

	"bmoe/engine/backend"
	"bmoe/profile"
)

// Comparison is one run held against a baseline.
type Comparison struct {
	Comparable bool
	Reason     string   // why not comparable
	Differs    []string // knobs that differ, as in "release-mmap on"
	// SameStart: both runs continued the same prompt under the same sampling, so
	// that their texts can be held against each other, whatever the cache held.
	SameStart bool
	Identical bool // with SameStart: the texts are the same bytes
	// SpeedPct is the change of decode speed in percent of the baseline's.
	SpeedPct profile.Maybe[float64]
	// StallPct is the change of stall a token in percent of the baseline's.
	StallPct profile.Maybe[float64]
}

// Compare holds a run against a baseline. Runs that did not start from the
// same state, or did not finish, are not compared. Of two warm caches nobody
// knows that they held the same.
func Compare(base, r *backend.Run) Comparison {
	c := Comparison{Differs: backend.Differences(base.Settings, r.Settings)}
	switch {
	case base.Err != nil || r.Err != nil:
		c.Reason = "a run did not finish"
	case base.StartKey != r.StartKey:
		c.Reason = "the runs did not start from the same state"
	case base.ColdCache != r.ColdCache:
		c.Reason = "one run started with a warm cache"
	case !base.ColdCache:
		c.Reason = "both runs started with a warm cache"
	default:
		c.Comparable = true
	}
	c.SameStart = base.Err == nil && r.Err == nil && base.StartKey == r.StartKey
	c.Identical = c.SameStart && base.Result.TextSHA256 == r.Result.TextSHA256
	if !c.Comparable {
		return c
	}
	c.SpeedPct = changePct(base.Result.DecodeTPS, r.Result.DecodeTPS)
	c.StallPct = changePct(base.Result.PerToken.Stall, r.Result.PerToken.Stall)
	return c
}

func changePct(from, to profile.Maybe[float64]) profile.Maybe[float64] {
	if !from.OK || !to.OK || from.Value == 0 {
		return profile.Maybe[float64]{}
	}
	return profile.Some((to.Value/from.Value - 1) * 100)
}

// Values returns the settings that may differ between runs of a session, each
// in the words of the screen.
func (c *Config) Values() []backend.Value {
	var out []backend.Value
	add := func(name, value, unit string, live, given bool) {
		shown := strings.TrimSpace(value + " " + unit)
		out = append(out, backend.Value{Name: name, Value: value, Shown: shown, Live: live, Given: given})
	}
	if c.Stream {
		add("lanes", fmt.Sprint(c.Lanes), "", true, false)
		add("cache", fmt.Sprint(c.Cache.MiB()), "MiB", true, false)
		add("overlap", onOff(c.Overlap), "", true, false)
	} else {
		add("stream", "off", "", false, true)
	}
	add("release-mmap", onOff(c.ReleaseMmap), "", true, false)
	add("dense", string(c.Dense), "", false, false)
	add("numerics", c.Numerics, "", false, false)
	add("kv", c.KVType, "", false, false)
	add("threads", fmt.Sprint(c.Threads), "", false, false)
	add("policy", c.CachePolicy, "", false, false)
	add("io", c.IOEngine, "", false, false)
	if c.SimulateHost != "" {
		add("simulated host", c.SimulateHost, "", false, true)
	}
	return out
}
