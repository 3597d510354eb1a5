// Command release builds the programs for every system that bmoe supports, and
// packs each set with its licences: one archive a target, and SHA256SUMS over
// all of them.
//
//	go run ./scripts/release -o dist
//
// It needs Go and git, and builds any target on any system. The same commit and
// the same Go version give the same bytes.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"bmoe/internal/units"
)

// target is a system and a processor, in Go's names.
type target struct{ os, arch string }

var targets = []target{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
}

func (t target) String() string { return t.os + "-" + t.arch }

// env is the environment of a go command for the target. Without cgo the
// programs are static: with a C compiler at hand, Go's net and os/user would
// otherwise link the C library.
func (t target) env() []string {
	return append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch)
}

func main() {
	out := flag.String("o", "dist", "the folder that receives the archives")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "release: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := release(*out); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release builds and packs every target into the folder.
func release(out string) error {
	version, when, err := describe()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, t := range targets {
		path, err := build(t, out, version, when)
		if err != nil {
			return fmt.Errorf("%v: %w", t, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// The form that sha256sum -c and shasum -a 256 -c read.
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), filepath.Base(path))
		fmt.Printf("%s  %.1f MB\n", path, float64(len(data))/units.MB)
	}
	path := filepath.Join(out, "SHA256SUMS")
	fmt.Println(path)
	return os.WriteFile(path, []byte(sums.String()), 0o644)
}

// describe names the commit and tells when it was made: the archives carry its
// time, so that a second build gives the same bytes.
func describe() (version string, when time.Time, err error) {
	name, err := run(nil, "git", "describe", "--tags", "--always", "--dirty")
	if err != nil {
		return "", time.Time{}, err
	}
	stamp, err := run(nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return "", time.Time{}, err
	}
	sec, err := strconv.ParseInt(strings.TrimSpace(string(stamp)), 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("git log: time of the commit: %w", err)
	}
	return strings.TrimSpace(string(name)), time.Unix(sec, 0).UTC(), nil
}

// build compiles the programs of one target and packs them. It returns the
// archive's path.
func build(t target, out, version string, when time.Time) (string, error) {
	bin, err := os.MkdirTemp("", "bmoe-release-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(bin)
	// -trimpath keeps the builder's folders out of the programs, -s and -w leave
	// out tables that only debuggers read; stack traces do not need them.
	if _, err := run(t.env(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", bin+string(filepath.Separator), "./cmd/..."); err != nil {
		return "", err
	}
	programs, err := os.ReadDir(bin)
	if err != nil {
		return "", err
	}
	files := []file{}
	for _, p := range programs {
		data, err := os.ReadFile(filepath.Join(bin, p.Name()))
		if err != nil {
			return "", err
		}
		files = append(files, file{p.Name(), 0o755, data})
	}
	for _, name := range []string{"LICENSE", "README.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("%w (run this from the top of the project)", err)
		}
		files = append(files, file{name, 0o644, data})
	}
	notices, err := licences(t)
	if err != nil {
		return "", err
	}
	files = append(files, file{"THIRD-PARTY-LICENSES.txt", 0o644, notices})

	folder := fmt.Sprintf("bmoe-%s-%v", version, t)
	var archive bytes.Buffer
	path := filepath.Join(out, folder)
	if t.os == "windows" {
		path += ".zip"
		err = writeZip(&archive, folder, when, files)
	} else {
		path += ".tar.gz"
		err = writeTarGz(&archive, folder, when, files)
	}
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, archive.Bytes(), 0o644)
}

// run runs a command and returns its standard output. An error carries what the
// command said.
func run(env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = env
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(exit.Stderr))
	}
	return out, err
}
