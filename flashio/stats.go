package flashio

import (
	"sync/atomic"

	"bmoe/internal/stats"
)

// LaneStats counts what one lane has done since it was opened. Differences of
// two copies give an interval.
type LaneStats struct {
	Reads  int64 // windows served, failed ones not included
	Errors int64 // requests that ended in an error after a read was tried
	Bytes  int64 // bytes that the drive served: aligned windows
	BusyNs int64 // time inside the system call, nanoseconds
	WaitNs int64 // time that served requests waited in the queue, nanoseconds
	// Latency is the time inside the system call per served window, in
	// nanoseconds.
	Latency stats.Histogram
}

// Stats is a copy of a reader's counters.
type Stats struct {
	Lanes []LaneStats
	// QueuedDemand and QueuedSpec wait now, InFlight are being read now.
	QueuedDemand, QueuedSpec, InFlight int
	// Total is the sum over lanes.
	Total LaneStats
}

// laneCounters is the live form of LaneStats: written by the lane alone, read
// by anybody.
type laneCounters struct {
	reads, errors, bytes, busyNs, waitNs atomic.Int64

	latency stats.Histogram
}

// count books one finished request.
func (c *laneCounters) count(r *Request) {
	c.bytes.Add(int64(r.N))
	c.busyNs.Add(r.Ended - r.Started)
	c.waitNs.Add(r.Started - r.Queued)
	if r.Err != nil {
		c.errors.Add(1)
		return
	}
	c.reads.Add(1)
	c.latency.Record(r.Ended - r.Started)
}

func (c *laneCounters) copyTo(dst *LaneStats) {
	dst.Reads = c.reads.Load()
	dst.Errors = c.errors.Load()
	dst.Bytes = c.bytes.Load()
	dst.BusyNs = c.busyNs.Load()
	dst.WaitNs = c.waitNs.Load()
	c.latency.CopyTo(&dst.Latency)
}

func (s *LaneStats) add(o *LaneStats) {
	s.Reads += o.Reads
	s.Errors += o.Errors
	s.Bytes += o.Bytes
	s.BusyNs += o.BusyNs
	s.WaitNs += o.WaitNs
	s.Latency.Merge(&o.Latency)
}
