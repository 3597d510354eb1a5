// Package demo carries a small mixture-of-experts model inside the program, so
// that there is something to talk to before anything has been downloaded.
//
// It is a qwen3moe of 21 million parameters, trained for this project on
// stories of TinyStories (Ronen Eldan and Yuanzhi Li; CDLA-Sharing-1.0).
package demo

import (
	"context"
	"crypto/sha256"
	_ "embed" // the model
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"bmoe/internal/durable"
)

//go:embed tiny-stories-moe-q8_0.gguf
var model string

// SHA256 is the model's checksum.
const SHA256 = "7456c385a4307bd7c6c4ba07aa64e040d696709e1d9b1963f4b10e5161de4c16"

// CacheShare is the share of its experts' slot bytes that the demo's cache takes
// unless told otherwise, so that there are hits, misses and evictions to look at.
const CacheShare = 0.4

// DirVariable names the environment variable that says where the model is
// written, in place of the user's cache folder.
const DirVariable = "BMOE_CACHE_DIR"

// fileName holds the beginning of the checksum, so that two versions of the
// program with different models do not replace each other's.
var fileName = "tiny-stories-moe-q8_0-" + SHA256[:8] + ".gguf"

// Path returns a file that holds the model: experts are streamed from a drive,
// so there has to be one. It is written once, to the user's cache folder, and
// its checksum is compared each time; a damaged copy is replaced. Processes
// that start at the same time do not disturb each other.
//
// There is no second choice of folder. Folders for temporary files often lie
// in memory, where the figures that the program shows would mean nothing.
func Path(ctx context.Context) (string, error) {
	dir, err := folder()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, fileName)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would hold up its reader
		return "", fmt.Errorf("the demo model's place %s is taken by what is not a regular file; remove it, set %s to another folder, or name a MODEL.gguf", path, DirVariable)
	}
	// Where nothing can be written there are no locks either: then a copy that is
	// there is good, and if there is none the error says why.
	if unlock, err := durable.Lock(path+".lock", patience); err == nil {
		defer unlock()
	}
	// What keeps a copy from being read does not matter here: it is replaced,
	// and if that fails too, the error says why.
	if ok, _ := intact(ctx, path); ok {
		return path, nil
	}
	durable.Sweep(dir, time.Now())
	if err := durable.Write(path, func(w io.Writer) error { return write(ctx, w) }); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("the demo model: %w; set %s to a folder on a drive that can be written, or name a MODEL.gguf", err, DirVariable)
	}
	return path, nil
}

// patience is how long another process may take to write the model: less than a
// second, on most drives.
const patience = 30 * time.Second

// folder returns the folder that the model is kept in.
func folder() (string, error) {
	if dir := os.Getenv(DirVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder for the demo model: %w; set %s to a folder on a drive, or name a MODEL.gguf", err, DirVariable)
	}
	return filepath.Join(dir, "bmoe"), nil
}

// intact reports whether the file at path is the model.
func intact(ctx context.Context, path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if info.Size() != int64(len(model)) || !info.Mode().IsRegular() {
		return false, nil
	}
	h := sha256.New()
	buf := make([]byte, chunk)
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if err == io.EOF {
			return sum(h) == SHA256, nil
		}
		if err != nil {
			return false, err
		}
	}
}

// chunk is how much is read or written between two looks at the context.
const chunk = 1 << 20

func sum(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// write writes the model to w, until the context ends.
func write(ctx context.Context, w io.Writer) error {
	for rest := model; rest != ""; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(chunk, len(rest))
		if _, err := io.WriteString(w, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}
