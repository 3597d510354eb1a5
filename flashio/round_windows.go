package flashio

// readRound is the multiple to which Window extends lengths. Unbuffered reads
// whose length is no multiple of 64 KiB have been seen to run 3.5 times slower
// on Windows (docs/flash-io.md); bmoe-iobench shows whether a host does.
const readRound = 64 << 10
