package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/internal/units"
)

// TestEverySettingIsWhole: each row can be told apart, is explained, and takes
// back its own values.
func TestEverySettingIsWhole(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Settings(DefaultConfig()) {
		for _, key := range []string{"name " + r.Name, "flag " + r.Flag, "short " + r.Short} {
			if seen[key] && key != "short " {
				t.Errorf("two settings have the %s", key)
			}
			seen[key] = true
		}
		if r.Name == "" || r.Flag == "" || r.Section == "" || r.Help == "" || r.Want == "" || r.Origin != backend.FromDefault {
			t.Errorf("incomplete: %+v", r)
		}
		row := settings.find(r.Name)
		if (row.apply != nil) != r.Live {
			t.Errorf("%s: live %v, but applied between runs: %v", r.Name, r.Live, row.apply != nil)
		}
		c := DefaultConfig()
		for _, v := range append(slices.Clone(r.Words), r.Value) {
			if v == "" {
				continue
			}
			if err := c.Set(r.Name, v, backend.FromFlag); err != nil || row.get(&c) != v {
				t.Errorf("%s takes %q as %q: %v", r.Name, v, row.get(&c), err)
			}
		}
		if r.Kind == backend.Text {
			continue
		}
		var refused *backend.SettingError
		before := row.get(&c)
		if err := c.Set(r.Name, "-?", backend.FromFlag); !errors.As(err, &refused) || refused.Setting != r.Name || !strings.Contains(refused.Problem, r.Want) || row.get(&c) != before {
			t.Errorf("%s refuses -? with %v", r.Name, err)
		}
	}
}

// TestASettingMoreIsOneRow adds a row to the table and finds it in everything
// that the engine makes of the table.
func TestASettingMoreIsOneRow(t *testing.T) {
	cold := ""
	more := append(slices.Clone(settings), setting{
		Setting: backend.Setting{Name: "one-more", Flag: "one-more-flag", Section: sectionStreaming, Help: "a setting more", Lossy: true},
		field:   word{func(*Config) *string { return &cold }, []string{"never", "always"}},
	})
	c := DefaultConfig()
	before := backend.Values(more.rows(&c))
	if err := more.set(&c, "one-more", "always", backend.FromFlag); err != nil || cold != "always" {
		t.Fatalf("set to %q: %v", cold, err)
	}
	if err := more.set(&c, "one-more", "maybe", backend.FromFlag); err == nil || err.Error() != `one-more "maybe": want never, always` {
		t.Errorf("refused with %v", err)
	}
	r := backend.Find(more.rows(&c), "one-more")
	if r == nil || r.Value != "always" || r.Origin != backend.FromFlag || r.Kind != backend.Word || r.Want != "never, always" {
		t.Errorf("the row: %+v", r)
	}
	if d := backend.Differences(before, backend.Values(more.rows(&c))); !slices.Equal(d, []string{"one-more always"}) {
		t.Errorf("differences %v", d)
	}
	b, err := more.json(&c)
	if err != nil || !strings.Contains(string(b), `"one_more_flag":"always"`) {
		t.Errorf("json %s: %v", b, err)
	}
}

func TestConfigJSON(t *testing.T) {
	c := DefaultConfig()
	c.Cache, c.Lanes = Budget{Bytes: 3000 << 20, Auto: true}, 8
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"cache_mb": 3000., "io_threads": 8., "overlap": true, "numerics": "fast", "top_p": 0.95, "seed": 1., "simulate_host": ""} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	if len(got) != len(settings) {
		t.Errorf("%d keys of %d settings", len(got), len(settings))
	}
}

func TestSetLeavesCopiesAlone(t *testing.T) {
	a := DefaultConfig()
	if err := a.Set("lanes", "8", backend.FromFlag); err != nil {
		t.Fatal(err)
	}
	b := a
	if err := b.Set("overlap", "off", backend.FromFlag); err != nil {
		t.Fatal(err)
	}
	if r := backend.Find(Settings(a), "overlap"); r.Value != "on" || r.Origin != backend.FromDefault {
		t.Errorf("a change of the copy reached the original: %+v", r)
	}
	if r := backend.Find(Settings(b), "overlap"); r.Value != "off" || r.Origin != backend.FromFlag {
		t.Errorf("the copy: %+v", r)
	}
}

