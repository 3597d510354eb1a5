package engine

import (
	"fmt"
	"strings"

	"bmoe/engine/backend"
)

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
