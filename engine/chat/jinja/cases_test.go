package jinja

import (
	"context"
	"errors"
	"os"
	"testing"
)

// Small templates, each for one thing of the language, and what Python's jinja2
// makes of them (testdata/cases.py).
func TestCases(t *testing.T) {
	text, err := os.ReadFile("testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := FromJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	cases, _ := v.(*Dict).Get("cases")
	all := cases.(*List).Items
	if len(all) < 150 {
		t.Fatalf("%d cases", len(all))
	}
	for _, c := range all {
		source, _ := c.(*Dict).Get("template")
		want, hasText := c.(*Dict).Get("text")
		why, _ := c.(*Dict).Get("error")
		fresh, err := FromJSON(text) // a template may change its context
		if err != nil {
			t.Fatal(err)
		}
		context, _ := fresh.(*Dict).Get("context")
		got, err := render(source.(string), context.(*Dict))
		var e *Error
		switch {
		case hasText && err != nil:
			t.Errorf("%s: %v, want %q", source, err, want)
		case hasText && got != want:
			t.Errorf("%s:\n got %q\nwant %q", source, got, want)
		case !hasText && err == nil:
			t.Errorf("%s: got %q; Python fails: %s", source, got, why)
		case !hasText && (!errors.As(err, &e) || e.Line < 1 || e.Msg == ""):
			t.Errorf("%s: error %v", source, err)
		}
	}
}

func render(source string, vars *Dict) (string, error) {
	tmpl, err := Parse(source)
	if err != nil {
		return "", err
	}
	return tmpl.Render(context.Background(), vars, Options{Now: goldenNow})
}
