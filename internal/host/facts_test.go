package host

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"bmoe/internal/conform"
)

// What every host can tell is there.
func TestFactsOfThisHost(t *testing.T) {
	f := ReadFacts()
	t.Logf("%+v", f)
	if f.Arch != runtime.GOARCH || f.Threads < 1 || f.Page < 4096 || f.Page&(f.Page-1) != 0 || f.System == "" || f.Cores > f.Threads {
		t.Errorf("%+v", f)
	}
	path := filepath.Join(conform.TempDir(t), "x")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := ReadFileFacts(path)
	t.Logf("%+v", file)
	if known := runtime.GOOS == "linux" || runtime.GOOS == "darwin" || runtime.GOOS == "windows"; known && file.FileSystem == "" {
		t.Errorf("%+v", file)
	}
	if none := ReadFileFacts(path + ".none"); runtime.GOOS != "windows" && none != (FileFacts{}) {
		t.Errorf("a file that is not there lies on %+v", none)
	}
}
