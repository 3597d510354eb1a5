// Package flashio reads a model's files as fast as the drive allows and knows
// what the operating system says about them.
//
// It has four parts:
//
//   - Files: the shards of one model with their sizes and the alignment that
//     direct I/O needs, asked of the system and never assumed.
//   - Reader: positioned reads of aligned windows into caller memory, with no
//     copy in between. OpenLanes serves them by N goroutines that block in the
//     system call, each with its own handle per shard; OpenURing keeps N reads
//     in flight from one goroutine by Linux's io_uring.
//   - Mapping: a read-only mapping whose view and section are released
//     separately, and the questions that a release depends on: which pointers
//     lie inside a mapping of a file (InsideMapping), which pages are resident.
//   - Range and Arena: address space and page-aligned memory off the Go heap.
//
// Nothing here allocates per read, and no measured path uses time.Now: all
// times are nanoseconds of internal/clock.
//
// SimulatedHost puts the two rules of an NTFS host over real reads, so that what
// a mapping costs there can be seen and tested anywhere.
package flashio
