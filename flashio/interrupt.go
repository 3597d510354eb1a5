package flashio

// mostInterrupts is how often in a row a call may be interrupted before that
// counts as a failure. Some network and FUSE file systems answer every signal
// with EINTR, and the runtime sends signals of its own; a file system that
// answers nothing else would hold a lane for ever.
const mostInterrupts = 1000
