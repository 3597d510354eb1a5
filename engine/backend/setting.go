package backend

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// Kind says what values a setting takes. All of them travel as text.
type Kind uint8

// The kinds.
const (
	Switch Kind = iota // on or off
	Word               // one of Words
	Whole              // a whole number, or one of Words
	Number             // any number, or one of Words
	Text               // anything, as a path
)

// The origins of a value.
const (
	FromDefault = "default"
	FromFile    = "file" // the configuration file
	FromFlag    = "flag" // the command line
	FromKey     = "key"  // a key or a command of the chat
)

// The values of a switch.
const (
	On  = "on"
	Off = "off"
)

// OnOff words a switch.
func OnOff(on bool) string {
	if on {
		return On
	}
	return Off
}

// Setting is a row as a face sees it. Flags, help, manual, keys, footer, chat
// commands, run list and comparison are loops over rows, so that a setting is
// described once.
type Setting struct {
	Name    string // in the chat, the footer, runs and the configuration file: lanes
	Flag    string // on the command line: io-threads
	Short   string // the flag's letter, if it has one
	Section string // heading of the help
	Unit    string // what a number counts (MiB), or what a text stands for (PATH)
	Help    string // mentions settings
	Kind    Kind
	Words   []string // the words taken; auto beside a number
	Least   float64  // the bounds of a number
	Most    float64
	Want    string // the values taken, in words: 1 to 64, or auto
	Default string // empty where the engine chooses; Help says how
	Value   string // in force, automatic ones resolved
	Origin  string // default, file, flag, key
	Idle    string // why it changes nothing beside the other settings; empty if it does. Mentions settings
	Live    bool   // can be changed between runs
	Lossy   bool   // changes what the model says
	Main    bool   // told of every run, whoever chose the value
}

// Shown is the value as a screen shows it.
func (s *Setting) Shown() string { return s.Show(s.Value) }

// Show returns a value of the setting as a screen shows it: a number with what
// it counts.
func (s *Setting) Show(value string) string {
	if s.Unit == "" || s.Kind == Text || slices.Contains(s.Words, value) {
		return value
	}
	return value + " " + s.Unit
}

// Check returns a *SettingError unless the setting takes a value.
func (s *Setting) Check(value string) error {
	ok := slices.Contains(s.Words, value)
	switch s.Kind {
	case Switch:
		ok = value == On || value == Off
	case Whole:
		// Numbers of 64 bits, written as such: a float would let others pass.
		n, err := strconv.ParseUint(value, 10, 64)
		ok = ok || err == nil && float64(n) >= s.Least && float64(n) <= s.Most
	case Number:
		f, err := strconv.ParseFloat(value, 64)
		ok = ok || err == nil && f >= s.Least && f <= s.Most && !math.IsInf(f, 0) // NaN fails every comparison
	case Text:
		ok = value != ""
	}
	if ok {
		return nil
	}
	problem := "want " + s.Want
	if value == "" {
		problem = "it is empty: " + problem
	}
	return &SettingError{Setting: s.Name, Value: strconv.Quote(value), Problem: problem}
}

// Value is a setting as a run remembers it.
type Value struct {
	Name  string
	Value string
	Shown string // with its unit
	Live  bool   // could have been changed between runs
	Main  bool   // see Setting
	Given bool   // somebody chose it
}

// Values returns what a run remembers of settings: those that change something.
func Values(rows []Setting) []Value {
	out := make([]Value, 0, len(rows))
	for i := range rows {
		if r := &rows[i]; r.Idle == "" {
			out = append(out, Value{Name: r.Name, Value: r.Value, Shown: r.Shown(), Live: r.Live, Main: r.Main, Given: r.Origin != FromDefault})
		}
	}
	return out
}

// Differences lists the settings in which b differs from a, in b's values, as
// in "lanes 8".
func Differences(a, b []Value) []string {
	was := make(map[string]string, len(a))
	for _, v := range a {
		was[v.Name] = v.Value
	}
	var out []string
	for _, v := range b {
		if was[v.Name] != v.Value {
			out = append(out, strings.TrimSpace(v.Name+" "+v.Shown))
		}
	}
	return out
}

// Verdict says what became of a wish.
type Verdict string

// The verdicts.
const (
	Applied  Verdict = "applied"
	Declined Verdict = "declined"
	Ignored  Verdict = "ignored"
)

// Outcome is what became of one wish, and why.
type Outcome struct {
	Setting string // its name
	Verdict Verdict
	Value   string // in force now, as a screen shows it
	Reason  string // empty when applied without anything to add; mentions settings
}
