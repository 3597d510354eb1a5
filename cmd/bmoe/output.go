package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// errStdoutClosed ends a run whose reader has gone.
var errStdoutClosed = errors.New("standard output is closed")

// output is standard output. After a failed write nothing more is written.
type output struct {
	w   io.Writer
	err error
	buf bytes.Buffer
}

func newOutput(w io.Writer) *output { return &output{w: w} }

// text writes a text at once.
func (o *output) text(s string) error {
	if o.err != nil || s == "" {
		return o.err
	}
	if _, err := io.WriteString(o.w, s); isClosedPipe(err) {
		o.err = errStdoutClosed
	} else if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err // its path is a name of the system's
		}
		o.err = fmt.Errorf("writing to standard output: %w", err)
	}
	return o.err
}

// line writes one JSON object on a line, after a word if there is one.
func (o *output) line(word string, object any) error {
	o.buf.Reset()
	if word != "" {
		o.buf.WriteString(word + " ")
	}
	e := json.NewEncoder(&o.buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil { // ends the line too
		return fmt.Errorf("JSON: %w", err)
	}
	return o.text(escapeControls(o.buf.String()))
}

// escapeControls escapes what JSON lets stand and terminals obey: U+007F to
// U+009F. In the encoder's output they stand only in strings.
func escapeControls(s string) string {
	if strings.IndexFunc(s, isHighControl) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isHighControl(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isHighControl(r rune) bool { return r >= 0x7f && r <= 0x9f }
