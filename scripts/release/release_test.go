package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	someFiles = []file{{"bmoe", 0o755, []byte("program")}, {"LICENSE", 0o644, []byte("terms")}}
	someTime  = time.Unix(1_700_000_000, 0).UTC()
)

func TestTarKeepsNamesModesAndIsRepeatable(t *testing.T) {
	var a, b bytes.Buffer
	for _, w := range []*bytes.Buffer{&a, &b} {
		if err := writeTarGz(w, "bmoe-1", someTime, someFiles); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same files gave two different archives")
	}
	z, err := gzip.NewReader(&a)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for _, want := range someFiles {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != "bmoe-1/"+want.name || h.Mode != want.mode || !h.ModTime.Equal(someTime) || !bytes.Equal(data, want.data) {
			t.Errorf("got %s mode %o time %v %q, want %s mode %o", h.Name, h.Mode, h.ModTime, data, want.name, want.mode)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("after the last file: %v, want the end", err)
	}
}

func TestZipHoldsTheFiles(t *testing.T) {
	var b bytes.Buffer
	if err := writeZip(&b, "bmoe-1", someTime, someFiles); err != nil {
		t.Fatal(err)
	}
	r, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range someFiles {
		data, err := r.Open("bmoe-1/" + want.name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(data)
		if err != nil || !bytes.Equal(got, want.data) {
			t.Errorf("%s: %q, %v; want %q", want.name, got, err, want.data)
		}
	}
}

// Every module that go.mod asks for directly, and that is no test's, has its
// licence in the file.
func TestLicencesNameWhatIsLinked(t *testing.T) {
	t.Chdir("../..")
	text, err := licences(target{"linux", "amd64"})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The Go programming language", "charm.land/bubbletea/v2 v", "github.com/spf13/pflag v", "golang.org/x/sys v"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the licences do not name %q", want)
		}
	}
	if strings.Contains(string(text), "creack/pty") {
		t.Error("the licences name creack/pty, which only tests use")
	}
}

func TestAModuleWithoutALicenceIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "code.go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := licenceFiles(dir); err == nil {
		t.Error("no error for a folder without a licence")
	}
}
