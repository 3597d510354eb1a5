package flashio

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"

	"golang.org/x/sys/unix"
)

// TestTmpfsIsBuffered: since Linux 6.6 tmpfs accepts O_DIRECT and reads from
// memory, and calling that direct would be a lie.
func TestTmpfsIsBuffered(t *testing.T) {
	var fs unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &fs); err != nil || fs.Type != unix.TMPFS_MAGIC {
		t.Skip("no tmpfs on /dev/shm")
	}
	dir, err := os.MkdirTemp("/dev/shm", "flashio")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, make([]byte, 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenFiles([]string{path}, FileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{"lanes", "uring"} {
		rd, _, err := Open(s, engine, LaneOptions{Lanes: 2})
		if err != nil {
			t.Fatal(err)
		}
		if m := rd.Mode(); m.Direct || m.String() != "BUFFERED" || !strings.Contains(m.Reason, "tmpfs") {
			t.Errorf("%s: mode %+v", engine, m)
		}
		if err := rd.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenFilesRefusesPipes(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// A blocking open of it would hang.
	if _, err := OpenFiles([]string{path}, FileOptions{}); err == nil || !strings.Contains(err.Error(), "regular") {
		t.Fatalf("a pipe: %v", err)
	}
}

// TestStatTellsAsMuch: what an old kernel answers is what statx says, without the
// offsets that direct I/O asks for.
func TestStatTellsAsMuch(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "f")
	if err := os.WriteFile(path, []byte("x"), 0o640); err != nil {
		t.Fatal(err)
	}
	want, err := statx(path)
	if err != nil {
		t.Fatal(err)
	}
	var old unix.Stat_t
	if err := unix.Stat(path, &old); err != nil {
		t.Fatal(err)
	}
	got := fromStat(&old)
	if got.Mode != want.Mode || got.Size != want.Size || got.Ino != want.Ino || got.Mtime != want.Mtime ||
		got.Dev_major != want.Dev_major || got.Dev_minor != want.Dev_minor || got.Mask&unix.STATX_DIOALIGN != 0 {
		t.Errorf("stat says %+v, statx %+v", got, want)
	}
}

// secondThoughts opens files whose direct handle works for the first read, which
// goes through ReadAt, and answers the kernel's own reads with EINVAL.
type secondThoughts struct{ Opener }

type secondThought struct {
	Handle
	fd int
}

func (h secondThought) Descriptor() int { return h.fd }

func (h secondThought) Close() error { return errors.Join(h.Handle.Close(), unix.Close(h.fd)) }

func (o secondThoughts) Open(path string, direct bool) (Handle, error) {
	h, err := o.Opener.Open(path, direct)
	if err != nil || !direct {
		return h, err
	}
	fd, err := unix.Open("/proc/self/ns/uts", unix.O_RDONLY|unix.O_CLOEXEC, 0) // nothing can be read from it
	return secondThought{h, fd}, err
}

func TestURingGivesUpDirectLater(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "f")
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := OpenFiles([]string{path}, FileOptions{Opener: secondThoughts{System}})
	if err != nil {
		t.Fatal(err)
	}
	rd, err := OpenURing(s, LaneOptions{Lanes: 4})
	if errors.Is(err, ErrNotAvailable) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if !rd.Mode().Direct {
		t.Skip("no direct I/O here")
	}
	var g Group
	g.Add(8)
	rs := make([]*Request, 8)
	for i := range rs {
		rs[i] = &Request{Offset: int64(i * s.Align()), Buf: alignedBytes(s.Align(), s.Align()), Need: s.Align(), Done: &g}
	}
	rd.Submit(rs...)
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, r := range rs {
		if r.Buf[0] != 'x' || r.Buf[len(r.Buf)-1] != 'x' {
			t.Errorf("read %d is %q", i, r.Buf[:8])
		}
	}
	if m := rd.Mode(); m.Direct || !strings.Contains(m.Reason, "invalid argument") {
		t.Errorf("mode %+v", m)
	}
}

// TestSectorsAreAsked compares sysfs with the kernel's own answer for a file on
// a block device.
func TestSectorsAreAsked(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "f")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := System.Facts(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.DirectOffset == 0 || f.Logical == 0 {
		t.Skipf("the file system does not say: %+v", f)
	}
	if f.DirectOffset%f.Logical != 0 || f.Physical%f.Logical != 0 {
		t.Errorf("direct reads at multiples of %d on sectors of %d (physical %d)", f.DirectOffset, f.Logical, f.Physical)
	}
}

func TestParseMapsLine(t *testing.T) {
	for _, c := range []struct {
		line, path string
		from, to   uintptr
		id         FileID
	}{
		{"7f3e20a4b000-7f3e20a6d000 r--p 00000000 fd:01 1180042                    /usr/lib/libc.so.6", "/usr/lib/libc.so.6",
			0x7f3e20a4b000, 0x7f3e20a6d000, FileID{unix.Mkdev(0xfd, 1), 1180042}},
		{"c000000000-c000400000 rw-p 00000000 00:00 0", "", 0xc000000000, 0xc000400000, FileID{}},
		{"c000000000-c000400000 rw-p 00000000 00:00 0 ", "", 0xc000000000, 0xc000400000, FileID{}},
		{"1000-2000 r--s 00000000 103:02 7   /models/my  model.gguf (deleted)", "/models/my  model.gguf (deleted)", 0x1000, 0x2000, FileID{unix.Mkdev(0x103, 2), 7}},
		{`1000-2000 r--s 00000000 00:2b 7   /odd\012name`, "/odd\nname", 0x1000, 0x2000, FileID{unix.Mkdev(0, 0x2b), 7}},
	} {
		sp, id, path, err := parseMapsLine(c.line)
		if err != nil || path != c.path || sp != (span{c.from, c.to}) || id != c.id {
			t.Errorf("%q: %v %v %q %v", c.line, sp, id, path, err)
		}
	}
	for _, line := range []string{"", "1000-2000", "1000 r--p 0 00:00 0 x", "1000-2000 r--p 0 0000 0 x", "10zz-2000 r--p 0 00:00 0 x", "1000-2000 r--p 0 00:00 many x"} {
		if _, _, _, err := parseMapsLine(line); err == nil {
			t.Errorf("%q was understood", line)
		}
	}
}

func FuzzParseMapsLine(f *testing.F) {
	f.Add("7f3e20a4b000-7f3e20a6d000 r--p 00000000 fd:01 1180042                    /usr/lib/libc.so.6")
	f.Fuzz(func(t *testing.T, line string) {
		if _, _, path, err := parseMapsLine(line); err != nil && path != "" {
			t.Fatalf("a path and an error: %q", line)
		}
	})
}
