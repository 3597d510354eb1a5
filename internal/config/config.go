// Package config reads the user's configuration file: settings by name, in TOML.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// KeysTable is the one table that a file may have: what is asked for by which keys.
const KeysTable = "keys"

// Entry is a setting of the file, or what a key of the table of keys asks for.
type Entry struct {
	Name  string
	Value string // as the setting takes it: on and off for true and false
	Line  int    // in the file, from 1
	Table string // that it stands in; empty: none
}

// Error is a file that cannot be used, with the line that is the reason.
type Error struct {
	Path    string
	Line    int // 0: none
	Problem string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Path + ": " + e.Problem
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Problem)
}

// maxFile bounds what is read.
const maxFile = 1 << 20

// Read returns the settings of a file in their order. What is an array in it comes as
// an entry for each value. A file that is not there wraps fs.ErrNotExist; one that is
// no TOML, or more than names with values, is an *Error.
func Read(path string) ([]Entry, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &Error{path, 0, "not a regular file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // opened for reading: nothing is lost if closing fails
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxFile {
		return nil, &Error{path, 0, "longer than 1 MiB"}
	}
	return parse(path, b)
}

func parse(path string, b []byte) ([]Entry, error) {
	values := map[string]any{}
	if err := toml.Unmarshal(b, &values); err != nil {
		line := 0
		var at *toml.DecodeError
		problem := err.Error()
		if errors.As(err, &at) {
			line, _ = at.Position()
		}
		problem, _, _ = strings.Cut(strings.TrimPrefix(problem, "toml: "), "\n")
		return nil, &Error{path, line, problem}
	}
	var out []Entry
	table, of := "", values
	p := &unstable.Parser{}
	p.Reset(b)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.Comment {
			continue
		}
		keys := e.Key()
		if !keys.Next() {
			continue
		}
		key := keys.Node()
		line := p.Shape(key.Raw).Start.Line
		if inside, ok := values[KeysTable].(map[string]any); ok && e.Kind == unstable.Table && string(key.Data) == KeysTable && !keys.Next() {
			table, of = KeysTable, inside
			continue
		}
		if e.Kind != unstable.KeyValue || keys.Next() {
			return nil, &Error{path, line, "settings stand alone, as in lanes = 8, without dots and without tables but [keys]"}
		}
		name := string(key.Data)
		all, ok := of[name].([]any)
		if !ok {
			all = []any{of[name]}
		}
		for _, v := range all {
			text, ok := worded(v)
			if !ok {
				return nil, &Error{path, line, fmt.Sprintf("%s: want a text, a number, true or false", name)}
			}
			out = append(out, Entry{name, text, line, table})
		}
	}
	if err := p.Error(); err != nil {
		return nil, &Error{path, 0, err.Error()} // it was good a moment ago
	}
	return out, nil
}

// worded is a value as settings take it.
func worded(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		if v {
			return "on", true
		}
		return "off", true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}
