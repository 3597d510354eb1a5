// Package library finds the models that a machine has: in folders, in the caches of
// other programs, and here. It reads their headers only.
package library

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"bmoe/engine/gguf"
	"bmoe/engine/model"
)

// Model is one that was found.
type Model struct {
	Path  string // of the file, or of a set's first shard
	Name  string // as the place has it
	Place string // where it was found, in words
	Arch  string
	Quant string // the tensor type that takes most bytes
	Size  int64  // bytes of all shards
	// Problem says why the model cannot be run; empty if it can.
	Problem string

	Experts, Used int   // of a layer, and of them a token; 0: it is not MoE
	ExpertBytes   int64 // of all routed experts
	ActiveExperts int64 // bytes of experts that a token needs
	ActiveDense   int64 // bytes of all other weights that it needs
	Layers        int
}

// MoE reports whether the model has experts, so that it can be streamed.
func (m *Model) MoE() bool { return m.Experts > 0 }

// Active is how many bytes of weights a token needs.
func (m *Model) Active() int64 { return m.ActiveExperts + m.ActiveDense }

// Describe reads a model's header. A file that is no model comes back with a Problem.
func Describe(path string) Model {
	m := Model{Path: path, Name: filepath.Base(path)}
	f, err := gguf.Open(path)
	if err != nil {
		m.Problem = firstLine(err)
		return m
	}
	m.fill(f)
	return m
}

// fill takes what a header says.
func (m *Model) fill(f *gguf.File) {
	for _, s := range f.Shards {
		m.Size += s.Size
	}
	if arch, err := f.Meta.String("general.architecture"); err == nil {
		m.Arch = arch
	}
	byType := map[string]int64{}
	for i := range f.Tensors {
		t := f.Tensors[i].Type.String()
		if byType[t] += f.Tensors[i].Size; byType[t] > byType[m.Quant] || byType[t] == byType[m.Quant] && t < m.Quant {
			m.Quant = t
		}
	}
	a, reg, err := model.Build(f, 0)
	if err != nil {
		m.Problem = firstLine(err)
		return
	}
	info := a.Info()
	m.Layers = info.Layers
	if info.MoELayers() > 0 {
		m.Experts, m.Used = info.Experts.Experts, info.Experts.Used
	}
	for _, layer := range info.Experts.Layers {
		for _, p := range layer {
			m.ExpertBytes += p.Bytes * int64(m.Experts)
			m.ActiveExperts += p.Bytes * int64(m.Used)
		}
	}
	for _, r := range reg.DenseRanges() {
		m.ActiveDense += r.Size
	}
	// Of the embedding a token takes one row, unless it is the head too.
	_, head := f.Tensor("output.weight")
	if t, ok := f.Tensor("token_embd.weight"); ok && head {
		m.ActiveDense -= t.Size
	}
}

// firstLine is an error in one line.
func firstLine(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

// Place is somewhere that models may be.
type Place struct {
	Name string
	Dir  string
	// Given is true if the user named it, so that it is said if it is not there.
	Given  bool
	flat   bool // folders within are not looked at
	ollama bool
}

// Places returns where models are looked for: folders that the user names, the caches
// of the Hugging Face Hub, LM Studio and Ollama, and the current folder. hub is the
// folder of the first of them.
func Places(folders []string, hub string) []Place {
	var out []Place
	for _, dir := range folders {
		out = append(out, Place{Name: dir, Dir: dir, Given: true})
	}
	out = append(out, Place{Name: "here", Dir: ".", flat: true})
	if hub != "" {
		out = append(out, Place{Name: "Hugging Face", Dir: hub})
	}
	home, err := os.UserHomeDir()
	if err == nil {
		for _, dir := range []string{filepath.Join(home, ".lmstudio", "models"), filepath.Join(home, ".cache", "lm-studio", "models")} {
			out = append(out, Place{Name: "LM Studio", Dir: dir})
		}
	}
	dir := os.Getenv("OLLAMA_MODELS")
	if dir == "" && err == nil {
		dir = filepath.Join(home, ".ollama", "models")
	}
	if dir != "" {
		out = append(out, Place{Name: "Ollama", Dir: dir, ollama: true})
	}
	return out
}

// mostFiles bounds how many files of a place are looked at: a folder that was named
// by mistake may hold a whole drive.
const mostFiles = 100_000

// mostModels bounds how many headers are read.
const mostModels = 1000

var errEnough = errors.New("enough")

// Scan returns the models of the places, each once, and a line for each place that
// the user named and that cannot be read.
func Scan(ctx context.Context, places []Place) (all []Model, notes []string, err error) {
	seen := map[string]bool{}
	for _, p := range places {
		found, err := p.files(ctx)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		if err != nil && p.Given {
			notes = append(notes, firstLine(err))
		}
		for _, f := range found {
			real, err := filepath.EvalSymlinks(f.path)
			if err != nil || seen[real] {
				continue
			}
			if ctx.Err() != nil {
				return nil, nil, ctx.Err()
			}
			if len(all) == mostModels {
				notes = append(notes, "more models were found than are shown")
				return all, notes, nil
			}
			seen[real] = true
			m := Describe(f.path)
			m.Name, m.Place = cmp.Or(f.name, m.Name), p.Name
			all = append(all, m)
		}
	}
	return all, notes, nil
}

// found is a file that may be a model.
type found struct{ path, name string }

var laterShard = regexp.MustCompile(`-\d{5}-of-\d{5}\.gguf$`)

// wanted reports whether a file's name is that of a model: not of a later shard, and
// not of what goes beside a model.
func wanted(name string) bool {
	lower := strings.ToLower(name)
	if !strings.HasSuffix(lower, ".gguf") || strings.HasPrefix(lower, "mmproj") || strings.Contains(lower, "imatrix") {
		return false
	}
	return !laterShard.MatchString(lower) || strings.Contains(lower, "-00001-of-")
}

// files returns the files of a place that may be models.
func (p *Place) files(ctx context.Context) (all []found, err error) {
	if p.ollama {
		return ollama(p.Dir), nil
	}
	n := 0
	err = filepath.WalkDir(p.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path == p.Dir {
				return err
			}
			return nil // a folder of somebody else's
		}
		if n++; n > mostFiles || ctx.Err() != nil {
			return errEnough
		}
		if d.IsDir() {
			// Folders of a repository's blobs have the files a second time.
			if path != p.Dir && (p.flat || strings.HasPrefix(d.Name(), ".") || d.Name() == "blobs") {
				return filepath.SkipDir
			}
			return nil
		}
		if !wanted(d.Name()) {
			return nil
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() { // through a link
			all = append(all, found{path: path})
		}
		return nil
	})
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.path, b.path) })
	if err == errEnough {
		err = nil
	}
	return all, err
}
