package jinja

import (
	"errors"
	"strings"
	"testing"
)

// A hostile template ends in one error, soon and without much memory.
func TestLimits(t *testing.T) {
	deep := func(open, close string, n int) string {
		return strings.Repeat(open, n) + "1" + strings.Repeat(close, n)
	}
	for source, want := range map[string]string{
		"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}": "stopped after",
		"{{ 'a' * 1000000000 }}":          "stopped at a text",
		"{{ [1] * 9000000000000000000 }}": "stopped at a text",
		"{% set ns = namespace(s='ab') %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}{% endfor %}":                                                      "stopped",
		"{% set ns = namespace(l=[1]) %}{% for i in range(100) %}{% set ns.l = ns.l + ns.l %}{% endfor %}":                                                       "stopped",
		"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}":                                             "stopped",
		"{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l | tojson }}":                                    "stopped",
		"{% set ns = namespace(l=[1], m=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% set ns.m = [ns.m, ns.m] %}{% endfor %}{{ ns.l == ns.m }}": "stopped",
		"{% set l = [] %}{% set _ = l.append(l) %}{{ l }}":                                                                                                       "nested deeper",
		"{% set l = [] %}{% set _ = l.append(l) %}{{ l | tojson }}":                                                                                              "nested deeper",
		"{% set l = [] %}{% set _ = l.append(l) %}{% set m = [] %}{% set _ = m.append(m) %}{{ l == m }}":                                                         "nested deeper",
		"{% set l = [1] %}{% for x in l %}{% set _ = l.append(x) %}{% endfor %}{{ l | length }}":                                                                 "", // it goes over a copy
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}":                                                                                                        "deeper than 200 levels",
		"{% macro a() %}{% call a() %}{% endcall %}{% endmacro %}{{ a() }}":                                                                                      "deeper than 200 levels",
		"{% for x in [[]] recursive %}{{ loop([x]) }}{% endfor %}":                                                                                               "deeper than 200 levels",
		"{{ 'a'.replace('', 'x' * 60000000) }}{{ ('a' * 9999).replace('a', 'b' * 99999) }}":                                                                      "stopped",
		"{{ 'x'.ljust(99999999999) }}":                                       "stopped",
		"{{ 'x'.center(9223372036854775807) }}":                              "stopped",
		"{{ '%999999999d' % 1 }}":                                            "stopped",
		"{{ '{:>999999999}'.format(1) }}":                                    "stopped",
		"{{ [1] | tojson(indent=100000000) | length > 0 }}":                  "", // one level's indent is cut to a megabyte
		"{{ 'a\nb' | indent(999999999) }}":                                   "stopped",
		"{{ [1] | batch(9999999999, 'x') | list }}":                          "stopped",
		"{{ range(100001) }}":                                                "more than 100000",
		"{{ 9223372036854775807 + 1 }}":                                      "overflow",
		"{{ -9223372036854775807 - 2 }}":                                     "overflow",
		"{{ 4294967296 * 4294967296 }}":                                      "overflow",
		"{{ 3 ** 1000000000000 }}":                                           "overflow",
		"{{ 1 ** 9000000000000 + 0 ** 9 + (-1) ** 9000000000001 }}":          "",
		"{{ 10.0 ** 400 }}":                                                  "",
		"{{ range(9223372036854775800, 9223372036854775807, 5) | list }}":    "",
		"{{ 'abc'[::9223372036854775807] ~ 'abc'[::-9223372036854775807] }}": "",
		"{{ " + deep("(", ")", 100) + " }}":                                  "",
		"{{ " + deep("(", ")", 100000) + " }}":                               "nested deeper",
		"{{ " + deep("[", "]", 100000) + " }}":                               "nested deeper",
		"{{ " + deep("-", "", 100000) + " }}":                                "nested deeper",
		"{{ " + deep("not ", "", 100000) + " }}":                             "nested deeper",
		"{{ " + deep("1 if 1 else ", "", 50000) + " }}":                      "nested deeper",
		"{{ " + deep("x[", "]", 100000) + " }}":                              "nested deeper",
		"{{ " + deep("x(", ")", 100000) + " }}":                              "nested deeper",
		"{{ " + deep("1 + ", "", 100000) + " }}":                             "operators in a row",
		"{{ 1" + strings.Repeat(" | string", 100000) + " }}":                 "operators in a row",
		"{{ x" + strings.Repeat(".y", 100000) + " }}":                        "operators in a row",
		deep("{% if 1 %}", "{% endif %}", 10000):                             "nested deeper",
		strings.Repeat("x", maxSource+1):                                     "are not read",
		"{{ strftime_now('%c' * 100000) | length > 0 }}":                     "",
		"{{ ('[' * 100000) | from_json }}":                                   "nested deeper",
	} {
		tmpl, err := Parse(source)
		if err == nil {
			_, err = tmpl.Render(t.Context(), NewDict(), Options{Limits: Limits{Steps: 1_000_000}})
		}
		var e *Error
		switch {
		case want == "" && err != nil:
			t.Errorf("%.70s: %v", source, err)
		case want != "" && (!errors.As(err, &e) || !strings.Contains(err.Error(), want)):
			t.Errorf("%.70s: error %v, want one with %q", source, err, want)
		}
	}
}

