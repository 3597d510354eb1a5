package gguf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"bmoe/engine/quant"
	"bmoe/internal/conform"
)

func TestTruncatedAnywhere(t *testing.T) {
	whole := file(t, smallWriter(t))
	f, err := parseBytes(whole)
	must(t, err)
	last := f.Tensors[len(f.Tensors)-1]
	header := int64(len(whole)) // where the table ends: the shortest prefix that fails in the data
	for n := range last.Offset + last.Size {
		_, err := parseBytes(whole[:n])
		switch {
		case n == 0:
			wantBad(t, err, "empty")
		case n > header || bytes.Contains([]byte(fmt.Sprint(err)), []byte("tensor data")):
			header = min(header, n)
			wantBad(t, err, "truncated", "tensor data", fmt.Sprintf("has %d bytes", n))
		default:
			wantBad(t, err, "truncated", "at byte", fmt.Sprintf("the file's %d ", n))
		}
	}
	if pad := f.Shards[0].DataOffset - header; pad < 0 || pad > 31 {
		t.Errorf("the table is said to end at %d, the data starts at %d", header, f.Shards[0].DataOffset)
	}
	if _, err := parseBytes(whole[:last.Offset+last.Size]); err != nil {
		t.Errorf("without the padding at the end: %v", err)
	}
}

// raw builds headers that the writer would refuse to write: integers as they
// come, strings with their length before them.
func raw(xs ...any) []byte {
	b := []byte(magic)
	for _, x := range xs {
		if s, ok := x.(string); ok {
			b = appendString(b, s)
			continue
		}
		var err error
		if b, err = binary.Append(b, binary.LittleEndian, x); err != nil {
			panic(err)
		}
	}
	return b
}

func u32(n uint32) uint32 { return n }
func u64(n uint64) uint64 { return n }

// pad makes a file long enough for a lie about it to be plausible.
func pad(b []byte, n int) []byte { return append(b, make([]byte, n)...) }

