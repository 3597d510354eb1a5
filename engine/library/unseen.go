package library

import (
	"regexp"
	"strconv"
)

// Names of MoE models tell how many parameters they have and how many of them a token
// needs: 30B-A3B, 235B-A22B, 0.6B-A0.1B.
var activeOf = regexp.MustCompile(`(?i)(?:^|[-_.])(\d+(?:\.\d+)?)B-A(\d+(?:\.\d+)?)B(?:[-_.]|$)`)

// usualLayers is about what models have that are worth downloading.
const usualLayers = 48

// Unseen is what can be said of a model of which nothing but its name and its size, in
// bytes, is known. MoE is false where the name does not say so; then a token is taken to
// need all of it, which is the slowest that it can be.
func Unseen(name string, size int64) Model {
	m := Model{Name: name, Size: size, Layers: usualLayers, ActiveDense: size}
	found := activeOf.FindStringSubmatch(name)
	if found == nil {
		return m
	}
	all, _ := strconv.ParseFloat(found[1], 64) // digits, as matched
	active, _ := strconv.ParseFloat(found[2], 64)
	if active <= 0 || active >= all {
		return m
	}
	// About a third of what a token needs are attention, embedding and head, which every
	// token needs.
	needs := float64(size) * active / all
	m.ActiveDense = int64(needs / 3)
	m.ActiveExperts = int64(needs) - m.ActiveDense
	m.ExpertBytes = size - m.ActiveDense
	m.Used = 8
	m.Experts = int(float64(m.Used)*float64(m.ExpertBytes)/float64(max(m.ActiveExperts, 1)) + 0.5)
	return m
}
