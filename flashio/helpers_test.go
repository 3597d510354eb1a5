package flashio_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"bmoe/flashio"
	"bmoe/internal/conform"
)

// pattern fills b with words that tell where in a file they belong.
func pattern(b []byte, at int64) {
	var w [8]byte
	for len(b) > 0 {
		binary.LittleEndian.PutUint64(w[:], uint64(at/8)*0x9e3779b97f4a7c15)
		n := copy(b, w[at%8:])
		b, at = b[n:], at+int64(n)
	}
}

// writeFile makes a file of size bytes of the pattern.
func writeFile(t testing.TB, size int64) string {
	t.Helper()
	b := make([]byte, size)
	pattern(b, 0)
	path := filepath.Join(conform.TempDir(t), "model.gguf")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func openFiles(t testing.TB, o flashio.FileOptions, paths ...string) *flashio.Files {
	t.Helper()
	s, err := flashio.OpenFiles(paths, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func openLanes(t testing.TB, s *flashio.Files, o flashio.LaneOptions) flashio.Reader {
	t.Helper()
	rd, err := flashio.OpenLanes(s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := rd.Close(); err != nil {
			t.Error(err)
		}
	})
	return rd
}

func newArena(t testing.TB, size int) *flashio.Arena {
	t.Helper()
	a, err := flashio.NewArena(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// read submits requests and waits for all of them.
func read(rd flashio.Reader, rs ...*flashio.Request) error {
	var g flashio.Group
	g.Add(len(rs))
	for _, r := range rs {
		r.Done = &g
	}
	rd.Submit(rs...)
	return g.Wait()
}

// hardLink gives the file a second name.
func hardLink(t testing.TB, path string) string {
	t.Helper()
	link := path + ".link"
	if err := os.Link(path, link); err != nil {
		t.Skip("no hard links here:", err)
	}
	return link
}
