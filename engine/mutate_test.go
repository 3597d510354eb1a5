package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"bmoe/engine/backend"
	"bmoe/engine/gguf"
	"bmoe/internal/conform"
)

var (
	mutationCount = flag.Int("mutations", 300, "how many files TestMutatedFiles damages")
	mutationFrom  = flag.Uint64("mutations-from", 0, "the first of them")
)

// What a damaged file may take at most. The time is that of a quiet machine: a
// file that takes longer is tried again before it counts.
const (
	mutationTime   = 2 * time.Second
	mutationMemory = 1 << 30 // bytes
)

// victim is a model of which damaged copies are made, in place.
type victim struct {
	path  string
	file  *os.File
	whole []byte
	data  int   // where the weights begin
	sites []int // where a metadata value or a tensor's shape begins
	text  [2]int
}

// newVictim copies a model to where it may be damaged. With a template it is
// written again, and bears one.
func newVictim(t *testing.T, model, template string) *victim {
	t.Helper()
	whole, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{path: filepath.Join(conform.TempDir(t), filepath.Base(model)), whole: whole}
	if template == "" {
		err = os.WriteFile(v.path, whole, 0o600)
	} else {
		err = writeWithTemplate(v.path, model, template)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(v.path)
	if err != nil {
		t.Fatal(err)
	}
	if v.whole, err = os.ReadFile(v.path); err != nil {
		t.Fatal(err)
	}
	v.data = int(f.Shards[0].DataOffset)
	names := f.Meta.Keys()
	for _, x := range f.Tensors {
		names = append(names, x.Name)
	}
	for _, n := range names {
		if at := bytes.Index(v.whole[:v.data], []byte(n)); at >= 0 {
			v.sites = append(v.sites, at+len(n))
		}
	}
	if at := bytes.Index(v.whole, []byte(template)); template != "" && at >= 0 {
		v.text = [2]int{at, at + len(template)}
	}
	if v.file, err = os.OpenFile(v.path, os.O_RDWR, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.file.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// writeWithTemplate copies a model and adds a chat template.
func writeWithTemplate(to, model, template string) error {
	f, err := gguf.Open(model)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(model)
	if err != nil {
		return err
	}
	w := gguf.NewWriter()
	for _, k := range f.Meta.Keys() {
		x, _ := f.Meta.Get(k)
		if err := w.Set(k, x); err != nil {
			return err
		}
	}
	if err := w.Set("tokenizer.chat_template", template); err != nil {
		return err
	}
	for _, x := range f.Tensors {
		if err := w.Declare(x.Name, x.Type, x.Dims...); err != nil {
			return err
		}
	}
	out, err := w.Create(to, 1)
	if err != nil {
		return err
	}
	for _, x := range f.Tensors {
		if err := out.WriteTensor(x.Name, 0, b[x.Offset:][:x.Size]); err != nil {
			return errors.Join(err, out.Abort())
		}
	}
	return out.Close()
}

// hostileNumbers are what overflows, divides by zero or allocates too much.
var hostileNumbers = []uint64{0, 1, 2, 3, 7, 31, 255, 256, 1 << 15, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1 << 40, 1 << 60, 1<<63 - 1, 1 << 63, 1<<64 - 1}

// hostileTemplates are pieces that loop, recurse or grow.
var hostileTemplates = []string{"{% for x in range(999999999) %}", "{{ 'x' * 10**9 }}", "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}", "{{ messages * 10**7 }}",
	"{% for m in messages %}", "{% endfor %}", "{% endif %}", "{{", "{%", "}}", "{#", "\x1b[2J", "\xff\xfe", "{{ messages[9999999] }}", "{{ 9**9**9 }}", "{% if ", "|tojson", "'", "{% set x = x ~ x %}"}

// damage writes a damaged copy and returns what was done.
func (v *victim) damage(r *rand.Rand) (what string, err error) {
	b := slices.Clone(v.whole)
	for range 1 + r.IntN(3) {
		header := min(v.data, len(b))
		if header == 0 {
			break
		}
		switch kind := r.IntN(10); {
		case kind < 2:
			at := r.IntN(header)
			b[at] ^= 1 << r.IntN(8)
			what += fmt.Sprintf("bit at %d; ", at)
		case kind < 6: // a value, a count or a dimension
			at, x := v.sites[r.IntN(len(v.sites))]+pick(r, 0, 4, 8, 12, 20, 28, -8), hostileNumbers[r.IntN(len(hostileNumbers))]
			if r.IntN(3) == 0 {
				x = uint64(r.IntN(400))
			}
			if at < 0 || at+8 > len(b) {
				continue
			}
			if r.IntN(2) == 0 {
				binary.LittleEndian.PutUint32(b[at:], uint32(x))
			} else {
				binary.LittleEndian.PutUint64(b[at:], x)
			}
			what += fmt.Sprintf("%d at %d; ", x, at)
		case kind < 7:
			at, n := r.IntN(header), 1+r.IntN(64)
			end := min(at+n, len(b))
			switch r.IntN(3) {
			case 0:
				b = slices.Delete(b, at, end)
			case 1:
				b = slices.Insert(b, at, b[at:end]...)
			default:
				clear(b[at:end])
			}
			what += fmt.Sprintf("%d bytes at %d; ", n, at)
		case kind < 8 && v.text[1] > 0:
			piece := hostileTemplates[r.IntN(len(hostileTemplates))]
			at := v.text[0] + r.IntN(v.text[1]-v.text[0])
			if at < len(b) {
				copy(b[at:min(len(b), v.text[1])], piece)
			}
			what += fmt.Sprintf("%q at %d; ", piece, at)
		case kind < 9: // in the weights
			at := r.IntN(len(b))
			b[at] = byte(r.Uint32())
			what += fmt.Sprintf("byte at %d; ", at)
		default:
			n := r.IntN(len(b) + 64)
			what += fmt.Sprintf("length %d; ", n)
			b = append(b[:min(n, len(b))], make([]byte, max(0, n-len(b)))...)
		}
	}
	if err := v.file.Truncate(int64(len(b))); err != nil {
		return what, err
	}
	_, err = v.file.WriteAt(b, 0)
	return what, err
}

// mutated counts how damaged files ended.
type mutated struct {
	refused, failed, answered int
	slowest                   time.Duration
	most                      uint64 // bytes that one file made the Go heap allocate
}

// TestMutatedFiles opens damaged models and asks them something: every one is
// refused in a line, fails in a line or answers. None panics, hangs, or takes memory
// out of proportion.
func TestMutatedFiles(t *testing.T) {
	template, err := os.ReadFile(filepath.Join("chat", "jinja", "testdata", "Qwen-Qwen3-0.6B.jinja"))
	if err != nil {
		t.Fatal(err)
	}
	victims := []*victim{
		newVictim(t, conform.File(t, "models/qwen3moe.gguf"), ""),
		newVictim(t, conform.File(t, "models/qwen3moe-yarn.gguf"), string(template)),
		newVictim(t, conform.File(t, "quants/qwen3moe-q-Q4_K_M.gguf"), ""),
		newVictim(t, windowed(t).Model, ""),
	}
	if conform.HasShared() { // every family
		for _, path := range familyFiles(t) {
			victims = append(victims, newVictim(t, path, ""))
		}
	}
	var did mutated
	for i := *mutationFrom; i < *mutationFrom+uint64(*mutationCount); i++ {
		r := rand.New(rand.NewPCG(17, i))
		v := victims[r.IntN(len(victims))]
		what, err := v.damage(r)
		if err != nil {
			t.Fatal(err)
		}
		seed := r.Uint64()
		for try := 0; ; try++ {
			began, before := time.Now(), allocatedBytes()
			err, opened := useFile(v.path, rand.New(rand.NewPCG(1, seed)))
			took, allocated := time.Since(began), allocatedBytes()-before
			if took > mutationTime && try < 3 {
				continue // another process may have held this one up
			}
			did.slowest, did.most = max(did.slowest, took), max(did.most, allocated)
			switch {
			case err == nil:
				did.answered++
			case opened:
				did.failed++
			default:
				did.refused++
			}
			var panicked *panicError
			switch {
			case errors.As(err, &panicked):
				t.Errorf("file %d (%s %s) panics: %v\n%s", i, filepath.Base(v.path), what, panicked.value, panicked.stack)
			case took > mutationTime:
				t.Errorf("file %d (%s %s) takes %v", i, filepath.Base(v.path), what, took)
			case allocated > mutationMemory:
				t.Errorf("file %d (%s %s) takes %d MiB", i, filepath.Base(v.path), what, allocated>>20)
			case err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl):
				t.Errorf("file %d (%s %s): not one clean line: %q", i, filepath.Base(v.path), what, err)
			}
			break
		}
	}
	peak := peakMemory()
	t.Logf("%d files: %d refused, %d failed, %d answered; the slowest took %v, at most %d MiB were allocated for one; peak memory of the process %d MiB",
		*mutationCount, did.refused, did.failed, did.answered, did.slowest.Round(time.Millisecond), did.most>>20, peak>>20)
	if peak > mutationMemory {
		t.Errorf("the process took %d MiB", peak>>20)
	}
	if did.refused == 0 || did.answered == 0 {
		t.Errorf("the damage shows nothing: %+v", did)
	}
}

type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprint("panic: ", p.value) }

// useFile opens a model with settings of many kinds and lets it say a few words.
func useFile(path string, r *rand.Rand) (err error, opened bool) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	cfg := DefaultConfig()
	cfg.Model, cfg.Threads, cfg.Lanes = path, 1+r.IntN(2), pick(r, 1, 4)
	cfg.Raw, cfg.Stream, cfg.ReleaseMmap = r.IntN(2) == 0, r.IntN(4) > 0, r.IntN(4) == 0
	cfg.Dense, cfg.Ctx = pick(r, DenseAnon, DenseMmap), pick(r, 0, 64)
	s, err := Open(context.Background(), cfg, nil)
	if err != nil {
		return err, false
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	run, err := s.Generate(context.Background(), backend.Request{Text: "Once upon a time", MaxTokens: 3})
	if err != nil {
		return err, true
	}
	return run.Err, true
}

// allocatedBytes returns what the Go heap has allocated so far.
func allocatedBytes() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// peakMemory returns the most memory that the process had in RAM, or 0 where the
// system does not tell.
func peakMemory() (n int64) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	if _, rest, ok := bytes.Cut(status, []byte("VmHWM:")); ok {
		fmt.Sscan(string(rest), &n)
	}
	return n << 10
}
