package expert

import "slices"

// A trial decides whether reading ahead pays. Where the drive is the limit every wrong
// guess costs, and where nothing is waited for there is nothing to gain; no rule tells
// as surely as trying. So every now and then some tokens go without, or with, and the
// other way goes on if their median is shorter. Trials become rarer while nothing
// changes. What is computed does not depend on it.
type trial struct {
	off   bool // the way that is in force
	other bool // the other way is being tried
	left  int  // tokens until that changes
	hold  int  // tokens between two trials
	last  int64
	walls [trialTokens]float64
	n     int     // walls that are there
	mine  float64 // median of the way in force, before the trial
}

const (
	trialTokens = 8   // that a trial takes, without the first, which still has what was read before
	firstHold   = 24  // tokens before the first trial
	mostHold    = 768 // between two
)

// on reports whether this token goes with reading ahead.
func (t *trial) on() bool { return t.off == t.other }

// token is told that a token begins, at a time in ns.
func (t *trial) token(now int64) {
	wall := now - t.last
	if t.last == 0 || wall > 10_000_000_000 { // the first of a run
		wall = 0
	}
	t.last = now
	if t.hold == 0 {
		t.hold, t.left = firstHold, firstHold
	}
	if wall > 0 {
		if t.n >= 0 {
			t.walls[t.n%trialTokens] = float64(wall)
		}
		t.n++
	}
	if t.left--; t.left > 0 {
		return
	}
	if t.n < trialTokens {
		t.left = trialTokens - t.n
		return
	}
	median := t.median()
	if !t.other {
		t.mine, t.other, t.left, t.n = median, true, trialTokens+1, -1
		return
	}
	t.other = false
	t.hold = min(2*t.hold, mostHold)
	if median < t.mine {
		t.off = !t.off
		t.hold = 2 * firstHold
	}
	t.left, t.n = t.hold, 0
}

func (t *trial) median() float64 {
	walls := t.walls
	slices.Sort(walls[:])
	return (walls[trialTokens/2-1] + walls[trialTokens/2]) / 2
}
