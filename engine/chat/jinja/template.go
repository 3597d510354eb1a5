// Package jinja renders the subset of Jinja2 that chat templates are written in,
// as Hugging Face's transformers renders it: trim_blocks and lstrip_blocks on,
// Python's values and string methods, dicts in insertion order, and the additions
// raise_exception, strftime_now, tojson, break, continue and generation blocks.
//
// A template comes out of a model file, that is, from a stranger. It can reach
// nothing but its context, and a Limits stops it: too much work, output or depth
// ends in one error.
//
// The language is that of the Jinja documentation ("Template Designer
// Documentation", version 3.1). Templates of several files (extends, include,
// import, block) and automatic escaping are left out: a model has one template.
package jinja

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// maxSource is the length in bytes of the longest template that is parsed. The
// longest one known has 17 KB.
const maxSource = 1 << 20

// Template is a parsed template. It may be rendered by several goroutines at
// once.
type Template struct {
	body []stmt
}

// Error is what is wrong with a template, in itself or with the context that it
// was given.
type Error struct {
	Line   int    // in the template, from 1
	Msg    string // in lower case, without the line
	Raised bool   // the template itself called raise_exception
}

// maxMessage is the length in characters of an error's text. A template may raise
// one of any length, made of the messages that it was given.
const maxMessage = 300

// Error says what is wrong and in which line, in at most maxMessage characters.
func (e *Error) Error() string {
	what := ":"
	if e.Raised {
		what = " refuses:"
	}
	text := fmt.Sprintf("line %d%s %s", e.Line, what, e.Msg)
	if utf8.RuneCountInString(text) <= maxMessage {
		return text
	}
	return string([]rune(text)[:maxMessage-3]) + "..."
}

// Limits bound one rendering. A zero field means its default.
type Limits struct {
	Steps int // evaluated nodes; default 20 million, one to three seconds
	Bytes int // of all strings and lists made on the way; default 1 GiB
	Text  int // bytes of one string, the output included; default 64 MiB
	Depth int // macros and recursive loops inside each other; default 200
}

func (l Limits) orDefault() Limits {
	set := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	set(&l.Steps, 20_000_000)
	set(&l.Bytes, 1<<30)
	set(&l.Text, 64<<20)
	set(&l.Depth, 200)
	return l
}

// Options are what a rendering needs beside its context.
type Options struct {
	Now    time.Time // what strftime_now tells
	Limits Limits
	// StandIns are characters in the strings of the context that stand for others
	// of the same number of bytes. To the template they are those others: whatever
	// compares, finds or escapes sees them. The output still holds them, so that
	// its reader can tell which of its characters came out of the context.
	StandIns map[rune]rune
}

// Parse reads a template. Its error is an *Error.
func Parse(source string) (t *Template, err error) {
	defer catch(&err)
	if len(source) > maxSource {
		fail(1, "template of %d bytes: more than %d are not read", len(source), maxSource)
	}
	p := parser{tokens: lex(source)}
	return &Template{body: p.template()}, nil
}

// Render executes the template. The names in vars are the template's variables.
// Its error is an *Error, or that of ctx.
func (t *Template) Render(ctx context.Context, vars *Dict, o Options) (text string, err error) {
	defer catch(&err)
	st := &state{ctx: ctx, limits: o.Limits.orDefault(), now: o.Now, standIns: o.StandIns, out: new(strings.Builder), line: 1}
	st.poll()
	globals := st.globals()
	top := globals.child()
	for i, k := range vars.keys {
		if name, ok := k.(string); ok {
			top.set(name, vars.vals[i])
		}
	}
	st.block(t.body, top)
	return st.out.String(), nil
}

// fail ends parsing or rendering; catch turns it into an error.
func fail(line int, format string, args ...any) {
	panic(&Error{Line: line, Msg: fmt.Sprintf(format, args...)})
}

// stopped ends a rendering whose context has ended.
type stopped struct{ error }

func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	case stopped:
		*err = r.error
	default:
		panic(r) // a bug of ours, not of the template
	}
}
