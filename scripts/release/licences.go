package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// licences returns the licences of everything that the programs of a target
// link: Go's own library and the modules, in order of their names. A module
// without a licence file is an error.
func licences(t target) ([]byte, error) {
	const format = `{{with .Module}}{{if .Version}}{{.Path}} {{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}`
	list, err := run(t.env(), "go", "list", "-deps", "-f", format, "./cmd/...")
	if err != nil {
		return nil, err
	}
	root, err := run(nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	modules := strings.Split(strings.TrimSpace(string(list)), "\n")
	slices.Sort(modules)
	modules = slices.Compact(modules)
	modules = append([]string{"The Go programming language and its library\t" + strings.TrimSpace(string(root))}, modules...)

	var out bytes.Buffer
	out.WriteString("The programs of bmoe contain the following work of others.\n")
	for _, m := range modules {
		name, dir, ok := strings.Cut(m, "\t")
		if !ok {
			continue // no module is linked
		}
		texts, err := licenceFiles(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, path := range texts {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "\n%s\n%s, %s\n%s\n\n%s\n", strings.Repeat("=", 80), name, filepath.Base(path), strings.Repeat("=", 80), bytes.TrimSpace(text))
		}
	}
	return out.Bytes(), nil
}

// licenceFiles returns the files of a module's top folder that tell its terms.
func licenceFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		for _, start := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"} {
			if strings.HasPrefix(name, start) && e.Type().IsRegular() {
				paths = append(paths, filepath.Join(dir, e.Name()))
				break
			}
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no licence file in %s", dir)
	}
	return paths, nil
}
