package backend

import (
	"errors"
	"fmt"

	"bmoe/profile"
)

// mostMissesTold bounds what is asked of one token: layers times experts.
const mostMissesTold = 4096

// Token finds a token of the latest run by its step and returns its record with the
// number that it has in History; step 0 stands for the slowest one.
func Token(b Backend, step int) (number int64, r profile.Record, err error) {
	h, ok := b.(History)
	if !ok {
		return 0, r, errors.New("this engine keeps no record of its tokens")
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
		return 0, r, errors.New("no run yet")
	case at < 0 && step == 1:
		return 0, r, errors.New("the first token comes of the prompt: it has no record of its own")
	case at < 0 && step == 0:
		return 0, r, errors.New("the run has decoded nothing yet")
	case at < 0:
		return 0, r, fmt.Errorf("the run has no token %d, or it is no longer known", step)
	}
	return from + int64(at), records[at], nil
}

// Why tells in lines why a token took as long as it did; step is as Token takes it.
func Why(b Backend, step int) ([]string, error) {
	number, r, err := Token(b, step)
	if err != nil {
		return nil, err
	}
	return WhyToken(b, number, &r), nil
}

// WhyToken tells in lines why a token took as long as it did, given by its record and
// the number of that in History.
func WhyToken(b Backend, number int64, r *profile.Record) []string {
	misses := make([]profile.Miss, mostMissesTold)
	n, known := 0, false
	if c, ok := b.(Chains); ok {
		n, known = c.Chain(number, misses)
	}
	return profile.WhySlow(r, misses[:n], known)
}
