package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func physicalCores() (int, bool) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return 0, false
	}
	return physicalCoresBelow("/", set.IsSet, len(set)*64)
}

// physicalCoresBelow counts the distinct sets of sibling threads among the
// processors that the process may run on, and cuts the number to the CPU quota of
// its control groups.
func physicalCoresBelow(fsRoot string, allowed func(cpu int) bool, limit int) (int, bool) {
	cores := map[string]bool{}
	for cpu := range limit {
		if !allowed(cpu) {
			continue
		}
		siblings, err := os.ReadFile(filepath.Join(fsRoot, fmt.Sprintf("sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu)))
		if err != nil {
			return 0, false
		}
		cores[strings.TrimSpace(string(siblings))] = true
	}
	if len(cores) == 0 {
		return 0, false
	}
	n := len(cores)
	for _, group := range controlGroups(fsRoot, "cpu") {
		for _, folder := range group.folders() {
			if quota, ok := cpuQuota(folder, group.v2); ok {
				n = min(n, max(int(quota), 1))
			}
		}
	}
	return n, true
}

// cpuQuota returns how many processors' time a control group folder grants, or
// false if it sets no limit.
func cpuQuota(folder string, v2 bool) (float64, bool) {
	if v2 {
		text, err := os.ReadFile(filepath.Join(folder, "cpu.max")) // "quota period", or "max period"
		if err != nil {
			return 0, false
		}
		quota, rest, ok := number(text)
		period, _, okPeriod := number(rest)
		return float64(quota) / float64(period), ok && okPeriod && period > 0
	}
	quota, ok := readNumber(filepath.Join(folder, "cpu.cfs_quota_us")) // -1 for none
	period, okPeriod := readNumber(filepath.Join(folder, "cpu.cfs_period_us"))
	return float64(quota) / float64(period), ok && okPeriod && quota > 0 && period > 0
}
