package main

import (
	"strings"
	"testing"
)

// On the simulated host the tuner finds what the finding is about.
func TestTuneOnTheSimulatedHost(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of runs")
	}
	args := []string{"--tune", "--simulate-host", "ntfs", "--overlap=false", "-n", "6", "--json", "-p", dogStory}
	r := bmoe(t, args...)
	if r.code == 1 && strings.Contains(r.stderr, "nothing counted") { // others use the machine, as the program rightly says
		t.Log(r.stderr)
		return
	}
	if r.code != 0 {
		t.Fatalf("code %d: %s", r.code, r.stderr)
	}
	var found tuning
	parseJSON(t, r.stdout, &found)
	if !found.Simulated || !found.Same || found.Runs < 20 || len(found.Steps) < 4 {
		t.Errorf("%+v", found)
	}
	// What pays is a question of the machine, which others use too: but nothing is kept
	// that is not said to be faster, and no flag that is not kept.
	if (len(found.Keep) > 0) != strings.HasPrefix(found.Change, "faster ") || (len(found.Keep) > 0) != (found.Flags != "") {
		t.Errorf("keep %v, flags %q, change %q", found.Keep, found.Flags, found.Change)
	}
	if found.Keep["release-mmap"] == "on" && !strings.Contains(found.Flags, "--release-mmap") {
		t.Errorf("%v as %q", found.Keep, found.Flags)
	}
	if text := found.text(); !strings.Contains(text, "SIMULATED host") || !strings.Contains(text, "| release-mmap | off |") {
		t.Error(text)
	}
}
