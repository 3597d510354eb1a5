package main

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"bmoe/engine/ab"
	"bmoe/profile"
)

// docSection returns a part of docs/telemetry.md, by its heading.
func docSection(t *testing.T, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(string(readTest(t, filepath.Join("..", "..", "docs", "telemetry.md"))), "\n## "+heading)
	if !ok {
		t.Fatalf("docs/telemetry.md has no part %s", heading)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	return section
}

// item returns what a list says of a word.
func item(section, word string) (string, bool) {
	for _, item := range strings.Split(section, "\n- ")[1:] {
		head, _, _ := strings.Cut(item, ":")
		if dot := strings.Index(item, "."); dot >= 0 && dot < len(head) {
			head = item[:dot]
		}
		if strings.Contains(head, "`"+word+"`") {
			return item, true
		}
	}
	return "", false
}

// undocumented returns the fields of a type that a text does not name.
func undocumented(in reflect.Type, text string) (missing []string) {
	for i := range in.NumField() {
		f := in.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		if !strings.Contains(text, "`"+name+"`") {
			missing = append(missing, name)
		}
		at := f.Type
		if at.Kind() == reflect.Slice || at.Kind() == reflect.Pointer {
			at = at.Elem()
		}
		if at.Kind() == reflect.Struct && !strings.HasPrefix(at.Name(), "Maybe[") {
			part, ok := item(text, name)
			if !ok {
				part = text // what is inside an object that stands in another's line
			}
			for _, m := range undocumented(at, part) {
				missing = append(missing, name+"."+m)
			}
		}
	}
	return missing
}

// Every field that a program can read is explained, where it belongs.
func TestTelemetryIsDocumented(t *testing.T) {
	if missing := undocumented(reflect.TypeFor[profile.Result](), docSection(t, "`--json`")); len(missing) > 0 {
		t.Errorf("docs/telemetry.md does not tell of these fields of --json: %q", missing)
	}
	if missing := undocumented(reflect.TypeFor[reportRow](), docSection(t, "`--report`")); len(missing) > 0 {
		t.Errorf("docs/telemetry.md does not tell of these fields of report.json: %q", missing)
	}
	if missing := undocumented(reflect.TypeFor[ab.Tuned](), docSection(t, "`--tune`")); len(missing) > 0 {
		t.Errorf("docs/telemetry.md does not tell of these fields of --tune: %q", missing)
	}
	if missing := undocumented(reflect.TypeFor[tuning](), docSection(t, "`--tune`")); len(missing) > 0 {
		t.Errorf("docs/telemetry.md does not tell of these fields of --tune: %q", missing)
	}
	progress := docSection(t, "`--progress`")
	for line, is := range map[string]reflect.Type{
		"BMOE_READY": reflect.TypeFor[readyLine](), "BMOE_BEGIN": reflect.TypeFor[beginLine](), "BMOE_PREFILL": reflect.TypeFor[prefillLine](),
		"BMOE_LOAD": reflect.TypeFor[loadLine](), "BMOE_PROGRESS": reflect.TypeFor[progressLine](), "BMOE_DONE": reflect.TypeFor[doneLine](), "BMOE_ERROR": reflect.TypeFor[errorLine](),
	} {
		text, ok := item(progress, line)
		if !ok {
			t.Errorf("docs/telemetry.md does not tell of %s", line)
		} else if missing := undocumented(is, text); len(missing) > 0 {
			t.Errorf("docs/telemetry.md does not tell of these fields of %s: %q", line, missing)
		}
	}
}

// The test above finds what is missing, at any depth.
func TestWhatIsUndocumentedIsFound(t *testing.T) {
	type inner struct {
		A int                    `json:"a"`
		B profile.Maybe[float64] `json:"b"`
	}
	type outer struct {
		One  int     `json:"one"`
		Two  int     `json:"two"`
		Part inner   `json:"part"`
		List []inner `json:"list"`
	}
	got := undocumented(reflect.TypeFor[outer](), "\n- `one`: and `a`, `b`\n- `part`: `a`\n- `list`: `a`, `b`\n")
	if want := "[two part.b]"; fmt.Sprint(got) != want {
		t.Errorf("%v are missing, want %s", got, want)
	}
}
