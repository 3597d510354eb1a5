package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// ErrStdoutClosed ends a run whose reader has gone.
var ErrStdoutClosed = errors.New("standard output is closed")

// Output is standard output. After a failed write nothing more is written.
type Output struct {
	w   io.Writer
	err error
	buf bytes.Buffer
}

// NewOutput returns the output that goes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Text writes a text at once.
func (o *Output) Text(s string) error {
	if o.err != nil || s == "" {
		return o.err
	}
	if _, err := io.WriteString(o.w, s); isClosedPipe(err) {
		o.err = ErrStdoutClosed
	} else if err != nil {
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err // its path is a name of the system's
		}
		o.err = fmt.Errorf("writing to standard output: %w", err)
	}
	return o.err
}

// Line writes one JSON object on a line, after a word if there is one.
func (o *Output) Line(word string, object any) error {
	o.buf.Reset()
	if word != "" {
		o.buf.WriteString(word + " ")
	}
	e := json.NewEncoder(&o.buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(object); err != nil { // ends the line too
		return fmt.Errorf("JSON: %w", err)
	}
	return o.Text(escapeControls(o.buf.String()))
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
