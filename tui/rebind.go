package tui

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Keys are keys that the user gives to what can be asked for, by its name.
type Keys map[string][]string

// KeyError is a key that cannot be given.
type KeyError struct {
	Action  string // whose line it is
	Problem string
}

func (e *KeyError) Error() string { return e.Action + ": " + e.Problem }

// actionNames are what can be given other keys. What opens a view is named as the view,
// and what changes a setting as the setting, with -up and -down where there are both.
var actionNames = map[action]string{
	actAgain: "again", actNewChat: "new", actSave: "save", actFold: "thoughts", actFreeze: "freeze", actSlowest: "slowest", actCopy: "copy",
	actZoomOut: "zoom-out", actZoomIn: "zoom-in", actZoomAll: "zoom-all", actExpand: "expand", actFind: "find", actSwitch: "panes", actRepaint: "repaint", actSuspend: "suspend", actLeave: "leave",
}

// name is what a key of the row asks for, in the configuration file; empty: it keeps its
// key.
func (b bind) name(r *keyRow) string {
	switch b.act {
	case actOpen:
		return r.view
	case actStepDown:
		return r.setting + "-down"
	case actStepUp:
		if slices.ContainsFunc(r.any, func(o bind) bool { return o.act == actStepDown }) {
			return r.setting + "-up"
		}
		return r.setting
	}
	return actionNames[b.act]
}

// called is what a clash calls a key's row.
func (b bind) called(r *keyRow) string {
	if name := b.name(r); name != "" {
		return name
	}
	if r.label != "" {
		return r.label
	}
	text, _, _ := strings.Cut(r.help, ":")
	return text
}

var (
	keyAnywhere = regexp.MustCompile(`^(f([1-9]|1[0-9]|20)|(ctrl|alt)\+[a-z])$`)
	keyTwin     = regexp.MustCompile(`^[!-~]$`)
)

// taken are keys that a terminal sends for others, or that have to stay what they are.
var taken = map[string]string{
	"ctrl+c": "it ends the program", "ctrl+d": "it ends the program", "ctrl+i": "terminals send it for Tab", "ctrl+m": "terminals send it for Enter", "ctrl+h": "terminals send it for Backspace",
	"ctrl+j": "it is a new line in the prompt", "ctrl+u": "the prompt needs it",
}

// actions returns the names of all that can be given keys, in the table's order.
func actions() (names []string) {
	for i := range keyTable {
		r := &keyTable[i]
		if r.view != "" {
			names = append(names, r.view)
			continue
		}
		for _, b := range slices.Concat(r.any, r.panes) {
			if n := b.name(r); n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// Check returns a *KeyError if the keys cannot be given.
func (k Keys) Check() error {
	_, err := k.table()
	return err
}

// table is the table of keys with these in place of what was there. A single character
// works with the panes focused, since the prompt takes it; any other key anywhere.
func (k Keys) table() ([]keyRow, error) {
	if len(k) == 0 {
		return keyTable, nil
	}
	rows := slices.Clone(keyTable)
	names := actions()
	for _, name := range slices.Sorted(maps.Keys(k)) {
		refuse := func(format string, args ...any) error { return &KeyError{name, fmt.Sprintf(format, args...)} }
		if !slices.Contains(names, name) {
			return nil, refuse("nothing is called so; keys can be given to %s", strings.Join(names, ", "))
		}
		var anywhere, twins []string
		for _, key := range k[name] {
			switch {
			case taken[key] != "":
				return nil, refuse("%s cannot be given: %s", key, taken[key])
			case keyAnywhere.MatchString(key):
				anywhere = append(anywhere, key)
			case keyTwin.MatchString(key):
				twins = append(twins, key)
			default:
				return nil, refuse("%q is no key that can be given: want f1 to f20, ctrl+LETTER, alt+LETTER, or one character, which works with the panes focused", key)
			}
		}
		for i := range rows {
			rows[i].any = rows[i].give(name, keyTable[i].any, rows[i].any, anywhere)
			rows[i].panes = rows[i].give(name, keyTable[i].panes, rows[i].panes, twins)
			if r := &rows[i]; r.view == name && r.label == "" && len(r.any) > 0 {
				r.label, r.rank = name, 5
			}
		}
	}
	return rows, clash(rows, k)
}

// give puts keys in place of those of a column that ask for something by this name; none
// leave the column as it is.
func (r *keyRow) give(name string, was, now []bind, keys []string) []bind {
	if len(keys) == 0 {
		return now
	}
	of := func(b bind) bool { return b.name(r) == name }
	at := slices.IndexFunc(was, of)
	b := bind{}
	switch {
	case at >= 0:
		b = was[at]
	case r.view == name:
		b.act = actOpen
	default: // the other column has it
		all := slices.Concat(r.any, r.panes)
		i := slices.IndexFunc(all, of)
		if i < 0 {
			return now
		}
		b.act = all[i].act
	}
	var given []bind
	for _, key := range keys {
		b.key = key
		given = append(given, b)
	}
	first := max(slices.IndexFunc(now, of), 0)
	out := slices.DeleteFunc(slices.Clone(now), of)
	return slices.Insert(out, min(first, len(out)), given...)
}

// clash returns an error if a key asks for two things.
func clash(rows []keyRow, k Keys) error {
	for n, column := range []func(*keyRow) []bind{anyKeys, paneKeys, chatKeys} {
		seen := map[string]string{}
		if n > 0 { // those that work anywhere come first
			for i := range rows {
				for _, b := range rows[i].any {
					seen[b.key] = b.called(&rows[i])
				}
			}
		}
		for i := range rows {
			for _, b := range column(&rows[i]) {
				name := b.called(&rows[i])
				other, twice := seen[b.key]
				seen[b.key] = name
				if !twice {
					continue
				}
				if k[name] == nil {
					name, other = other, name
				}
				return &KeyError{name, fmt.Sprintf("%s is the key of %s, too", b.key, other)}
			}
		}
	}
	return nil
}
