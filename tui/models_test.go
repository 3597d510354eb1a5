package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/conform"
	"bmoe/internal/sessions"
	"bmoe/internal/units"
	"bmoe/profile"
)

// fakeModels has some models, and opens fakes.
type fakeModels struct {
	mu       sync.Mutex
	now      *fakeEngine   // the one that is open, to be closed before another is opened
	prepare  error         // of any but the first
	finish   error         // likewise
	hold     chan struct{} // if set, opening any but the first waits for it, or for its end
	comes    chan struct{} // a download waits for it
	reached  chan bool     // hears of every opening and download that waits
	probes   []bool        // what List was asked
	opened   []string      // IDs, in order
	overlap  bool          // two were open at once
	refuse   string        // the hub's answer
	finished *fakeEngine   // the last that was opened
}

func (f *fakeModels) List(_ context.Context, probe bool, tell func(backend.Shelf)) error {
	f.mu.Lock()
	f.probes = append(f.probes, probe)
	f.mu.Unlock()
	all := backend.Shelf{Memory: 15_500_000_000, Models: []backend.Model{
		{ID: "35b", Name: "Qwen3.6-35B-A3B-Q4_K_M", Place: "command line", Arch: "qwen35moe", Quant: "Q4_K_M", Bytes: 22_300_000_000, Experts: 256, Used: 8, Active: 1_920 * units.MiB},
		{ID: "7b", Name: "Llama-7B-Q8_0.gguf", Place: "LM Studio", Arch: "llama", Quant: "Q8_0", Bytes: 7_200_000_000, Active: 6_800 * units.MiB},
		{ID: "bad", Name: "broken.gguf", Place: "here", Why: "broken.gguf: no GGUF file"},
		{ID: "far", Name: "gpt-oss-120b", Place: "vLLM gpu-box:8000", Far: true},
	}}
	tell(all)
	if probe {
		all.Machine = "memory is read at 18.1 GB/s; a drive gives 2402 MiB/s"
		for i, v := range [][2]float64{{2.1, 7.4}, {0.9, 2.3}} {
			all.Models[i].Least, all.Models[i].Most = profile.Some(v[0]), profile.Some(v[1])
		}
		tell(all)
	}
	return nil
}

func (f *fakeModels) Facts(_ context.Context, id string) ([]backend.Fact, error) {
	return []backend.Fact{{Name: "file", Value: "/models/" + id + ".gguf"}, {Name: "auto", Value: "a cache of 3000 MiB, 17 % of all experts"}}, nil
}

