package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bmoe/engine/backend"
	"bmoe/internal/cli"
	"bmoe/internal/config"
	"bmoe/internal/userdir"
	"bmoe/tui"

	"github.com/spf13/pflag"
)

// configName is the file's name in the user's configuration folder.
const configName = "config.toml"

// readConfig takes the settings of the configuration file: of the one that is named, or
// of the user's own if it is there. What the command line says wins. A file with
// anything wrong in it is left out whole, so that nobody measures with half of it, and
// what is wrong is returned as a line to tell.
func (o *options) readConfig() (notice string, err error) {
	path := o.configFile
	if path == "" {
		dir, err := userdir.Config()
		if err != nil {
			return "", nil // a user without a home has none
		}
		path = filepath.Join(dir, configName)
	}
	entries, err := config.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && o.configFile == "":
		return "", nil
	case errors.Is(err, fs.ErrNotExist):
		return "", cli.Usagef("--config: there is no %s", path)
	}
	before, folders, look := o.cfg, o.modelFolders, [...]any{o.theme, o.ascii, o.noMouse}
	if err == nil {
		err = o.takeConfig(path, entries)
	}
	if err != nil {
		o.cfg, o.modelFolders, o.keys = before, folders, nil
		o.theme, o.ascii, o.noMouse = look[0].(string), look[1].(bool), look[2].(bool)
		return err.Error() + "; started without this file", nil
	}
	return "", nil
}

// takeConfig gives settings the file's values.
func (o *options) takeConfig(path string, entries []config.Entry) error {
	lines := map[string]int{}
	for _, e := range entries {
		bad := func(problem string) error { return &config.Error{Path: path, Line: e.Line, Problem: problem} }
		if e.Table == config.KeysTable {
			if o.keys == nil {
				o.keys = tui.Keys{}
			}
			o.keys[e.Name] = append(o.keys[e.Name], e.Value)
			lines[e.Name] = e.Line
			continue
		}
		if f := o.screenFlag(e.Name); f != nil {
			if o.given(e.Name) {
				continue
			}
			value := e.Value
			if f.Value.Type() == "bool" {
				value = map[string]string{backend.On: "true", backend.Off: "false"}[value]
			}
			if err := f.Value.Set(value); err != nil {
				return bad(fmt.Sprintf("%s = %s: %v", e.Name, e.Value, err))
			}
			continue
		}
		if e.Name == "models-dir" {
			o.modelFolders = append(o.modelFolders, inFolder(path, e.Value))
			continue
		}
		row := backend.Find(o.settings, e.Name)
		for i := range o.settings { // it may be called as on the command line, too
			if o.settings[i].Flag == e.Name {
				row = &o.settings[i]
			}
		}
		if row == nil {
			return bad(fmt.Sprintf("there is no setting %q; docs/cli.md lists them", e.Name))
		}
		var refused *backend.SettingError
		if errors.As(row.Check(e.Value), &refused) {
			return bad(fmt.Sprintf("%s = %s: %s", e.Name, refused.Value, refused.Problem))
		}
		if o.given(row.Flag) || row.Name == "model" && (o.cfg.Model != "" || o.hf != "") {
			continue // the command line wins
		}
		value := e.Value
		if row.Kind == backend.Text {
			value = inFolder(path, value)
		}
		if err := o.cfg.Set(row.Name, value, backend.FromFile); err != nil {
			return bad(o.worded(err).Error())
		}
	}
	var key *tui.KeyError
	if errors.As(o.keys.Check(), &key) {
		return &config.Error{Path: path, Line: lines[key.Action], Problem: "[keys] " + key.Error()}
	}
	return nil
}

// screenFlag is a flag of the screen that a file may give a value, nil if it is none.
func (o *options) screenFlag(name string) *pflag.Flag {
	if !slices.Contains([]string{"theme", "ascii", "no-mouse"}, name) {
		return nil
	}
	for _, s := range o.groups {
		if f := s.Lookup(name); f != nil {
			return f
		}
	}
	return nil
}

// inFolder is a path of the file: one that is not absolute begins at the file's folder.
func inFolder(file, path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
