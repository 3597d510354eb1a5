package library

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A manifest of Ollama's lists a model's parts; the weights are the layer of this
// type, a file below blobs.
const ollamaModel = "application/vnd.ollama.image.model"

// mostManifest bounds what is read of a manifest.
const mostManifest = 1 << 20

var ollamaDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// ollama returns the models that Ollama has: manifests/HOST/OWNER/NAME/TAG names a
// blob.
func ollama(dir string) (all []found) {
	root := filepath.Join(dir, "manifests")
	filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil // what cannot be read is none of ours
		}
		info, err := d.Info()
		if err != nil || !info.Mode().IsRegular() || info.Size() > mostManifest {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		var m struct {
			Layers []struct {
				MediaType string `json:"mediaType"`
				Digest    string `json:"digest"`
			} `json:"layers"`
		}
		if json.Unmarshal(b, &m) != nil {
			return nil
		}
		for _, l := range m.Layers {
			if l.MediaType != ollamaModel || !ollamaDigest.MatchString(l.Digest) {
				continue
			}
			blob := filepath.Join(dir, "blobs", strings.Replace(l.Digest, ":", "-", 1))
			if info, err := os.Stat(blob); err == nil && info.Mode().IsRegular() {
				all = append(all, found{blob, ollamaName(root, path)})
			}
			break
		}
		return nil
	})
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.name, b.name) })
	return all
}

// ollamaName is what Ollama calls a model: NAME:TAG, with an owner before it who is
// not Ollama itself.
func ollamaName(root, path string) string {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return filepath.Base(path)
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if len(parts) < 2 {
		return rel
	}
	name, tag := parts[:len(parts)-1], parts[len(parts)-1]
	if name[0] == "registry.ollama.ai" {
		name = name[1:]
	}
	if name[0] == "library" && len(name) > 1 {
		name = name[1:]
	}
	return strings.Join(name, "/") + ":" + tag
}
