package flashio_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/flashio"
	"bmoe/internal/conform"
)

func TestOpenFilesRefuses(t *testing.T) {
	dir := conform.TempDir(t)
	if _, err := flashio.OpenFiles(nil, flashio.FileOptions{}); err == nil {
		t.Error("no files were opened")
	}
	missing := filepath.Join(dir, "missing.gguf")
	if _, err := flashio.OpenFiles([]string{missing}, flashio.FileOptions{}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), missing) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := flashio.OpenFiles([]string{dir}, flashio.FileOptions{}); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("a directory: %v", err)
	}
	path := writeFile(t, 10)
	if _, err := flashio.OpenFiles([]string{path, missing}, flashio.FileOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing shard: %v", err)
	}
	if _, err := flashio.OpenFiles([]string{path}, flashio.FileOptions{Round: 3000}); err == nil {
		t.Error("windows rounded to 3000 bytes")
	}
}

func TestFilesKnowTheSystem(t *testing.T) {
	a, b := writeFile(t, 12345), writeFile(t, 1)
	s := openFiles(t, flashio.FileOptions{}, a, b)
	if s.Len() != 2 || s.Size() != 12346 || s.File(0).Size != 12345 || s.File(0).Path != a {
		t.Errorf("the set says %d files, %d bytes, %+v", s.Len(), s.Size(), s.File(0))
	}
	if s.File(0).ID == s.File(1).ID {
		t.Error("two files have one identity")
	}
	al := s.Align()
	for i := range s.Len() {
		f := s.File(i)
		if f.Page != os.Getpagesize() || al&(al-1) != 0 || al%f.Page != 0 {
			t.Errorf("alignment %d, facts %+v", al, f.Facts)
		}
		for _, n := range []int{f.Logical, f.Physical, f.DirectOffset, f.DirectMemory} {
			if n > 0 && al%n != 0 {
				t.Errorf("alignment %d does not satisfy %+v", al, f.Facts)
			}
		}
	}
}

func TestAlignIsTheLargestAsked(t *testing.T) {
	for _, c := range []struct {
		f    flashio.Facts
		want int
	}{
		{flashio.Facts{}, 512},
		{flashio.Facts{Page: 4096, Logical: 512, Physical: 4096}, 4096},
		{flashio.Facts{Page: 16384, Logical: 512, Physical: 4096}, 16384},
		{flashio.Facts{Page: 4096, Physical: 8192}, 8192},
		{flashio.Facts{Page: 4096, DirectOffset: 65536, DirectMemory: 4}, 65536},
	} {
		if got := c.f.Align(); got != c.want {
			t.Errorf("%+v: aligned to %d, want %d", c.f, got, c.want)
		}
	}
}

// TestWindowsAreRounded is the Windows rule: no length is odd against 64 KiB,
// except where the file ends first.
func TestWindowsAreRounded(t *testing.T) {
	const k = 1024
	s := openFiles(t, flashio.FileOptions{Round: 64 * k}, writeFile(t, 1000*k+1))
	end := int(1001*k+s.Align()-1) &^ (s.Align() - 1)
	for _, c := range []struct {
		off, n int64
		length int // -1: to the end of the file
	}{
		{0, 1, 64 * k},
		{0, 64 * k, 64 * k},
		{100, 64 * k, 128 * k},
		{300*k + 32, 576 * k, 640 * k},
		{960 * k, 1, -1},
		{900 * k, 100 * k, -1},
		{1000 * k, 1, -1},
	} {
		w, err := s.Window(0, c.off, c.n)
		if err != nil {
			t.Fatal(err)
		}
		want := c.length
		if want < 0 {
			want = end - int(w.Offset)
		}
		if most := s.MostWindow(int(c.n)); w.Length > most {
			t.Errorf("%d bytes at %d: a window of %d bytes, the most should be %d", c.n, c.off, w.Length, most)
		}
		if w.Length != want {
			t.Errorf("%d bytes at %d: window of %d KiB, want %d", c.n, c.off, w.Length/k, want/k)
		}
	}
}

func FuzzWindow(f *testing.F) {
	path := writeFile(f, 123_457)
	sets := []*flashio.Files{
		openFiles(f, flashio.FileOptions{Round: -1}, path),
		openFiles(f, flashio.FileOptions{Round: 64 << 10}, path),
	}
	f.Add(int64(0), int64(1))
	f.Add(int64(123_456), int64(1))
	f.Add(int64(-1), int64(1))
	f.Add(int64(5), int64(1)<<62)
	f.Fuzz(func(t *testing.T, off, n int64) {
		for _, s := range sets {
			size, al := s.File(0).Size, int64(s.Align())
			w, err := s.Window(0, off, n)
			if ok := off >= 0 && n >= 0 && off <= size && n <= size-off; ok != (err == nil) {
				t.Fatalf("%d bytes at %d of %d: %v", n, off, size, err)
			}
			if err != nil {
				continue
			}
			if w.Offset%al != 0 || int64(w.Length)%al != 0 || w.Skip < 0 || int64(w.Skip) >= al ||
				w.Offset+int64(w.Skip) != off || w.Need != w.Skip+int(n) || w.Need > w.Length ||
				w.Offset+int64(w.Length) >= size+al || w.Offset+int64(w.Need) > size {
				t.Fatalf("%d bytes at %d of %d: %+v", n, off, size, w)
			}
		}
	})
}
