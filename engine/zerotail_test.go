package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/engine/gguf"
	"bmoe/internal/conform"
)

// A file whose tail was never downloaded opens with a warning that says from
// where; a whole one, or one with a hole elsewhere, opens without.
func TestUnfinishedDownload(t *testing.T) {
	path := conform.File(t, "models/qwen3moe.gguf")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	down, ok := f.Tensor("blk.2.ffn_down_exps.weight")
	if !ok {
		t.Fatal("the model has no blk.2.ffn_down_exps.weight")
	}
	size := int64(len(whole))
	for _, c := range []struct {
		name     string
		from, to int64 // zeroed
		warns    bool
	}{
		{"whole", 0, 0, false},
		{"last third", size * 2 / 3, size, true},
		{"a hole before the end", size / 3, size * 2 / 3, false},
		{"the last bytes", down.Offset + down.Size - 64, size, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := append([]byte(nil), whole...)
			clear(b[c.from:c.to])
			cfg := DefaultConfig()
			cfg.Model, cfg.Raw = filepath.Join(conform.TempDir(t), "m.gguf"), true
			if err := os.WriteFile(cfg.Model, b, 0o644); err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, w := range open(t, cfg).Warnings() {
				if strings.Contains(w, "zeros") {
					said = append(said, w)
				}
			}
			if (len(said) == 1) != c.warns {
				t.Fatalf("warnings %q", said)
			}
			if !c.warns {
				return
			}
			var at, of int64
			if _, err := fmt.Sscanf(said[0][strings.Index(said[0], "byte"):], "byte %d of %d", &at, &of); err != nil {
				t.Fatal(err)
			}
			// Exact to an expert's matrix, which has 8 KiB here.
			if of != size || at < c.from-8<<10 || at > c.from+8<<10 {
				t.Errorf("%q: zeros begin at %d of %d", said[0], c.from, size)
			}
		})
	}
}
