package expert

// A trial decides whether reading ahead pays. Where the drive is the limit every wrong
// guess costs, and where nothing is waited for there is nothing to gain; no rule tells
// as surely as trying. So every now and then some tokens go in turns with guesses and
// without, and the other way goes on if it was shorter in nearly all pairs. What else
// the machine does comes and goes slower than tokens do, so it is in both of a pair.
// Trials become rarer while nothing changes. What is computed does not depend on it.
type trial struct {
	off   bool // the way that is in force
	hold  int  // tokens between two trials
	left  int  // tokens until the next
	step  int  // of the trial in progress, from 1; 0: none
	last  int64
	walls [trialTokens]int64 // ns
}

const (
	trialTokens = 16  // that a trial takes: in pairs, of which the one and the other way go first in turns
	clearly     = 7   // pairs of the 8 that the other way must win: chance alone does in 4 trials of 100
	firstHold   = 24  // tokens before the first trial
	mostHold    = 768 // between two
)

// on reports whether this token goes with reading ahead.
func (t *trial) on() bool { return t.off == (t.step > 0 && otherWay(t.step-1)) }

// otherWay reports whether a trial's i-th token goes the way that is not in force.
func otherWay(i int) bool { return i%4 == 1 || i%4 == 2 }

// token is told that a token begins, at a time in ns.
func (t *trial) token(now int64) {
	wall := now - t.last
	first := t.last == 0 || wall > 10_000_000_000 // of a run
	t.last = now
	switch {
	case t.hold == 0:
		t.hold, t.left = firstHold, firstHold
	case t.step > 0 && first: // the pair is broken
		t.step, t.left = 0, trialTokens
	case t.step > 0:
		t.walls[t.step-1] = wall
		if t.step++; t.step > trialTokens {
			t.judge()
		}
		return
	}
	if t.left--; t.left <= 0 {
		t.step = 1
	}
}

// judge ends a trial.
func (t *trial) judge() {
	wins := 0
	for i := 0; i < trialTokens; i += 2 {
		mine, other := t.walls[i], t.walls[i+1]
		if otherWay(i) {
			mine, other = other, mine
		}
		if other < mine {
			wins++
		}
	}
	t.hold = min(2*t.hold, mostHold)
	if wins >= clearly {
		t.off = !t.off
		t.hold = 2 * firstHold
	}
	t.step, t.left = 0, t.hold
}
