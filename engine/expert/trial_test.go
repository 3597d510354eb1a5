package expert

import (
	"math/rand/v2"
	"testing"
)

// play runs n tokens that take with ns while guesses are made and without ns while not,
// and returns how many of them went with guesses.
func (t *trial) play(now *int64, n int, with, without int64) (on int) {
	for range n {
		t.token(*now)
		if t.on() {
			on++
			*now += with
		} else {
			*now += without
		}
	}
	return on
}

func TestTrialSwitchesToWhatIsFaster(t *testing.T) {
	var tr trial
	now := int64(1_000_000)
	if on := tr.play(&now, firstHold-1, 30e6, 20e6); on != firstHold-1 || tr.off {
		t.Fatalf("%d of the first %d tokens went with guesses", on, firstHold-1)
	}
	tr.play(&now, 2*trialTokens, 30e6, 20e6)
	if !tr.off {
		t.Fatal("guesses that cost a third of every token go on")
	}
	if on := tr.play(&now, 500, 30e6, 20e6); !tr.off || on == 0 || on > 100 {
		t.Errorf("%d of 500 tokens went with guesses that do not pay: some must, to notice a change, and few", on)
	}
	// The drive is idle again: guesses pay.
	tr.play(&now, 2*mostHold, 20e6, 30e6)
	if tr.off {
		t.Error("guesses that save a third of every token are not made again")
	}
}

func TestTrialsBecomeRarer(t *testing.T) {
	var tr trial
	now := int64(1_000_000)
	tr.play(&now, 4*mostHold, 20e6, 20e6)
	on := tr.play(&now, 10*mostHold, 20e6, 20e6)
	if tried := 10*mostHold - on; tr.off || tried < trialTokens || tried > 12*trialTokens {
		t.Errorf("%d of %d tokens went without guesses though nothing is gained, switched off: %v", tried, 10*mostHold, tr.off)
	}
}

// One token that took long decides nothing, nor does the time between two runs.
func TestTrialGoesByMedians(t *testing.T) {
	var tr trial
	now := int64(1_000_000)
	for range 100 {
		tr.play(&now, 10, 20e6, 21e6)
		now += 3_600e9 // the user reads the answer
		tr.play(&now, 1, 900e6, 1e6)
		if tr.off {
			t.Fatal("one token in eleven, or the time between runs, outvoted the median")
		}
	}
}

// A machine that is twice as slow for some seconds, and as fast again, does not switch
// guesses off that pay a little, nor on again where they cost a little.
func TestTrialsAreOfPairs(t *testing.T) {
	for _, off := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(1, 2))
		tr, now, wrong := trial{off: off}, int64(1_000_000), 0
		for range 400 {
			slow := int64(1 + rng.IntN(2)) // for a while
			better, worse := slow*100e6, slow*110e6
			if off {
				better, worse = worse, better
			}
			for range 20 + rng.IntN(40) {
				noise := 0.97 + 0.06*rng.Float64()
				tr.play(&now, 1, int64(noise*float64(better)), int64(noise*float64(worse)))
				if tr.off != off {
					wrong++
				}
			}
		}
		if wrong > 0 {
			t.Errorf("switched off: %v was right; %d tokens went the wrong way", off, wrong)
		}
	}
}
