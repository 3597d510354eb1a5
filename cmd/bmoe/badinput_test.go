package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bmoe/engine/demo"
	"bmoe/engine/gguf"
	"bmoe/engine/gguf/synth"
	"bmoe/internal/conform"
)

// refused runs the program on what it must refuse in one line.
func refused(t *testing.T, code int, says []string, args ...string) {
	t.Helper()
	r := bmoe(t, args...)
	line := oneComplaint(t, r.stderr)
	if r.code != code || r.stdout != "" {
		t.Errorf("%q: exit code %d, want %d; standard output %q", args, r.code, code, r.stdout)
	}
	for _, s := range says {
		if !strings.Contains(line, s) {
			t.Errorf("%q: %q does not say %q", args, line, s)
		}
	}
}

// patched returns a copy of the tiny model with something else in place of what
// follows a marker.
func patched(t *testing.T, marker, is string) string {
	t.Helper()
	b := bytes.Clone(readTest(t, conform.File(t, "models/qwen3moe.gguf")))
	at := bytes.Index(b, []byte(marker))
	if at < 0 {
		t.Fatalf("no %q in the model", marker)
	}
	copy(b[at+len(marker):], is)
	return temp(t, "patched.gguf", b)
}

func TestBadModels(t *testing.T) {
	dir := conform.TempDir(t)
	tiny := readTest(t, conform.File(t, "models/qwen3moe.gguf"))
	for _, c := range []struct {
		name string
		path string
		says []string
	}{
		{"missing file", filepath.Join(dir, "none.gguf"), []string{"none.gguf"}},
		{"directory", dir, []string{dir, "directory"}},
		{"empty file", temp(t, "empty.gguf", nil), []string{"empty.gguf"}},
		{"wrong magic", temp(t, "magic.gguf", append([]byte("GGML"), tiny[4:]...)), []string{"magic.gguf", "GGUF"}},
		{"other file", temp(t, "text.gguf", []byte(strings.Repeat("no model at all ", 100))), []string{"text.gguf", "GGUF"}},
		{"huge counts", temp(t, "huge.gguf", append([]byte("GGUF\x03\x00\x00\x00"), bytes.Repeat([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f}, 12)...)), []string{"huge.gguf"}},
		{"unknown architecture", patched(t, "general.architecture\x08\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00", "nonesuch"), []string{`"nonesuch"`, "qwen3moe"}},
		{"dense model", patched(t, "qwen3moe.expert_count\x04\x00\x00\x00", "\x00"), []string{"patched.gguf", "dense"}},
		{"unknown tensor type", patched(t, "blk.0.attn_q.weight\x02\x00\x00\x00@\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00", "\x4d"), []string{"blk.0.attn_q.weight", "77"}},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, 1, c.says, "-p", "hi", "-m", c.path) })
	}
}

// A file that ends too early is named whatever it ends within: the magic, the
// counts, the metadata, the tensor table, the padding or the weights.
func TestTruncatedModels(t *testing.T) {
	path := conform.File(t, "models/qwen3moe.gguf")
	whole := readTest(t, path)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	data := len(whole) // where the weights begin
	for i := range f.Tensors {
		data = min(data, int(f.Tensors[i].Offset))
	}
	cuts := []int{1, 4, 7, 8, 12, 16, 20, 24, 25, 40, data - 100, data - 33, data - 1, data, data + 1, data + 1000, len(whole) / 2, len(whole) - 1}
	for i := 1; i < 8; i++ {
		cuts = append(cuts, data*i/8)
	}
	for _, n := range cuts {
		refused(t, 1, []string{"cut.gguf"}, "-p", "hi", "-m", temp(t, "cut.gguf", whole[:n]))
	}
}

func TestMissingShard(t *testing.T) {
	dir := conform.TempDir(t)
	for _, n := range []string{"1", "3"} {
		name := "qwen3moe-0000" + n + "-of-00003.gguf"
		if err := os.WriteFile(filepath.Join(dir, name), readTest(t, conform.File(t, "split/"+name)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, 1, []string{"qwen3moe-00002-of-00003.gguf"}, "-p", "hi", "-m", filepath.Join(dir, "qwen3moe-00001-of-00003.gguf"))
}

func TestBadUsage(t *testing.T) {
	tiny := conform.File(t, "models/qwen3moe.gguf")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"1 to 64", []string{"--io-threads", "0"}},
		{"1 to 64", []string{"--io-threads", "1000"}},
		{"1 to", []string{"--threads", "0"}},
		{"1 to", []string{"-c", "-1"}},
		{"0 to", []string{"-n", "-1"}},
		{"0 to", []string{"-n", "many"}},
		{"1 to", []string{"--ubatch", "0"}},
		{"auto", []string{"--cache-mb", "-1"}},
		{"auto", []string{"--cache-mb", "-5"}},
		{"lru", []string{"--cache-policy", "best"}},
		{"uring", []string{"--io-engine", "fast"}},
		{"anon", []string{"--dense-weights", "no"}},
		{"exact", []string{"--numerics", "slow"}},
		{"q8_0", []string{"--kv-type", "q4"}},
		{"ntfs", []string{"--simulate-host", "fat"}},
		{"0 or more", []string{"--temp", "-1"}},
		{"0 or more", []string{"--temp", "nan"}},
		{"up to 1", []string{"--top-p", "0"}},
		{"0 to 1", []string{"--min-p", "2"}},
		{"more than 0", []string{"--repeat-penalty", "0"}},
		{"seed", []string{"--seed", "-1"}},
		{"--no-such-flag", []string{"--no-such-flag"}},
		{"needs an argument", []string{"-p"}},
		{"equals sign", []string{"--moe-stream", "false", "-p", "hi"}},
		{"one model at most", []string{"a.gguf", "b.gguf"}},
		{"two models", []string{"-m", "a.gguf", "b.gguf"}},
		{"empty", []string{"-m", "", "-p", "hi"}},
		{"empty", []string{"-p", ""}},
		{"empty", []string{"-p", " \n"}},
		{"empty", nil}, // standard input is
		{"empty", []string{"--json"}},
		{"exclude", []string{"-p", "a", "-f", "b"}},
		{"exclude", []string{"-p", "a", "--json", "--progress"}},
		{"exclude", []string{"--tokenize", "a", "--show-prompt"}},
		{"--show-prompt", []string{"--conversation", "x.json"}},
		{"--eval-tokens", []string{"--save-logits", "x"}},
		{"--eval-tokens", []string{"--eval-decode"}},
		{"token id", []string{"--eval-tokens", "1,,2"}},
		{"token id", []string{"--eval-tokens", "-1"}},
		{"vocabulary", []string{"--eval-tokens", "5,320", "-m", tiny}},
		{"context", []string{"--eval-tokens", "1,2,3,4,5", "-c", "4", "-m", tiny}},
		{"working set", []string{"-p", "hi", "--raw", "--cache-mb", "4", "-m", bigExperts(t)}},
	} {
		refused(t, 2, []string{c.says}, c.args...)
	}
}

