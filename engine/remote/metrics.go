package remote

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"bmoe/internal/units"
	"bmoe/profile"
)

// metrics are what a server tells of itself in Prometheus' text form. They belong
// to the pulse, but for what is under the recorder's lock.
type metrics struct {
	gone     bool  // there are none
	next     int64 // when to ask next, clock.Now
	busy     bool  // an answer was under way when they were last asked for
	askedRun int   // the run for which before is
	before   map[string]float64
	latest   map[string]float64
}

const (
	// metricsPatience is how long an answer may take.
	metricsPatience = 2 * time.Second
	// idlePoll is how often a server is asked while nobody asks it anything else;
	// retryPoll is the same after it did not answer.
	idlePoll  = 10 * units.Second
	retryPoll = 10 * units.Second
)

// The figures that are read, by what they are called. Of several names the newest
// stands first.
var (
	runningNames = []string{"vllm:num_requests_running", "llamacpp:requests_processing"}
	waitingNames = []string{"vllm:num_requests_waiting", "llamacpp:requests_deferred"}
	kvNames      = []string{"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "llamacpp:kv_cache_usage_ratio"}
	hitNames     = []string{"vllm:prefix_cache_hits_total", "vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits"}
	askNames     = []string{"vllm:prefix_cache_queries_total", "vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries"}
)

// The histograms of what requests took, one observation a request, at its end.
const (
	queueTime   = "vllm:request_queue_time_seconds"
	prefillTime = "vllm:request_prefill_time_seconds"
	decodeTime  = "vllm:request_decode_time_seconds"
)

// poll asks for the metrics if it is time to.
func (m *metrics) poll(r *Remote) {
	now := r.now()
	busy := r.asking.Load()
	if m.gone || now < m.next && !busy && !m.busy { // once more after an answer's end
		return
	}
	m.next, m.busy = now+idlePoll, busy
	ctx, cancel := context.WithTimeout(r.quit, metricsPatience)
	defer cancel()
	body, err := r.get(ctx, r.at.root, "metrics")
	var status *statusError
	var form *formError
	var redirect *redirectError
	switch {
	case errors.As(err, &status), errors.As(err, &form), errors.As(err, &redirect):
		m.gone = true
		why := "this server has no metrics"
		if r.kind.metrics != "" {
			why += ": " + r.kind.metrics
		}
		r.rec.Update(func(l *profile.Snapshot) { l.Remote.Load = profile.RemoteLoad{Why: why} })
		return
	case err != nil:
		m.next = now + retryPoll // it is quiet: an answer may be under way all the same
		r.rec.Update(func(l *profile.Snapshot) {
			l.Remote.Load = profile.RemoteLoad{Why: "the metrics did not come"}
		})
		return
	}
	values := parseMetrics(string(body))
	if len(values) == 0 {
		m.gone = true
		r.rec.Update(func(l *profile.Snapshot) {
			l.Remote.Load = profile.RemoteLoad{Why: "this server's metrics are not known here"}
		})
		return
	}
	earlier := m.latest
	m.latest = values
	r.rec.Update(func(l *profile.Snapshot) { m.fill(l, earlier, busy) })
}

// fill puts the latest figures into the snapshot.
func (m *metrics) fill(l *profile.Snapshot, earlier map[string]float64, busy bool) {
	n := &l.Remote.Load
	n.Known, n.Why = true, ""
	n.Running, n.Waiting = count(m.latest, runningNames), count(m.latest, waitingNames)
	n.KV = profile.In(first(m.latest, kvNames), 0.01)
	n.CacheHit = profile.Maybe[float64]{}
	if hits, asked := first(m.latest, hitNames), first(m.latest, askNames); hits.OK && asked.OK {
		n.CacheHit = profile.Ratio(100*hits.Value, asked.Value)
	}
	if l.Run != m.askedRun {
		// The first look at this run. Its own observations come at its end.
		if m.askedRun, m.before = l.Run, earlier; earlier == nil && busy {
			m.before = m.latest
		}
		n.MostRunning, n.MostWaiting = profile.Maybe[int64]{}, profile.Maybe[int64]{}
	}
	if busy {
		n.MostRunning, n.MostWaiting = most(n.MostRunning, n.Running), most(n.MostWaiting, n.Waiting)
		return
	}
	m.share(&l.Remote.Run)
}

// share finds the run's own part in histograms that all requests go into: it is
// known if exactly one request has ended since.
func (m *metrics) share(run *profile.RemoteRun) {
	if m.before == nil || m.latest[queueTime+"_count"]-m.before[queueTime+"_count"] != 1 {
		return
	}
	for _, part := range []struct {
		name string
		dst  *profile.Maybe[float64]
	}{{queueTime, &run.Queue}, {prefillTime, &run.Prefill}, {decodeTime, &run.Decode}} {
		was, then := m.before[part.name+"_sum"]
		is, now := m.latest[part.name+"_sum"]
		if then && now && is >= was && !part.dst.OK {
			*part.dst = profile.Some(is - was)
		}
	}
}

func most(a, b profile.Maybe[int64]) profile.Maybe[int64] {
	return profile.Maybe[int64]{Value: max(a.Value, b.Value), OK: a.OK || b.OK}
}

// first returns the value of the first name that is there.
func first(values map[string]float64, names []string) profile.Maybe[float64] {
	for _, name := range names {
		if v, ok := values[name]; ok {
			return profile.Some(v)
		}
	}
	return profile.Maybe[float64]{}
}

func count(values map[string]float64, names []string) profile.Maybe[int64] {
	v := first(values, names)
	return profile.Maybe[int64]{Value: int64(v.Value), OK: v.OK}
}

// parseMetrics reads the figures of the names that we know, each the sum over its
// labels; of what is used of a cache, the most.
func parseMetrics(text string) map[string]float64 {
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		name, value, ok := sample(line)
		if !ok || !known(name) {
			continue
		}
		if old, there := out[name]; there && isShare(name) {
			value = max(value, old)
		} else {
			value += old
		}
		out[name] = value
	}
	return out
}

// sample reads one line: name{labels} value [time].
func sample(line string) (name string, value float64, ok bool) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", 0, false
	}
	at := strings.IndexAny(line, "{ \t")
	if at <= 0 {
		return "", 0, false
	}
	name, rest := line[:at], line[at:]
	if rest[0] == '{' {
		end := strings.LastIndexByte(rest, '}')
		if end < 0 {
			return "", 0, false
		}
		rest = rest[end+1:]
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return "", 0, false
	}
	value, err := strconv.ParseFloat(words[0], 64)
	if err != nil || value != value || value < 0 || value > 1e18 {
		return "", 0, false
	}
	return name, value, true
}

// names are all that is read.
var names = func() map[string]bool {
	all := map[string]bool{}
	for _, list := range [][]string{runningNames, waitingNames, kvNames, hitNames, askNames} {
		for _, n := range list {
			all[n] = true
		}
	}
	for _, n := range []string{queueTime, prefillTime, decodeTime} {
		all[n+"_sum"], all[n+"_count"] = true, true
	}
	return all
}()

func known(name string) bool { return names[name] }

func isShare(name string) bool {
	for _, n := range kvNames {
		if n == name {
			return true
		}
	}
	return false
}
