package backend

import (
	"errors"
	"fmt"

	"bmoe/profile"
)

// mostMissesTold bounds what is asked of one token: layers times experts.
const mostMissesTold = 4096

// Why tells in lines why a token of the latest run took as long as it did; step 0
// stands for the slowest one.
func Why(b Backend, step int) ([]string, error) {
	h, ok := b.(History)
	if !ok {
		return nil, errors.New("this engine keeps no record of its tokens")
	}
	var s profile.Snapshot
	b.Snapshot(&s)
	from := max(0, s.Count-profile.ChainTokens)
	records := make([]profile.Record, min(s.Count, profile.ChainTokens))
	records = records[:h.History(from, records)]
	at := -1
	for i := range records {
		switch r := &records[i]; {
		case r.Run != s.Run:
		case step == r.Step, step == 0 && (at < 0 || r.Wall > records[at].Wall):
			at = i
		}
	}
	switch {
	case s.Run == 0:
		return nil, errors.New("no run yet")
	case at < 0 && step == 1:
		return nil, errors.New("the first token comes of the prompt: it has no record of its own")
	case at < 0 && step == 0:
		return nil, errors.New("the run has decoded nothing yet")
	case at < 0:
		return nil, fmt.Errorf("the run has no token %d, or it is no longer known", step)
	}
	misses := make([]profile.Miss, mostMissesTold)
	n, known := 0, false
	if c, ok := b.(Chains); ok {
		n, known = c.Chain(from+int64(at), misses)
	}
	return profile.WhySlow(&records[at], misses[:n], known), nil
}
