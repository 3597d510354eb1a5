package engine

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"bmoe/engine/backend"
	"bmoe/internal/units"
)

// field is how a setting lies in a Config: what kind of value it is, and how it
// is read, checked and put there.
type field interface {
	describe(*backend.Setting)
	// get returns the value in the form that put takes; empty where the engine is
	// to choose.
	get(*Config) string
	// put takes a value that fits the description.
	put(*Config, string) error
	// json is the value as --json reports it.
	json(*Config) any
}

// toggle is a switch.
type toggle func(*Config) *bool

func (f toggle) describe(s *backend.Setting) { s.Kind, s.Want = backend.Switch, "on or off" }

func (f toggle) get(c *Config) string { return backend.OnOff(*f(c)) }

func (f toggle) put(c *Config, v string) error {
	*f(c) = v == backend.On
	return nil
}

func (f toggle) json(c *Config) any { return *f(c) }

// turned is a switch that is kept as 0 or 1.
type turned struct{ whole }

func (f turned) describe(s *backend.Setting) { toggle(nil).describe(s) }

func (f turned) get(c *Config) string { return backend.OnOff(*f.at(c) > 0) }

func (f turned) put(c *Config, v string) error {
	*f.at(c) = 0
	if v == backend.On {
		*f.at(c) = 1
	}
	return nil
}

func (f turned) json(c *Config) any { return *f.at(c) > 0 }

// word is one of some words, or nothing where the engine chooses.
type word struct {
	at    func(*Config) *string
	words []string
}

func (f word) describe(s *backend.Setting) {
	s.Kind, s.Words, s.Want = backend.Word, f.words, strings.Join(f.words, ", ")
}

func (f word) get(c *Config) string { return *f.at(c) }

func (f word) put(c *Config, v string) error {
	*f.at(c) = v
	return nil
}

func (f word) json(c *Config) any { return *f.at(c) }

// whole is a whole number within bounds; with chosen, 0 leaves it to the engine.
type whole struct {
	at          func(*Config) *int
	least, most int
	chosen      bool
}

func (f whole) describe(s *backend.Setting) {
	s.Kind, s.Least, s.Most = backend.Whole, float64(f.least), float64(f.most)
	s.Want = fmt.Sprintf("%d to %d", f.least, f.most)
	if f.most == math.MaxInt {
		s.Want = fmt.Sprintf("%d or more", f.least)
	}
}

func (f whole) get(c *Config) string {
	n := *f.at(c)
	if n == 0 && f.chosen {
		return ""
	}
	return strconv.Itoa(n)
}

func (f whole) put(c *Config, v string) (err error) {
	*f.at(c), err = strconv.Atoi(v)
	return err
}

func (f whole) json(c *Config) any { return *f.at(c) }

// number is a number within bounds, which want tells in words.
type number struct {
	at          func(*Config) *float64
	least, most float64
	want        string
}

func (f number) describe(s *backend.Setting) {
	s.Kind, s.Least, s.Most, s.Want = backend.Number, f.least, f.most, f.want
}

func (f number) get(c *Config) string { return strconv.FormatFloat(*f.at(c), 'g', -1, 64) }

func (f number) put(c *Config, v string) (err error) {
	*f.at(c), err = strconv.ParseFloat(v, 64)
	return err
}

func (f number) json(c *Config) any { return *f.at(c) }

// seed is the start of the random numbers.
type seed func(*Config) *uint64

func (f seed) describe(s *backend.Setting) {
	s.Kind, s.Most, s.Want = backend.Whole, math.MaxUint64, "0 to 18446744073709551615"
}

func (f seed) get(c *Config) string { return strconv.FormatUint(*f(c), 10) }

func (f seed) put(c *Config, v string) (err error) {
	*f(c), err = strconv.ParseUint(v, 10, 64)
	return err
}

func (f seed) json(c *Config) any { return *f(c) }

// text is any text but an empty one; what it stands for is its unit.
type text struct {
	at   func(*Config) *string
	unit string
}

func (f text) describe(s *backend.Setting) {
	s.Kind, s.Unit, s.Want = backend.Text, f.unit, "a "+strings.ToLower(f.unit)
}

func (f text) get(c *Config) string { return *f.at(c) }

func (f text) put(c *Config, v string) error {
	*f.at(c) = v
	return nil
}

func (f text) json(c *Config) any { return *f.at(c) }

// auto leaves a number to the engine.
const auto = "auto"

// ubatch is how many tokens of a prompt make a batch.
type ubatch func(*Config) *int

func (f ubatch) describe(s *backend.Setting) {
	s.Kind, s.Words, s.Least, s.Most = backend.Whole, []string{auto}, 1, MaxUBatch
	s.Want = fmt.Sprintf("1 to %d, or auto", MaxUBatch)
}

// get returns the number in force, also where it was chosen.
func (f ubatch) get(c *Config) string {
	if *f(c) == 0 {
		return auto
	}
	return strconv.Itoa(*f(c))
}

func (f ubatch) put(c *Config, v string) (err error) {
	if *f(c) = 0; v != auto {
		*f(c), err = strconv.Atoi(v)
	}
	return err
}

func (f ubatch) json(c *Config) any { return *f(c) }

// budget is the expert cache's, in whole MiB.
type budget func(*Config) *Budget

func (f budget) describe(s *backend.Setting) {
	s.Kind, s.Unit, s.Words, s.Least, s.Most = backend.Whole, "MiB", []string{auto}, 0, math.MaxInt32
	s.Want = "0 or more MiB, or auto"
}

// get returns the MiB of a budget in force, also of one that was chosen.
func (f budget) get(c *Config) string {
	b := f(c)
	if b.Auto && b.Bytes == 0 {
		return auto
	}
	return strconv.FormatInt(b.MiB(), 10)
}

func (f budget) put(c *Config, v string) error {
	b := f(c)
	if v == auto {
		*b = Budget{Auto: true, Share: b.Share}
		return nil
	}
	n, err := strconv.Atoi(v)
	*b = Budget{Bytes: units.FromMiB(int64(n)), Share: b.Share}
	return err
}

func (f budget) json(c *Config) any { return f(c).MiB() }
