package hub

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bmoe/internal/durable"
)

// The cache's layout, which is that of the Hub's own tools: below the folder of a
// repository
//
//	blobs/HASH             contents, or HASH.incomplete while they come
//	snapshots/COMMIT/PATH  a link to the blob
//	refs/main              the commit that is the latest

func (h *Hub) folder(repo string) string {
	return filepath.Join(h.cache, "models--"+strings.ReplaceAll(repo, "/", "--"))
}

// Cached returns the path of a model that the cache holds whole: its file, or its
// first shard. Nobody is asked on the network.
func (h *Hub) Cached(spec Spec) (string, bool) {
	for _, commit := range h.commits(spec.Repo) {
		root := filepath.Join(h.folder(spec.Repo), "snapshots", commit)
		var files []File
		err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := os.Stat(p) // through the link, which may lead nowhere
			if err != nil || !info.Mode().IsRegular() {
				return nil
			}
			name, err := filepath.Rel(root, p)
			files = append(files, File{Path: filepath.ToSlash(name), Size: info.Size()})
			return err
		})
		if err != nil {
			continue
		}
		if set, err := choose(spec, files); err == nil {
			return filepath.Join(root, filepath.FromSlash(set.Files[0].Path)), true
		}
	}
	return "", false
}

// commits returns the revisions that the cache has something of, the latest first.
func (h *Hub) commits(repo string) []string {
	root := h.folder(repo)
	var out []string
	if b, err := os.ReadFile(filepath.Join(root, "refs", "main")); err == nil {
		if main := strings.TrimSpace(string(b)); hexSHA1.MatchString(main) {
			out = append(out, main)
		}
	}
	all, err := os.ReadDir(filepath.Join(root, "snapshots"))
	if err != nil {
		return out
	}
	for _, d := range all {
		if d.IsDir() && hexSHA1.MatchString(d.Name()) && !slices.Contains(out, d.Name()) {
			out = append(out, d.Name())
		}
	}
	return out
}

func (h *Hub) blob(repo string, f File) string {
	return filepath.Join(h.folder(repo), "blobs", f.hash)
}

// link makes a blob a file of a snapshot. Where there are no symbolic links the two
// names are of one file, and where there are no such names either, it is moved.
func (h *Hub) link(repo, commit string, f File) (string, error) {
	blob := h.blob(repo, f)
	place := filepath.Join(h.folder(repo), "snapshots", commit, filepath.FromSlash(f.Path))
	if info, err := os.Stat(place); err == nil && info.Size() == f.Size {
		return place, nil
	}
	if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
		return "", err
	}
	target, err := filepath.Rel(filepath.Dir(place), blob)
	if err != nil {
		return "", err
	}
	os.Remove(place) // a link that leads nowhere
	if os.Symlink(target, place) == nil {
		if info, err := os.Stat(place); err == nil && info.Size() == f.Size {
			return place, nil
		}
		os.Remove(place) // made, but not followed: some systems do that
	}
	if os.Link(blob, place) == nil {
		return place, nil
	}
	return place, os.Rename(blob, place)
}

// remember notes that a commit is the latest.
func (h *Hub) remember(repo, commit string) error {
	return durable.Write(filepath.Join(h.folder(repo), "refs", "main"), func(w io.Writer) error {
		_, err := io.WriteString(w, commit)
		return err
	})
}