// A flag that is given twice takes the last value, and that is said in one line.
func TestRepeatedFlags(t *testing.T) {
	tiny := conform.File(t, "models/qwen3moe.gguf")
	for _, c := range []struct {
		says string // empty if nothing is to be said
		args []string
	}{
		{"--model is given more than once: ", []string{"-m", "other.gguf", "-m", tiny}},
		{`--ctx-size is given more than once: "128" holds, "64" does not`, []string{"-c", "64", "--ctx-size", "128", "-m", tiny}},
		{"", []string{"-c", "64", "-c", "64", "-m", tiny}},
		{"", []string{"--models-dir", "a", "--models-dir", "b", "-m", tiny}},
	} {
		r := succeeds(t, append([]string{"--tokenize", "x"}, c.args...)...)
		said := strings.Count(r.stderr, "more than once")
		if c.says == "" && said > 0 || c.says != "" && said != 1 || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%q: %q, want %q", c.args, r.stderr, c.says)
		}
	}
}

func TestBadPromptsAndFiles(t *testing.T) {
	dir := conform.TempDir(t)
	long := strings.Repeat("Once upon a time there was a dog. ", 100)
	refused(t, 1, []string{"512"}, "-p", long) // the demo's context
	refused(t, 1, []string{"16"}, "-p", "Tell me a story about a dog.", "-c", "16")
	refused(t, 1, []string{"none.txt"}, "-f", filepath.Join(dir, "none.txt"))
	refused(t, 1, []string{dir}, "-f", dir)
	refused(t, 1, []string{"none.jinja"}, "-p", "hi", "--chat-template-file", filepath.Join(dir, "none.jinja"))
	refused(t, 1, nil, "-p", "hi", "--chat-template-file", temp(t, "bad.jinja", []byte("{% for x in %}")))
	refused(t, 1, []string{"none.json"}, "--show-prompt", "--conversation", filepath.Join(dir, "none.json"))
	refused(t, 1, []string{"bad.json"}, "--show-prompt", "--conversation", temp(t, "bad.json", []byte("[1, 2")))
	refused(t, 1, []string{"logits"}, "--eval-tokens", "1", "--save-logits", filepath.Join(dir, "no", "such", "folder"))
}

func TestCacheFolderCannotBeWritten(t *testing.T) {
	t.Setenv(demo.DirVariable, filepath.Join(temp(t, "file", nil), "below"))
	refused(t, 1, []string{demo.DirVariable, "MODEL.gguf"}, "-p", "hi")
}

// A budget below a token cycle is taken; least-recently-used scores nothing there,
// and a warning says which budget would do.
func TestBudgetBelowATokenCycle(t *testing.T) {
	r := succeeds(t, "-p", "hi", "-n", "4", "--json", "--cache-mb", "2", "--cache-policy", "lru")
	line := oneComplaint(t, r.stderr)
	if !strings.Contains(line, "warning") || !regexp.MustCompile(`--cache-mb [3-9] would`).MatchString(line) {
		t.Errorf("warned: %q", line)
	}
}

// An error within --progress is told in a line of it too.
func TestProgressTellsErrors(t *testing.T) {
	r := bmoe(t, "-p", "hi", "--progress", "-m", filepath.Join(conform.TempDir(t), "none.gguf"))
	line := oneComplaint(t, r.stderr)
	word, object, _ := strings.Cut(r.stdout, " ")
	var e errorLine
	parseJSON(t, object, &e)
	if r.code != 1 || word != "BMOE_ERROR" || !e.Fatal || line != "bmoe: "+e.Msg {
		t.Errorf("exit code %d, standard output %q, standard error %q", r.code, r.stdout, r.stderr)
	}
}

// bigExperts writes a model with experts of 3 MiB, two of them for a token.
func bigExperts(t *testing.T) string {
	t.Helper()
	path := filepath.Join(conform.TempDir(t), "big.gguf")
	if err := synth.Write(path, synth.Spec{Layers: 1, Embd: 512, Heads: 4, KVHeads: 2, HeadDim: 32, Experts: 4, Used: 2, ExpertFF: 512, Vocab: 512, Ctx: 64, Type: "F32", Seed: 1}); err != nil {
		t.Fatal(err)
	}
	return path
}