func TestBadContent(t *testing.T) {
	const str, arr, i32 = uint32(TypeString), uint32(TypeArray), uint32(TypeInt32)
	// one tensor with the given dimensions, type and offset, and 4 kB of data
	tensor := func(name string, kind uint32, offset uint64, dims ...uint64) []byte {
		return pad(raw(u32(3), u64(1), u64(0), name, uint32(len(dims)), dims, kind, offset), 4096)
	}
	for _, c := range []struct {
		name  string
		file  []byte
		words []string
	}{
		{"wrong magic", []byte("GGML1234567890"), []string{"not a GGUF file", `"GGML"`}},
		{"three bytes", []byte("GGU"), []string{"truncated", "magic"}},
		{"version 1", pad(raw(u32(1)), 100), []string{"version 1"}},
		{"version 9", pad(raw(u32(9)), 100), []string{"version 9"}},
		{"version 0", pad(raw(u32(0)), 100), []string{"version 0"}},
		{"big-endian", pad(raw(u32(3<<24)), 100), []string{"big-endian"}},
		{"2^60 tensors", pad(raw(u32(3), u64(1<<60), u64(0)), 100), []string{"tensor count of 1152921504606846976"}},
		{"2^60 keys", pad(raw(u32(3), u64(0), u64(1<<60)), 100), []string{"metadata count of 1152921504606846976"}},
		{"2^64-1 keys", pad(raw(u32(3), u64(0), u64(math.MaxUint64)), 100), []string{"metadata count"}},
		{"key of 2^60 bytes", pad(raw(u32(3), u64(0), u64(1), u64(1<<60)), 100), []string{"the key needs 1152921504606846976 bytes"}},
		{"string of 2^60 bytes", pad(raw(u32(3), u64(0), u64(1), "k", str, u64(1<<60)), 100), []string{`key "k"`, "a string needs 1152921504606846976 bytes"}},
		{"2^60 strings", pad(raw(u32(3), u64(0), u64(1), "k", arr, str, u64(1<<60)), 100), []string{`key "k"`, "array of string"}},
		{"2^62 int32", pad(raw(u32(3), u64(0), u64(1), "k", arr, i32, u64(1<<62)), 100), []string{"array of int32"}},
		{"2^60 arrays", pad(raw(u32(3), u64(0), u64(1), "k", arr, arr, u64(1<<60)), 100), []string{"array of array"}},
		{"value type 13", pad(raw(u32(3), u64(0), u64(1), "k", u32(13)), 100), []string{`key "k"`, "unknown value type 13"}},
		{"empty key", pad(raw(u32(3), u64(0), u64(1), "", i32, u32(1)), 100), []string{"0 bytes"}},
		{"key of 64 kB", pad(raw(u32(3), u64(0), u64(1), string(make([]byte, maxName)), i32, u32(1)), 100), []string{"65536 bytes"}},
		{"key twice", pad(raw(u32(3), u64(0), u64(2), "k", i32, u32(1), "k", i32, u32(1)), 100), []string{`key "k"`, "twice"}},
		{"alignment 0", pad(raw(u32(3), u64(0), u64(1), "general.alignment", uint32(TypeUint32), u32(0)), 100), []string{"alignment is 0"}},
		{"alignment 48", pad(raw(u32(3), u64(0), u64(1), "general.alignment", uint32(TypeUint32), u32(48)), 100), []string{"alignment is 48"}},
		{"alignment a string", pad(raw(u32(3), u64(0), u64(1), "general.alignment", str, "32"), 100), []string{"general.alignment", "found string"}},
		{"tensor type 99", tensor("w", 99, 0, 32), []string{`tensor "w"`, "type 99"}},
		{"removed tensor type", tensor("w", 4, 0, 32), []string{`tensor "w"`, "type 4"}},
		{"no dimensions", tensor("w", 0, 0), []string{`tensor "w"`, "0 dimensions"}},
		{"five dimensions", tensor("w", 0, 0, 1, 1, 1, 1, 1), []string{"5 dimensions"}},
		{"2^31 dimensions", pad(raw(u32(3), u64(1), u64(0), "w", u32(1<<31)), 100), []string{"dimensions"}},
		{"zero dimension", tensor("w", 0, 0, 4, 0), []string{"dimension 1 is 0"}},
		{"huge dimension", tensor("w", 0, 0, 1<<63), []string{"dimension 0"}},
		{"product overflows", tensor("w", 0, 0, 1<<30, 1<<30, 1<<30), []string{"too large"}},
		{"elements overflow", tensor("w", uint32(quant.IQ1_S), 0, 1<<40, 1<<22, 2), []string{"too large"}},
		{"row of half a block", tensor("w", uint32(quant.Q4_K), 0, 128), []string{`tensor "w"`, "128", "Q4_K"}},
		{"offset not aligned", tensor("w", 0, 16, 32), []string{"offset 16", "alignment"}},
		{"offset past the end", tensor("w", 0, 1<<40, 32), []string{"truncated in the tensor data", `"w"`}},
		{"offset overflows", tensor("w", 0, 1<<63, 32), []string{"offset"}},
		{"offset and size overflow", tensor("w", 0, math.MaxInt64-31, 32), []string{"truncated"}},
		{"data too short", tensor("w", 0, 0, 2048), []string{"truncated in the tensor data", "8192 bytes"}},
		{"tensor twice", pad(raw(u32(3), u64(2), u64(0), "w", u32(1), u64(8), u32(0), u64(0), "w", u32(1), u64(8), u32(0), u64(32)), 4096), []string{`tensor "w"`, "twice"}},
		{"tensors overlap", pad(raw(u32(3), u64(2), u64(0), "v", u32(1), u64(16), u32(0), u64(32), "w", u32(1), u64(16), u32(0), u64(0)), 4096), []string{`"v"`, `"w"`, "overlap"}},
		{"names with escapes", pad(raw(u32(3), u64(0), u64(1), "a\n\x1b[31m", u32(77)), 100), []string{`\n\x1b`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var err error
			if got := allocated(func() { _, err = parseBytes(c.file) }); got > 1<<20 {
				t.Errorf("allocated %d bytes for a file of %d", got, len(c.file))
			}
			wantBad(t, err, c.words...)
		})
	}
}

// allocated returns how much f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestNestedTooDeep(t *testing.T) {
	xs := []any{u32(3), u64(0), u64(1), "k", uint32(TypeArray)}
	for range 1000 {
		xs = append(xs, uint32(TypeArray), u64(1))
	}
	_, err := parseBytes(pad(raw(xs...), 100))
	wantBad(t, err, "nested", `key "k"`)
}

// hollow is a file that is a header and then zeros, of any size. It counts
// what is read from it.
type hollow struct {
	head []byte
	size int64
	read int64
}