// Without limits set, a rendering that never ends is stopped too.
func TestDefaultLimits(t *testing.T) {
	_, err := render("{% for i in range(100000) %}{% for j in range(100000) %}{{ i }}{% endfor %}{% endfor %}", NewDict())
	if err == nil || !strings.Contains(err.Error(), "stopped after 20000000 steps") {
		t.Errorf("error %v", err)
	}
}

// Limits that a caller sets hold.
func TestSetLimits(t *testing.T) {
	tmpl, err := Parse("{% for i in range(1000) %}0123456789{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []Limits{{Steps: 500}, {Bytes: 9000}, {Text: 9000}} {
		if _, err := tmpl.Render(t.Context(), NewDict(), Options{Limits: l}); err == nil || !strings.Contains(err.Error(), "stopped") {
			t.Errorf("%+v: error %v", l, err)
		}
	}
	if text, err := tmpl.Render(t.Context(), NewDict(), Options{}); err != nil || len(text) != 10000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

// A raised message comes through, with its line.
func TestRaise(t *testing.T) {
	_, err := render("\n{% if true %}\n{{ raise_exception('Roles must alternate') }}{% endif %}", NewDict())
	var e *Error
	if !errors.As(err, &e) || !e.Raised || e.Line != 3 || e.Msg != "Roles must alternate" {
		t.Errorf("error %v", err)
	}
}

// FuzzRender: no template and no context makes anything but a text or an *Error.
func FuzzRender(f *testing.F) {
	for _, s := range []string{
		"{% for m in messages %}{{ m.role ~ m['content'] | trim }}{% endfor %}", "{{ messages[0].content.split('a')[-1][::-1] }}",
		"{% macro m(a, b=2) %}{{ caller(a) }}{% endmacro %}{% call(x) m(1) %}{{ x }}{% endcall %}", "{% set ns = namespace(x=1) %}{% set ns.x = 2 %}{{ ns.x }}",
		"{%- raw -%}{{ x }}{%- endraw -%}{# c #}", "{{ '%05.2f|%s' % (1, 'a') ~ '{:>9}'.format(3) }}", "{{ messages | tojson(indent=2) | from_json | sort }}",
		"{{ messages | selectattr('role', 'eq', 'user') | map(attribute='content') | list | join(',') | replace('a', 'b') }}",
		"{% for x in [1, [2]] recursive %}{{ loop(x) if x is iterable else loop.cycle('a', x) }}{% else %}{% endfor %}",
		"{% with a = 1 %}{% filter upper %}{{ a }}{% endfilter %}{% endwith %}{% generation %}{% endgeneration %}",
		"{% if a is defined and not b or c not in d %}{{ -1 ** 2 // 3 % 4 }}{% elif x %}{% else %}{% endif %}", "{{ d.items() | list ~ {'a': (1,), 2: none} }}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tmpl, err := Parse(source)
		if err == nil {
			v, jsonErr := FromJSON([]byte(`{"messages": [{"role": "user", "content": "añb"}, {"role": "x", "content": null}], "d": {"k": [1, 2.5, true]}, "a": "text", "b": 0}`))
			if jsonErr != nil {
				t.Fatal(jsonErr)
			}
			_, err = tmpl.Render(t.Context(), v.(*Dict), Options{Limits: Limits{Steps: 100000, Bytes: 1 << 22, Text: 1 << 20, Depth: 20}})
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1) {
			t.Fatalf("error %v", err)
		}
	})
}

func FuzzJSON(f *testing.F) {
	f.Add(`{"b": [1, 2.0, 1e400, "x\u00e9\ud83d\ude00", null, true], "a": {}}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := FromJSON([]byte(text))
		if err != nil {
			return
		}
		d := NewDict()
		d.Set("v", v)
		out, err := render("{{ v | tojson }}", d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := FromJSON([]byte(out))
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		d.Set("w", again)
		if same, err := render("{{ v == w }}", d); err != nil || same != "True" {
			t.Fatalf("%q became %q, %v", text, out, err)
		}
	})
}
