package host

import (
	"os"
	"path/filepath"
	"strings"
)

func readMemory() Memory { return readMemoryBelow("/") }

// readMemoryBelow reads the files below fsRoot, which is "/" but for tests.
func readMemoryBelow(fsRoot string) Memory {
	var m Memory
	text, err := os.ReadFile(filepath.Join(fsRoot, "proc/meminfo"))
	if err != nil {
		return m
	}
	if total, ok := field(text, "MemTotal"); ok {
		m.Total = total << 10
		m.Has |= HasTotal
	}
	if available, ok := field(text, "MemAvailable"); ok {
		m.Available = available << 10
		m.Has |= HasAvailable
	}
	for _, group := range controlGroups(fsRoot, "memory") {
		for _, folder := range group.folders() {
			m.restrict(folder, group.v2)
		}
	}
	return m
}

// restrict applies the memory limit of one control group folder, if it has one.
func (m *Memory) restrict(folder string, v2 bool) {
	limitFile, usedFile, prefix := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
	if v2 {
		limitFile, usedFile, prefix = "memory.max", "memory.current", ""
	}
	limit, ok := readNumber(filepath.Join(folder, limitFile))
	if !ok || m.Has.All(HasTotal) && limit >= m.Total {
		return // no limit; version 1 writes one near 2^63 then
	}
	if !m.Has.All(HasLimit) || limit < m.Limit {
		m.Limit = limit
		m.Has |= HasLimit
	}
	used, ok := readNumber(filepath.Join(folder, usedFile))
	if !ok {
		return
	}
	// Page cache counts as used but is given up under pressure, also the part that
	// was touched twice: a model file that was just copied or checked is all of it.
	stat := filepath.Join(folder, "memory.stat")
	free := max(limit-used+statValue(stat, prefix+"inactive_file")+statValue(stat, prefix+"active_file"), 0)
	if !m.Has.All(HasAvailable) || free < m.Available {
		m.Available = free
		m.Has |= HasAvailable
	}
}

// statValue returns the number after "key " in a file of such lines, or 0, which
// is the cautious value for cache that could be given up.
func statValue(path, key string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		if value, found := strings.CutPrefix(line, key+" "); found {
			v, _, _ := number([]byte(value))
			return v
		}
	}
	return 0
}
