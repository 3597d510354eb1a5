package profile

import (
	"fmt"

	"bmoe/internal/units"
)

// What a diagnosis of a server's run takes for worth saying.
const (
	leastQueue = 0.1  // part of the time to the first token that the request waited to be begun
	leastHeld  = 1.15 // times: as fast as the server decodes, of what arrives
	fullKV     = 90   // percent
)

// queued: the request waited at the server.
func (d *diagnosis) queued() bool {
	q := d.Remote.Run.Queue
	if !q.OK || !d.TTFT.OK || q.Value < leastQueue*units.InSeconds(d.TTFT.Value) {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("the request waited in the server's queue for %s of the %s to the first token", units.Seconds(int64(q.Value*units.Second)), units.Seconds(d.TTFT.Value))
	f.Cost, f.Per = q, "turn"
	return true
}

// held: tokens arrive slower than the server says that it makes them.
func (d *diagnosis) held() bool {
	there, here := d.Remote.Run.DecodeTPS, d.DecodeTPS
	if !there.OK || !here.OK || here.Value <= 0 || there.Value < leastHeld*here.Value {
		return false
	}
	f := &d.found
	f.Evidence = fmt.Sprintf("the server says that it decodes %s tokens a second, and %s arrive: they are held up on the way", units.Sig(there.Value), units.Sig(here.Value))
	f.Cost = Some(1/here.Value - 1/there.Value)
	f.Action = "look at what lies between: a proxy that gathers, a slow network"
	return true
}

// shared: others asked at the same time.
func (d *diagnosis) shared() bool {
	n := d.Remote.Load.MostRunning
	if !n.OK || n.Value < 2 {
		return false
	}
	f := &d.found
	f.Evidence, f.Basis = fmt.Sprintf("the server answered up to %d requests at once: they share its speed", n.Value), NotMeasurable
	if w := d.Remote.Load.MostWaiting; w.Value > 0 {
		f.Evidence += fmt.Sprintf("; up to %d more waited", w.Value)
	}
	return true
}

// full: the server has hardly any memory left for conversations.
func (d *diagnosis) full() bool {
	kv := d.Remote.Load.KV
	if !kv.OK || kv.Value < fullKV {
		return false
	}
	f := &d.found
	f.Evidence, f.Basis = fmt.Sprintf("the server's KV cache is %s %% full: it puts requests off, or computes them again", units.Percent(kv.Value)), NotMeasurable
	return true
}
