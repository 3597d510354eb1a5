package jinja

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bmoe/internal/conform"
)

// goldenNow is the time at which the goldens were rendered.
var goldenNow = time.Date(2026, 8, 18, 12, 34, 56, 0, time.UTC)

// goldens renders every template of a folder and compares with the .json beside
// it. It returns the number of renderings that are equal.
func goldens(t *testing.T, dir string) (templates, equal int) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".jinja")
		tmpl, err := Parse(string(source))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		templates++
		text, err := os.ReadFile(strings.TrimSuffix(path, ".jinja") + ".json")
		if err != nil {
			t.Fatal(err)
		}
		v, err := FromJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		cases, _ := v.(*Dict).Get("cases")
		for _, c := range cases.(*List).Items {
			c := c.(*Dict)
			caseName, _ := c.Get("name")
			context, _ := c.Get("context")
			want, ok := c.Get("rendered")
			if !ok {
				continue // Python's sandbox failed; see README section 6
			}
			got, err := tmpl.Render(t.Context(), context.(*Dict), Options{Now: goldenNow})
			if err != nil {
				t.Errorf("%s/%s: %v", name, caseName, err)
			} else if got != want {
				t.Errorf("%s/%s:\n got %q\nwant %q", name, caseName, got, want)
			} else {
				equal++
			}
		}
	}
	return templates, equal
}

func TestSharedTemplates(t *testing.T) {
	templates, equal := goldens(t, conform.Shared(t, "conformance/templates"))
	t.Logf("%d templates, %d renderings equal", templates, equal)
	if templates != 42 || equal != 207 {
		t.Errorf("%d templates and %d renderings, want 42 and 207", templates, equal)
	}
}

// Qwen3, ChatML and gpt-oss, so that a plain test run knows the essence.
func TestTemplates(t *testing.T) {
	if templates, equal := goldens(t, "testdata"); templates != 3 || equal != 15 {
		t.Errorf("%d templates and %d renderings, want 3 and 15", templates, equal)
	}
}
