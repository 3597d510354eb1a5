// Package docs holds the tests of what the pages of this folder say of the code.
package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row is a line of the table of packages in architecture.md.
type row struct {
	name    string   // a path below the module, or a pattern of one
	also    []string // packages that the line mentions beside it
	imports []string // what it may import, as the table words it
	used    []bool   // by each of these words
}

// The table of packages is true: it has every package, and what a package imports,
// on any system, stands above it and in its line. A word that allows what nobody
// imports is out of date.
func TestPackagesImportWhatTheTableSays(t *testing.T) {
	rows := table(t)
	imports := imported(t, "..")
	of := func(name string) int {
		at := slices.IndexFunc(rows, func(r row) bool { ok, _ := path.Match(r.name, name); return ok })
		if at < 0 {
			at = slices.IndexFunc(rows, func(r row) bool {
				return slices.ContainsFunc(r.also, func(a string) bool { return strings.HasSuffix(name, "/"+a) || name == a })
			})
		}
		return at
	}
	for name := range imports {
		if of(name) < 0 {
			t.Errorf("%s is in no line of the table", name)
		}
	}
	for name, all := range imports {
		at := of(name)
		if at < 0 {
			continue
		}
		r := &rows[at]
		for _, other := range all {
			above := of(other)
			switch {
			case above == at: // within a line
			case above > at:
				t.Errorf("%s imports %s, which stands below it", name, other)
			case above >= 0 && !r.allows(other):
				t.Errorf("%s imports %s; its line says: %s", name, other, strings.Join(r.imports, ", "))
			}
		}
	}
	for _, r := range rows {
		for i, used := range r.used {
			if !used && r.imports[i] != "none" {
				t.Errorf("%s imports nothing of what its line calls %q", r.name, r.imports[i])
			}
		}
	}
}

// What knows engines only as backends, and whatever it imports, has no part of this
// program's own engine behind it: a second engine brings no kernels along.
func TestTheScreenKnowsNoEngine(t *testing.T) {
	imports := imported(t, "..")
	for _, start := range []string{"engine/backend", "engine/ab", "internal/sessions", "tui"} {
		if imports[start] == nil {
			t.Errorf("there is no %s", start)
		}
		seen := map[string]bool{}
		for left := []string{start}; len(left) > 0; left = left[1:] {
			name := left[0]
			if seen[name] {
				continue
			}
			seen[name] = true
			if part, _ := strings.CutPrefix(name, "engine/"); name == "engine" || name == "flashio" || slices.Contains([]string{"kernel", "model", "expert", "gguf", "pool"}, strings.Split(part, "/")[0]) {
				t.Errorf("%s comes to import %s", start, name)
			}
			left = append(left, imports[name]...)
		}
	}
}

// What a screen, a command or a server needs of an engine has nothing of the one that
// computes here.
func TestScreensAndServersNeedNoKernels(t *testing.T) {
	imports := imported(t, "..")
	for _, from := range []string{"engine/backend", "engine/remote", "engine/either", "tui"} {
		seen := map[string]bool{}
		var walk func(name string)
		walk = func(name string) {
			if seen[name] {
				return
			}
			seen[name] = true
			for _, other := range imports[name] {
				walk(other)
			}
		}
		walk(from)
		if len(seen) < 2 {
			t.Errorf("%s imports nothing: is it there?", from)
		}
		for name := range seen {
			if name == "engine" || name == "engine/model" || strings.HasPrefix(name, "engine/kernel") {
				t.Errorf("%s needs %s", from, name)
			}
		}
	}
}

// allows reports whether the line allows a package, and notes by which word.
func (r *row) allows(name string) (ok bool) {
	for i, word := range r.imports {
		named, parts := strings.CutSuffix(word, " and its parts")
		if word == "all above" || word == "internal" && strings.HasPrefix(name, "internal/") ||
			name == named || strings.HasSuffix(name, "/"+named) ||
			parts && strings.Contains("/"+name+"/", "/"+named+"/") {
			r.used[i], ok = true, true
		}
	}
	return ok
}

var quoted = regexp.MustCompile("`([a-z0-9/*]+)`")

// table reads the first table of architecture.md.
func table(t *testing.T) (rows []row) {
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(line, "| `") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		r := row{name: quoted.FindStringSubmatch(cells[0])[1]}
		for _, m := range quoted.FindAllStringSubmatch(cells[1], -1) {
			r.also = append(r.also, m[1])
		}
		r.imports = strings.Split(strings.TrimSpace(cells[2]), ", ")
		r.used = make([]bool, len(r.imports))
		rows = append(rows, r)
	}
	if len(rows) < 20 {
		t.Fatalf("the table has %d lines", len(rows))
	}
	return rows
}

// imported returns the packages below root and what each imports of the module,
// outside of tests, on any system.
func imported(t *testing.T, root string) map[string][]string {
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		name := filepath.ToSlash(folder)
		all[name] = append(all[name], []string{}...)
		for _, i := range source.Imports {
			if of, err := strconv.Unquote(i.Path.Value); err != nil {
				return err
			} else if ours, ok := strings.CutPrefix(of, "bmoe/"); ok {
				all[name] = append(all[name], ours)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
