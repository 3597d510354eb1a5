package play

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/internal/conform"
	"bmoe/profile"
)

// said is what a face hears of a run.
type said struct {
	text   string
	walls  []int64
	result *backend.Run
}

func hear(t *testing.T, ask func(func(backend.Delta)) (*backend.Run, error)) said {
	t.Helper()
	var s said
	run, err := ask(func(d backend.Delta) {
		s.text += d.Text
		if d.Record != nil {
			s.walls = append(s.walls, d.Record.Wall)
		}
	})
	if err != nil || run.Err != nil {
		t.Fatal(err, run.Err)
	}
	s.result = run
	return s
}

// made records two questions and a repetition, and returns what was said and the file.
func made(t *testing.T) (*Session, []said, string) {
	t.Helper()
	cfg := engine.DefaultConfig()
	cfg.Model = filepath.Join("..", "demo", "tiny-stories-moe-q8_0.gguf")
	cfg.Cache.Share = 0.2
	own, err := engine.Open(context.Background(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := Wrap(own, "a program", func(err error) { t.Error(err) })
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(conform.TempDir(t), "session")
	if err := s.Record(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Record(path + "2"); err == nil || !strings.Contains(err.Error(), "recording goes on already") {
		t.Errorf("a second recording: %v", err)
	}
	var all []said
	for _, text := range []string{"Tell me a story about a dog.", "And a cat."} {
		all = append(all, hear(t, func(f func(backend.Delta)) (*backend.Run, error) {
			return s.Generate(context.Background(), backend.Request{Text: text, MaxTokens: 24, OnDelta: f})
		}))
	}
	all = append(all, hear(t, func(f func(backend.Delta)) (*backend.Run, error) { return s.Again(context.Background(), f) }))
	return s, all, path
}

// TestARecordingPlays: what is played is what was: words, costs, misses, results, and
// what the screen showed at every token.
func TestARecordingPlays(t *testing.T) {
	s, want, path := made(t)
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Prompts(); len(got) != 3 || got[0] != "Tell me a story about a dog." || got[2] != "And a cat." || b.Info() != s.Info() {
		t.Fatalf("%q, %+v", got, b.Info())
	}
	var live, then profile.Snapshot
	var real, rebuilt profile.ExpertMap
	for i, text := range b.Prompts() {
		got := hear(t, func(f func(backend.Delta)) (*backend.Run, error) {
			return b.Generate(context.Background(), backend.Request{Text: text, OnDelta: f})
		})
		if got.text != want[i].text || !reflect.DeepEqual(got.walls, want[i].walls) {
			t.Errorf("run %d says %q, said %q", i, got.text, want[i].text)
		}
		g, w := got.result, want[i].result
		if g.N != w.N || g.Sum != w.Sum || g.StartKey != w.StartKey || len(backend.Differences(w.Settings, g.Settings)) > 0 || len(backend.Differences(g.Settings, backend.Values(b.Settings()))) > 0 || g.Result.Cache != w.Result.Cache || !reflect.DeepEqual(g.Walls, w.Walls) {
			t.Errorf("run %d: %+v, was %+v", i, g, w)
		}
	}
	s.Experts(&real)
	b.Experts(&rebuilt)
	sameExperts(t, &real, &rebuilt)
	b.Snapshot(&live)
	s.Snapshot(&then)
	if live.Count != then.Count || live.Sum != then.Sum || live.Cache != then.Cache || live.Mean != then.Mean || live.Tokens != then.Tokens || live.Model != then.Model {
		t.Errorf("the screen shows other figures at the end")
	}
	if whole, err := os.ReadFile(path); err != nil || bytes.Contains(whole, []byte("tiny-stories-moe-q8_0")) {
		t.Errorf("the recording tells of paths: %v", err)
	}
	n, misses, were := int(then.Count), make([]profile.Miss, 64), make([]profile.Miss, 64)
	records, had := make([]profile.Record, n), make([]profile.Record, n)
	if b.History(0, records) != n || s.History(0, had) != n || !reflect.DeepEqual(records, had) {
		t.Error("other records")
	}
	for i := range int64(n) {
		k, ok := b.Chain(i, misses)
		if l, known := s.Chain(i, were); k != l || ok != known || !reflect.DeepEqual(misses[:k], were[:l]) {
			t.Errorf("token %d missed %+v, it was %+v", i, misses[:k], were[:l])
		}
		if !b.Moment(i, &live, nil) || live.Count != i+1 || live.Run != had[i].Run {
			t.Errorf("token %d: the moment is that of token %d of run %d", i, live.Count-1, live.Run)
		}
	}
	if b.Moment(int64(n)-1, &live, &rebuilt) {
		sameExperts(t, &real, &rebuilt)
	}
	if b.Moment(0, &live, &rebuilt); rebuilt.Token >= real.Token || len(rebuilt.Cells) != len(real.Cells) {
		t.Errorf("the map of the first token is of token %d", rebuilt.Token)
	}
	if b.Moment(int64(n), &live, &rebuilt) {
		t.Error("a moment that never was")
	}
	if o := b.Apply(map[string]string{"lanes": "2"}); len(o) != 1 || o[0].Verdict != backend.Declined {
		t.Errorf("%+v", o)
	}
	if _, err := b.Generate(context.Background(), backend.Request{Text: "What else?"}); !errors.Is(err, errPlayed) {
		t.Errorf("asked something else: %v", err)
	}
	again := hear(t, func(f func(backend.Delta)) (*backend.Run, error) { return b.Again(context.Background(), f) })
	if b.Snapshot(&live); again.text != want[2].text || live.Count != int64(n) {
		t.Errorf("once more: %q and %d tokens", again.text, live.Count)
	}
	b.Experts(&rebuilt)
	sameExperts(t, &real, &rebuilt)
	lines, err := backend.Why(b, 0)
	if err != nil || len(lines) < 3 {
		t.Errorf("%q, %v", lines, err)
	}
}

// A token takes less than 4 KB, route and reads included.
func TestARecordingIsSmall(t *testing.T) {
	s, _, path := made(t)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head := bytes.IndexByte(b[len(mark):], '\n')
	var live profile.Snapshot
	s.Snapshot(&live)
	if each := (info.Size() - int64(head)) / live.Count; each >= 4096 {
		t.Errorf("%d bytes a token, and %d of header", each, head)
	} else {
		t.Logf("%d bytes a token, and %d of header", each, head)
	}
	// A model of 48 layers, 8 of 256 experts each, half of which miss.
	token := token{at: 1 << 40, id: 100000, text: " something", record: &profile.Record{Wall: 300e6, Compute: 100e6, Lookups: 384, Hits: 192}, known: true}
	for i := range 384 {
		token.route = append(token.route, int32(i*37%256))
		if i%2 == 0 {
			token.misses = append(token.misses, profile.Miss{Layer: uint16(i / 8), Expert: uint16(i * 37 % 256), Away: uint16(i), Behind: uint8(i % 8), Wait: 12000, Drive: 2500})
		}
	}
	token.experts = &told{}
	for i := range 192 {
		token.experts.cells = append(token.experts.cells, toldCell{i * 64, profile.ExpertCell{By: int32(i * 63), Why: profile.GonePolicy}})
	}
	if n := len(token.append(nil, newEncoder(recordShape, recordType))); n >= 4096 {
		t.Errorf("%d bytes for a token of a large model", n)
	}
}

// Every byte that is missing at a file's end, as a killed program leaves it, costs a
// frame at most; what is damaged is refused in one line.
func TestDamagedRecordings(t *testing.T) {
	_, _, path := made(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole) - 1; cut > len(whole)-3000; cut -= 7 {
		if _, err := parse(whole[:cut]); err != nil {
			t.Fatalf("%d of %d bytes: %v", cut, len(whole), err)
		}
	}
	head := len(mark) + bytes.IndexByte(whole[len(mark):], '\n') + 1
	for want, b := range map[string][]byte{
		"not a recording: --record and /record write them": []byte("GGUF"),
		"it ends within its header":                        whole[:head-1],
		"nothing was recorded: no question was asked":      whole[:head],
		"its line ends were changed on the way":            bytes.ReplaceAll(whole, []byte("\n"), []byte("\r\n")),
		"a recording of another version":                   append([]byte("bmoe_recording v2\n"), whole[len(mark):]...),
		"header: invalid character":                        []byte(mark + "x\n"),
		"a frame of kind 'X'":                              append(append([]byte{}, whole...), 'X', 0),
		"a frame longer than 16 MiB":                       append(append([]byte{}, whole...), 'T', 255, 255, 255, 255, 15),
		"before the first question":                        append(append([]byte{}, whole[:head]...), 'T', 0),
		"it ends in the middle of a value":                 append(append([]byte{}, whole...), 'T', 1, 200),
		"a change of field 99 of":                          append([]byte(mark+`{"snapshot":["Run:i"],"record":[]}`+"\nB\x02{}"), 'S', 3, 0, 1, 99),
		"65 lanes":                                         append([]byte(mark+`{"snapshot":["Lanes.N:i"],"record":[]}`+"\nB\x02{}"), 'S', 5, 0, 1, 0, 130, 1),
	} {
		file := filepath.Join(conform.TempDir(t), "bad")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(file)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), file) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	// Fields that this program does not know are passed over.
	if r, err := parse([]byte(mark + `{"snapshot":["New.Field:s","Run:i"],"record":[]}` + "\nB\x02{}S\x08\x00\x02\x00\x02hi\x00\x06")); err != nil || len(r.runs) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A full disk ends the recording and not the answer.
func TestARecordingThatCannotBeWritten(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil || runtime.GOOS == "windows" { // Wine shows it and cannot open it
		t.Skip("no /dev/full")
	}
	cfg := engine.DefaultConfig()
	cfg.Model = filepath.Join("..", "demo", "tiny-stories-moe-q8_0.gguf")
	own, err := engine.Open(context.Background(), cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	var told []error
	s := Wrap(own, "", func(err error) { told = append(told, err) })
	if err := s.Record("/dev/full"); err != nil {
		t.Fatal(err)
	}
	hear(t, func(f func(backend.Delta)) (*backend.Run, error) {
		return s.Generate(context.Background(), backend.Request{Text: "hello", MaxTokens: 8, OnDelta: f})
	})
	if err := s.Close(); err != nil || len(told) != 1 || !strings.Contains(told[0].Error(), "no space left on device: nothing more is written to it") {
		t.Errorf("told %v, %v", told, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(mark + `{"snapshot":["Run:i","Model.Name:s"],"record":["Wall:i"]}` + "\nB\x02{}S\x05\x00\x01\x00\x06\x01T\x08\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte(mark + `{"snapshot":["New.Field:s","Run:i"],"record":[]}` + "\nB\x02{}S\x08\x00\x02\x00\x02hi\x00\x06"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parse(b)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		p := &Backend{r: r}
		var s profile.Snapshot
		p.Moment(int64(r.tokens)+1, &s, &profile.ExpertMap{}) // shows every step
	})
}

// sameExperts checks that a map is as it was, but for guesses that came to nothing.
func sameExperts(t *testing.T, real, rebuilt *profile.ExpertMap) {
	t.Helper()
	if rebuilt.Rebuilt || !rebuilt.Estimated || rebuilt.Token != real.Token || rebuilt.Experts != real.Experts || len(rebuilt.Layers) != len(real.Layers) {
		t.Fatalf("token %d of %d, %d experts of %d", rebuilt.Token, real.Token, rebuilt.Experts, real.Experts)
	}
	stall, gone := int64(0), 0
	for i := range real.Cells {
		w, g := real.Cells[i], rebuilt.Cells[i]
		w.Guessed, g.Guessed = 0, 0
		if w.State == profile.Ahead {
			w.State = profile.Absent
		}
		if g.State == profile.Ahead {
			g.State = profile.Absent
		}
		if g != w {
			t.Errorf("expert %d: %+v, was %+v", i, g, w)
		}
		if g.By >= 0 {
			gone++
			if rebuilt.Policies[g.Why-profile.GonePolicy] != real.Policies[w.Why-profile.GonePolicy] {
				t.Errorf("expert %d went by another policy", i)
			}
		}
	}
	for i := range rebuilt.Layers {
		stall += rebuilt.Layers[i].Stall
	}
	if gone == 0 || stall == 0 {
		t.Errorf("%d experts went, %d ns of waiting", gone, stall)
	}
}

// A recording that does not tell who went is still played: what is seen of experts is
// right, and the map says that it was rebuilt.
func TestARecordingWithoutExperts(t *testing.T) {
	s, _, path := made(t)
	b, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range b.r.runs {
		for i := range r.steps {
			if t := r.steps[i].token; t != nil {
				t.experts = nil
			}
		}
	}
	b.experts.init(b.r)
	for _, text := range b.Prompts() {
		if _, err := b.Generate(context.Background(), backend.Request{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	var real, m profile.ExpertMap
	s.Experts(&real)
	b.Experts(&m)
	seen := 0
	for i := range real.Cells {
		w, g := &real.Cells[i], &m.Cells[i]
		if g.Used == 0 {
			continue // in the prompt alone, of which routes are not kept
		}
		seen++
		if g.Used != w.Used || g.Read > 0 && g.Read != w.Read || g.Uses > w.Uses || g.Reads > w.Reads || w.State == profile.Resident && g.State != profile.Resident {
			t.Errorf("expert %d: %+v, was %+v", i, *g, *w)
		}
	}
	if !m.Rebuilt || seen == 0 {
		t.Errorf("rebuilt %v, %d experts seen", m.Rebuilt, seen)
	}
}