func (h *hollow) ReadAt(p []byte, off int64) (int, error) {
	n := int(max(0, min(int64(len(p)), h.size-off)))
	clear(p[:n])
	if off < int64(len(h.head)) {
		copy(p[:n], h.head[off:])
	}
	h.read += int64(n)
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// bigWriter declares 22 GiB of tensors.
func bigWriter(t *testing.T) *Writer {
	w := NewWriter()
	must(t, w.Set("general.architecture", "qwen3moe"))
	for i := range 11 {
		must(t, w.Declare(fmt.Sprintf("big.%d", i), quant.F16, 1<<20, 1<<10))
		must(t, w.Declare(fmt.Sprintf("small.%d", i), quant.Q6_K, 256, 3))
	}
	return w
}

func TestBigFileReadsItsHeaderOnly(t *testing.T) {
	parts, err := bigWriter(t).layOut(1)
	must(t, err)
	h := &hollow{head: parts[0].header, size: parts[0].size}
	f, err := parseWhole(h, h.size, "model.gguf")
	must(t, err)
	if h.read > chunk {
		t.Errorf("read %d bytes of a file whose header has %d", h.read, len(h.head))
	}
	at := f.Shards[0].DataOffset
	for i := range 11 {
		for _, c := range []struct {
			name string
			size int64
		}{{fmt.Sprintf("big.%d", i), 2 << 30}, {fmt.Sprintf("small.%d", i), 630}} {
			x, ok := f.Tensor(c.name)
			if !ok || x.Offset != at || x.Size != c.size {
				t.Fatalf("%s: %+v, want %d bytes at %d", c.name, x, c.size, at)
			}
			at += (c.size + 31) / 32 * 32
		}
	}
	if at != h.size {
		t.Errorf("the data ends at %d of %d", at, h.size)
	}
}

// A damaged count in a file of many gigabytes has room in the file; it must not
// make the parser read or allocate all of it.
func TestDamagedCountInBigFile(t *testing.T) {
	for _, c := range []struct {
		name string
		head []byte
	}{
		{"strings", raw(u32(3), u64(0), u64(1), "k", uint32(TypeArray), uint32(TypeString), u64(1<<30))},
		{"numbers", raw(u32(3), u64(0), u64(1), "k", uint32(TypeArray), uint32(TypeUint8), u64(1<<33))},
		{"keys", raw(u32(3), u64(0), u64(1<<30))},
		{"tensors", raw(u32(3), u64(1<<30), u64(0))},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &hollow{head: c.head, size: 22 << 30}
			var err error
			if got := allocated(func() { _, err = parseWhole(h, h.size, "model.gguf") }); got > 1<<20 {
				t.Errorf("allocated %d bytes", got)
			}
			wantBad(t, err, "damaged", "1073741824")
		})
	}
}

// shrinking is a file that loses its end after its size was taken.
type shrinking struct{ data []byte }

func (s shrinking) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(p, off)
}

func TestFileShrinksWhileRead(t *testing.T) {
	whole := file(t, smallWriter(t))
	_, err := parseWhole(shrinking{whole[:100]}, int64(len(whole)), "model.gguf")
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("unexpected EOF")) {
		t.Errorf("got %v", err)
	}
}

// A value that straddles the window's edges must come out whole.
func TestHeaderLargerThanWindow(t *testing.T) {
	w := NewWriter()
	var tokens []string
	var scores []float32
	for i := range 60000 {
		tokens = append(tokens, fmt.Sprintf("token %d", i*i))
		scores = append(scores, float32(i)/7)
	}
	must(t, w.Set("tokens", tokens))
	must(t, w.Set("scores", scores))
	must(t, w.Set("long", string(bytes.Repeat([]byte("0123456789"), 100000))))
	must(t, w.Set("tokens2", tokens))
	f, err := parseBytes(file(t, w))
	must(t, err)
	for _, key := range []string{"tokens", "tokens2"} {
		got, err := f.Meta.Strings(key)
		must(t, err)
		for i := range tokens {
			if got[i] != tokens[i] {
				t.Fatalf("%s %d: %q, want %q", key, i, got[i], tokens[i])
			}
		}
	}
	got, _ := f.Meta.Get("scores")
	for i, s := range got.data.([]float32) {
		if s != scores[i] {
			t.Fatalf("score %d: %v, want %v", i, s, scores[i])
		}
	}
	if long, err := f.Meta.String("long"); err != nil || len(long) != 1000000 || long[999999] != '9' {
		t.Errorf("long: %d bytes, %v", len(long), err)
	}
}

// What people take for a model is named for what it is, with what to do.
func TestFilesTakenForModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		file  string
		words []string
	}{
		{"LFS pointer", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 18556686912\n", []string{"Git LFS pointer", "git lfs pull"}},
		{"page", "\n<!DOCTYPE html>\n<html><body>Sign in</body></html>", []string{"HTML page", "download the file itself"}},
		{"page with a mark", "\ufeff<HTML>", []string{"HTML page"}},
		{"short text", "hello", []string{"not a GGUF file", `"hell"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parseBytes([]byte(c.file))
			wantBad(t, err, c.words...)
		})
	}
}

// The pieces of a file that was cut by size ask to be joined; joined they open.
func TestPiecesAskToBeJoined(t *testing.T) {
	whole := file(t, smallWriter(t))
	dir := conform.TempDir(t)
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, b, 0o644))
		return path
	}
	half := len(whole) / 2
	for i, b := range [][]byte{whole[:half], whole[half:]} {
		path := write(fmt.Sprintf("m.gguf.part%dof2", i+1), b)
		_, err := Open(path)
		wantBad(t, err, fmt.Sprintf("piece %d of 2", i+1), "cat m.gguf.part1of2 m.gguf.part2of2 > m.gguf", "copy /b m.gguf.part1of2+m.gguf.part2of2 m.gguf")
	}
	_, err := Open(write("m.gguf.part03of12", whole[half:]))
	wantBad(t, err, "piece 3 of 12", "cat m.gguf.part01of12 m.gguf.part02of12 ... m.gguf.part12of12 >")
	if _, err := Open(write("m.gguf.part1of1", whole)); err != nil {
		t.Errorf("a whole file with such a name: %v", err)
	}
	_, err = Open(write("m.gguf.part3of2", whole[half:]))
	wantBad(t, err, "not a GGUF file")
}