func TestStepBudget(t *testing.T) {
	const all = 192 * 104448 // the demo model's experts
	seen := []int64{}
	for n, dir := int64(8), +1; ; {
		to := stepBudget(n, dir, all)
		if to == n && dir < 0 {
			break
		}
		if to == n {
			dir = -1
			continue
		}
		n = to
		seen = append(seen, n)
	}
	if got := fmt.Sprint(seen); got != "[10 12 15 17 20 17 15 12 10 8 5 3]" {
		t.Errorf("budgets in MiB: %s", got)
	}
	if up := stepBudget(8, 3, all); up != 15 {
		t.Errorf("three steps up from 8 MiB: %d", up)
	}
	if got := stepBudget(7, 1, 0); got != 7 {
		t.Errorf("without experts: %d", got)
	}
}

// TestSettingsOfASession: what can be stepped, changed, refused and given back
// between runs, and what the session says of it.
func TestSettingsOfASession(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Ctx, cfg.Cache.Share = filepath.Join("demo", "tiny-stories-moe-q8_0.gguf"), 64, 0.4
	if err := cfg.Set("force-cache", "on", backend.FromFlag); err != nil {
		t.Fatal(err)
	}
	s := open(t, cfg)
	value := func(name string) string { return backend.Find(s.Settings(), name).Value }
	for _, c := range []struct {
		name, from string
		dir        int
		want       string
	}{
		{"lanes", "1", -1, "1"}, {"lanes", "1", 1, "2"}, {"lanes", "3", 1, "4"}, {"lanes", "3", -1, "2"}, {"lanes", "8", 1, "8"}, {"lanes", "16", -1, "8"},
		{"lanes", "1", 2, "4"}, {"overlap", "on", 1, "off"}, {"overlap", "on", -2, "on"}, {"cache", "auto", 1, "auto"},
		{"numerics", "fast", 1, "exact"}, {"numerics", "exact", 1, "exact"}, {"no such", "1", 1, "1"},
	} {
		if got := s.Step(c.name, c.from, c.dir); got != c.want {
			t.Errorf("%s %+d from %s: %s, want %s", c.name, c.dir, c.from, got, c.want)
		}
	}
	// Steps up end where every expert has a slot, and not before.
	all := s.shape.Total()
	if got := s.Step("cache", "3", budgetSteps); got != fmt.Sprint(units.MiBUp(all)) {
		t.Errorf("steps up end at %s MiB where %d bytes hold all experts", got, all)
	}
	chosen := value("cache")
	for _, c := range []struct {
		name, value string
		verdict     backend.Verdict
		now, reason string
	}{
		{"cache", "12", backend.Applied, "12 MiB", ""},
		{"cache", "auto", backend.Applied, chosen + " MiB", ""},
		{"cache", "x", backend.Declined, chosen + " MiB", "want 0 or more MiB, or auto"},
		{"lanes", "0", backend.Declined, "4", "want 1 to"},
		{"overlap", "off", backend.Applied, "off", ""},
		{"threads", "1", backend.Applied, "1", ""},
		{"numerics", "exact", backend.Declined, value("numerics"), "{numerics=exact}"},
		{"nothing", "1", backend.Declined, "", "no such setting"},
	} {
		o := s.Apply(map[string]string{c.name: c.value})
		if len(o) != 1 || o[0].Setting != c.name || o[0].Verdict != c.verdict || o[0].Value != c.now || !strings.Contains(o[0].Reason, c.reason) {
			t.Errorf("%s %s: %+v", c.name, c.value, o)
		}
	}
	if !s.cfg.Cache.Auto {
		t.Error("a budget given back to the engine is not its own choice")
	}
	for name, want := range map[string]string{"overlap": backend.FromKey, "force-cache": backend.FromFlag, "lanes": backend.FromDefault} {
		if r := backend.Find(s.Settings(), name); r.Origin != want {
			t.Errorf("%s comes from %s, want %s", name, r.Origin, want)
		}
	}
}

// TestIdleSettingsSaySo: what nothing depends on beside the other settings is
// marked, ignored, and no part of a run's settings.
func TestIdleSettingsSaySo(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Model, cfg.Ctx, cfg.Stream = filepath.Join("demo", "tiny-stories-moe-q8_0.gguf"), 64, false
	s := open(t, cfg)
	for _, name := range []string{"lanes", "cache", "overlap", "cache-policy"} {
		if r := backend.Find(s.Settings(), name); !strings.Contains(r.Idle, "{moe-stream=off}") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if o := s.Apply(map[string]string{"lanes": "2"})[0]; o.Verdict != backend.Ignored || o.Value != "4" {
		t.Errorf("%+v", o)
	}
	for _, v := range backend.Values(s.Settings()) {
		if v.Name == "lanes" {
			t.Error("a run that streams nothing remembers its lanes")
		}
	}
}