func (f *fakeModels) Prepare(_ context.Context, id string) (*backend.Opening, error) {
	if f.prepare != nil && id != "35b" {
		return nil, f.prepare
	}
	return &backend.Opening{ID: id, Name: id, Path: "/models/" + id + ".gguf", Finish: func(ctx context.Context, progress func(string, float64)) (backend.Backend, error) {
		if id != "35b" {
			progress("dense weights", 0.4)
			if f.hold != nil {
				f.reached <- true
				select {
				case <-f.hold:
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			if f.finish != nil {
				return nil, f.finish
			}
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.now.mu.Lock()
		f.overlap = f.overlap || !f.now.closed
		f.now.mu.Unlock()
		f.now = newFake()
		f.now.s.Model.Name = "model " + id
		f.opened = append(f.opened, id)
		f.finished = f.now
		return f.now, nil
	}}, nil
}

func (f *fakeModels) Offer(_ context.Context, name string) (*backend.Offer, error) {
	if f.refuse != "" {
		return nil, errors.New(f.refuse)
	}
	return &backend.Offer{Name: name, Lines: []string{"one-Q4_K_M.gguf, 18.6 GB; this machine has 15.5 GB of memory", "expected here: 2.1 to 7.4 tok/s, by its name"}}, nil
}

func (f *fakeModels) Download(ctx context.Context, o *backend.Offer, tell func(backend.Download)) (string, error) {
	tell(backend.Download{Name: "one-Q4_K_M.gguf", Done: 3_200_000_000, Total: 18_600_000_000, Rate: 45 * units.MiB, Left: 5 * time.Minute})
	f.reached <- true
	select {
	case <-f.comes:
		return "7b", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// picker returns a screen whose model can be changed.
func picker(t *testing.T, w, h int, o Options) (*harness, *fakeModels) {
	f := newFake()
	models := &fakeModels{now: f, comes: make(chan struct{}), reached: make(chan bool, 1)}
	o.Models, o.ModelID, o.Model = models, "35b", "/models/35b.gguf"
	return start(t, w, h, o, f), models
}

// listed opens the list and waits until it is whole.
func (h *harness) listed() {
	h.t.Helper()
	h.keys("ctrl+o")
	h.wait("the list", func() bool { return h.m.shelving.list == nil })
	h.facts()
}

// facts waits for those of the picked model.
func (h *harness) facts() {
	h.t.Helper()
	h.wait("the facts", func() bool {
		return strings.Contains(h.m.frame(), "auto      ") || strings.Contains(h.m.frame(), "problem ")
	})
}

func TestGoldenModels(t *testing.T) {
	for _, size := range [][2]int{{60, 16}, {80, 24}, {120, 40}, {200, 60}} {
		for _, ascii := range []bool{false, true} {
			name := fmt.Sprintf("models-%dx%d", size[0], size[1])
			if ascii {
				name += "-ascii"
			}
			h, _ := picker(t, size[0], size[1], Options{ASCII: ascii})
			h.listed()
			s := h.screen()
			if ascii && strings.IndexFunc(s, func(r rune) bool { return r > 126 }) >= 0 {
				t.Error("a character that is not ASCII")
			}
			golden(t, name, s)
		}
	}
}

// The list is filtered by what is typed and sorted by its columns, and the picked model
// stays picked.
func TestListOfModels(t *testing.T) {
	h, models := picker(t, 120, 40, Options{})
	h.listed()
	h.wants("(open) Qwen3.6", "2.1 to 7.4", "144 %", "8/256", "cannot be run", "a cache of 3000 MiB", "memory is read at 18.1 GB/s")
	h.keys("end", "left") // by speed
	h.wants("by speed")
	if m := h.m.models; !strings.Contains(h.screen(), "▶ gpt-oss-120b") {
		t.Errorf("picked: %q\n%s", m.Hints(), h.screen())
	}
	h.typed("llama Q8")
	h.facts()
	h.wants("filter: llama Q8_", "▶ Llama-7B", "/models/7b.gguf")
	h.lacks("gpt-oss", "broken")
	h.typed("x")
	h.wants("no model has this")
	h.keys("esc")
	h.wants("filter: _", "broken")
	h.typed("broken")
	h.keys("enter") // it cannot be run: nothing happens
	h.wants("no GGUF file")
	h.keys("esc", "esc")
	if h.m.views.Top() != nil || h.m.state != idle || len(models.opened) != 0 {
		t.Error("still open")
	}
	h.keys("ctrl+o", "enter") // the open one
	h.wait("the list", func() bool { return h.m.shelving.list == nil })
	if h.m.state != idle || h.m.change != nil {
		t.Error("it is changed to what is open")
	}
}

// The other model is opened after the first has been closed, and the chat begins anew;
// the old one is kept.
func TestChangeOfModel(t *testing.T) {
	dir := conform.TempDir(t)
	h, models := picker(t, 120, 40, Options{Sessions: sessions.Open(dir)})
	h.ask("Why is this laptop slow?")
	models.hold = make(chan struct{})
	h.listed()
	h.typed("llama")
	h.keys("enter")
	h.wait("the opening", func() bool { return h.m.state == loading })
	<-models.reached
	h.wants("opening Llama-7B", "dense weights", "Esc goes back")
	if !h.f.closed {
		t.Error("the first model is still open")
	}
	close(models.hold)
	h.idle()
	h.f = models.finished
	h.tick()
	h.wants("model 7b", "is saved as")
	for _, b := range h.m.chat.Blocks() {
		if strings.Contains(b.Text(), "laptop") {
			t.Errorf("of the old chat: %q", b.Text())
		}
	}
	if models.overlap {
		t.Error("two models were open at once")
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("kept: %q", got)
	}
	h.ask("And this one?")
	if h.f.prompts[0] != "And this one?" || len(h.m.runs.All()) != 1 {
		t.Errorf("%q, %d runs", h.f.prompts, len(h.m.runs.All()))
	}
	h.listed()
	h.wants("(open) Llama")
}

// A model that cannot be opened leaves the old one as it was: before anything was closed,
// or opened again with its conversation and what keys had set.
func TestChangeThatFails(t *testing.T) {
	for _, late := range []bool{false, true} {
		h, models := picker(t, 120, 40, Options{})
		h.ask("Why is this laptop slow?")
		h.m.settings[1].Origin, h.m.settings[1].Value = backend.FromKey, "8"
		if models.prepare = errors.New("no header"); late {
			models.prepare, models.finish = nil, errors.New("no memory\nat all")
		}
		h.keys("ctrl+o")
		h.wait("the list", func() bool { return h.m.shelving.list == nil })
		h.typed("llama")
		h.keys("enter")
		h.idle()
		if h.f.closed != late {
			t.Fatalf("late %v: closed %v", late, h.f.closed)
		}
		want := "Qwen3.6-35B-A3B-Q4_K_M stays: no header"
		if late {
			want = "Qwen3.6-35B-A3B-Q4_K_M stays: no memory"
			h.f = models.finished
			if talk := h.f.Chat(); len(talk.Messages) != 2 || h.f.config().lanes != 8 {
				t.Errorf("%+v, %+v", talk, h.f.config())
			}
		}
		h.said(want, "Why is this laptop slow?")
		if h.m.loadErr != nil || h.m.o.ModelID != "35b" || models.overlap {
			t.Errorf("%v, %q", h.m.loadErr, h.m.o.ModelID)
		}
	}
}

// Esc goes back to the old model while the other is being opened.
func TestChangeThatIsStopped(t *testing.T) {
	h, models := picker(t, 80, 24, Options{})
	models.hold = make(chan struct{})
	h.listed()
	h.typed("llama")
	h.keys("enter")
	h.wait("the opening", func() bool { return h.m.state == loading })
	<-models.reached
	h.wants("Esc goes back")
	h.keys("esc")
	h.wants("going back to Qwen3.6")
	h.idle()
	h.wants("stopped: Qwen3.6-35B-A3B-Q4_K_M stays")
	if len(models.opened) != 1 || models.opened[0] != "35b" || models.overlap || h.m.eng != backend.Backend(models.finished) {
		t.Errorf("opened %q", models.opened)
	}
}

// While no model is open at all, every key and command leaves the screen whole, and a
// message waits for the model to come.
func TestKeysWhileTheModelChanges(t *testing.T) {
	h, models := picker(t, 120, 40, Options{Sessions: sessions.Open(conform.TempDir(t))})
	h.f.tells = true
	h.ask("Why is this laptop slow?")
	h.listed()
	models.hold = make(chan struct{})
	h.typed("llama")
	h.keys("enter")
	h.wait("the opening", func() bool { return h.m.state == loading })
	<-models.reached
	for _, focused := range []focus{onPrompt, onPanes} {
		for i := range h.m.table {
			r := &h.m.table[i]
			for _, b := range append(append([]bind{}, r.any...), r.panes...) {
				if b.act == actStop || b.act == actCtrlC || b.act == actQuit || b.act == actSuspend {
					continue
				}
				h.m.views.Clear()
				h.m.setFocus(focused)
				b.setting, b.view = r.setting, r.view
				h.exec(h.m.act(b))
				h.tick()
				h.screen()
			}
		}
	}
	h.m.views.Clear()
	h.m.finding.on = false
	h.m.setFocus(onPrompt)
	h.m.prompt.Clear()
	for _, cmd := range []string{"/why", "/why 3", "/record x", "/again", "/new", "/resume", "/edit", "/regenerate", "/copy", "/lanes 8", "/export x.md", "/models", "/note x", "/find laptop"} {
		h.typed(cmd)
		h.keys("enter")
		h.m.views.Clear()
		h.m.finding.on = false
		h.m.setFocus(onPrompt)
		h.screen()
	}
	h.typed("And this one?")
	h.keys("enter")
	if h.m.eng != nil || h.m.state != loading {
		t.Fatalf("state %d", h.m.state)
	}
	close(models.hold)
	h.wait("the answer", func() bool { return h.m.eng != nil && h.m.state == idle && len(h.m.runs.All()) == 1 })
	if got := models.finished.prompts; len(got) != 1 || got[0] != "And this one?" {
		t.Errorf("asked %q", got)
	}
}

// When neither opens, the program ends and says both.
func TestChangeWithNoWayBack(t *testing.T) {
	h, models := picker(t, 80, 24, Options{})
	models.finish = errors.New("no memory")
	h.m.o.ModelID = "gone"
	h.listed()
	h.typed("llama")
	h.keys("enter")
	h.wait("the end", func() bool { return h.quit })
	if err := h.m.loadErr; err == nil || !strings.Contains(err.Error(), "no memory") || !strings.Contains(err.Error(), "going back to Qwen") {
		t.Error(err)
	}
}

// While an answer is being written the model stays, and nothing is measured beside it.
func TestNoChangeDuringAnAnswer(t *testing.T) {
	h, models := picker(t, 120, 40, Options{})
	h.f.step = make(chan struct{})
	h.typed("Why?")
	h.keys("enter")
	h.keys("ctrl+o")
	h.wait("the list", func() bool { return h.m.shelving.list == nil })
	if fmt.Sprint(models.probes) != "[false]" {
		t.Errorf("probes: %v", models.probes)
	}
	h.wants("no answer is being written")
	h.typed("llama")
	h.keys("enter")
	h.wants("not now: an answer is being written")
	if h.m.state != generating || h.f.closed {
		t.Error("the model was changed")
	}
	close(h.f.step)
	h.idle()
	h.wait("the list", func() bool { return h.m.shelving.list == nil })
	h.facts()
	if fmt.Sprint(models.probes) != "[false true]" {
		t.Errorf("probes: %v", models.probes)
	}
	h.wants("filter: llama_", "0.90 to 2.3")
}

// A model of the hub is looked up first, then downloaded; Esc stops it, and Enter goes
// on.
func TestModelFromTheHub(t *testing.T) {
	h, models := picker(t, 120, 40, Options{})
	h.listed()
	models.refuse = "there is no some/one"
	h.typed("some/one:Q4_K_M")
	h.wants("of the Hugging Face Hub", "Enter asks")
	h.keys("enter")
	h.wait("the answer", func() bool { return strings.Contains(h.m.frame(), "there is no some/one") })
	models.refuse = ""
	h.keys("enter")
	h.wait("the offer", func() bool { return strings.Contains(h.m.frame(), "18.6 GB; this machine has 15.5 GB") })
	h.wants("expected here: 2.1 to 7.4 tok/s", "Enter downloads it")
	golden(t, "models-offer-120x40", h.screen())
	coming := func() {
		h.keys("enter")
		<-models.reached
		h.tick()
		h.wants("2.98 GiB of 17.3 GiB, 45.0 MiB/s, 5 min left")
	}
	coming()
	golden(t, "models-download-120x40", h.screen())
	h.keys("esc")
	h.wait("the stop", func() bool { return !h.m.models.Downloading() })
	h.wants("stopped; Enter goes on")
	coming()
	close(models.comes)
	h.wait("the end", func() bool { return !h.m.models.Downloading() && h.m.shelving.list == nil })
	h.wants("downloaded; Enter", "▶ Llama-7B", "filter: _")
}

// What cannot be changed says so.
func TestNoModels(t *testing.T) {
	h := start(t, 80, 24, Options{}, newFake())
	h.command("/models")
	h.wants(unchangeable)
	h.keys("enter", "esc")
	if h.m.views.Top() != nil {
		t.Error("the list is still open")
	}
}
