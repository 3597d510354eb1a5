package tui

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/clock"
	"bmoe/internal/crash"
	"bmoe/profile"
	"bmoe/tui/term"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
)

// deltaBuffer takes text from the goroutine that generates and hands it to the
// screen at the next tick. It is short work under a lock: the engine never
// waits for a frame.
type deltaBuffer struct {
	mu         sync.Mutex
	said       []said
	first      int64 // when the first text came, clock.Now; 0: not yet
	start, end int64 // of the reasoning; 0: not yet
}

// said is what a token said.
type said struct {
	text, reasoning string
	run, step       int  // of the token; 0: not known, or it said nothing new
	turned          bool // all text before was a thought
}

func (d *deltaBuffer) add(x backend.Delta) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := said{text: x.Text, reasoning: x.Reasoning, turned: x.WasThought}
	switch {
	case x.Record != nil:
		s.run, s.step = x.Record.Run, x.Record.Step
	case x.Token >= 0:
		s.step = 1
	}
	if x.WasThought {
		d.start, d.end = d.first, 0
	}
	if x.Reasoning != "" && d.start == 0 {
		d.start = clock.Now()
	}
	if x.Text != "" {
		if d.start != 0 && d.end == 0 {
			d.end = clock.Now()
		}
		if d.first == 0 {
			d.first = clock.Now()
		}
	}
	d.said = append(d.said, s)
}

// take returns what came since the last call, how long the reasoning has lasted, and
// whether it goes on.
func (d *deltaBuffer) take() (all []said, thought int64, thinking bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all, d.said = d.said, nil
	switch {
	case d.end != 0:
		thought = d.end - d.start
	case d.start != 0:
		thought, thinking = clock.Now()-d.start, true
	}
	return all, thought, thinking
}

// drain moves what the engine has said so far into the transcript.
func (m *Model) drain() {
	m.takeLegs()
	m.drainBuffer()
}

func (m *Model) drainBuffer() {
	if m.answer == nil || m.deltas == nil {
		return
	}
	all, thought, thinking := m.deltas.take()
	for i := range all {
		s := &all[i]
		if s.turned {
			m.answer.TextWasThought()
		}
		m.answer.AddReasoning(s.reasoning)
		m.answer.AddText(s.text)
		if s.step > 0 {
			m.answer.Said(s.step)
		}
		if s.run > 0 {
			m.answer.Run = s.run
		}
	}
	m.answer.SetThought(thought, thinking)
}

// submit sends what was typed, now or as soon as the engine has nothing else to do.
func (m *Model) submit(text string) tea.Cmd {
	o := outgoing{text: text, files: m.files, edits: m.editing}
	m.files, m.editing = nil, false
	if m.state == idle {
		return m.send(o)
	}
	if m.queued != nil {
		m.takeBack(&o)
		m.say(m.th.Read, "one message is waiting already; Esc takes it back")
		return nil
	}
	m.queued = &o
	return nil
}

// send starts a generation.
func (m *Model) send(o outgoing) tea.Cmd {
	if o.edits {
		m.chat.Note(m.now(), false, inPlace)
	}
	if o.again {
		m.chat.ToEnd()
	} else {
		m.chat.Ask(m.now(), o.shown())
	}
	eng, tag := m.eng, ""
	if o.again {
		tag = "anew"
	}
	m.sent = o
	return m.run(&o, tag, func(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
		return o.generate(ctx, eng, onDelta)
	})
}

// again repeats the last prompt.
func (m *Model) again() tea.Cmd {
	if m.state == applying && m.repeatable {
		m.queuedAgain = true
		return nil
	}
	if m.state != idle {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return nil
	}
	if !m.repeatable {
		m.say(m.th.Read, "nothing to repeat yet")
		return nil
	}
	m.chat.ToEnd()
	if old, now, ok := m.runs.Missing(backend.Values(m.settings)); ok {
		if eng, can := m.eng.(ab.Engine); can {
			return m.againPair(eng, old, now)
		}
	}
	return m.run(nil, again, m.eng.Again)
}

// busyWith says why something has to wait.
func (m *Model) busyWith() string {
	switch m.state {
	case loading:
		return "the model is loading"
	case generating:
		return "an answer is being written; Esc stops it"
	case applying:
		return "settings are being changed"
	case saving:
		return "the session is being saved or taken up"
	case leaving:
		return "another model is being opened; Esc goes back"
	}
	return "idle"
}

// again tags an answer that repeats one.
const again = "again"

// run starts the engine on an answer: to a message, or, where that is nil, to one that
// was answered before.
func (m *Model) run(o *outgoing, tag string, f func(context.Context, func(backend.Delta)) (*backend.Run, error)) tea.Cmd {
	ctx, cancel := context.WithCancel(context.Background())
	m.stop, m.stopping, m.state, m.status = cancel, false, generating, ""
	m.deltas = &deltaBuffer{}
	m.keep.said = true
	m.answer = m.chat.Answer(m.now(), tag)
	buf, eng := m.deltas, m.eng
	return tea.Batch(m.wake(), m.job(func() tea.Msg {
		defer cancel()
		r, err := f(ctx, buf.add)
		var s profile.Snapshot
		eng.Snapshot(&s)
		return doneMsg{run: r, err: err, sent: o, done: s.PromptDone, used: s.CtxUsed, ctx: s.Ctx}
	}))
}

// halt stops the generation that runs.
func (m *Model) halt() {
	if m.state == generating && !m.stopping {
		m.stopping = true
		m.stop()
	}
}

// onDone takes a finished, stopped or failed generation.
func (m *Model) onDone(msg doneMsg) tea.Cmd {
	m.drain()
	m.legs = nil
	m.answer.Finish()
	err := failure(msg.run, msg.err)
	stopped := m.stopping || errors.Is(err, context.Canceled)
	if stopped {
		m.script = nil // who stops a recording does not want the rest of it
	}
	m.stop, m.deltas = nil, nil
	m.status = "" // what it said was of the run
	if msg.run != nil {
		m.closeAnswer(msg.run, msg.done)
		if line := m.runs.Latest(); line != "" && msg.sent == nil {
			m.chat.Note(m.now(), false, line)
		}
	}
	switch {
	case stopped && msg.run != nil && view.StoppedEarly(msg.run): // its summary said so
	case stopped:
		m.chat.Note(m.now(), false, "stopped")
	case err != nil:
		m.chat.Note(m.now(), true, "failed: "+term.CleanLine(backend.Mention(err.Error(), m.settings, backend.AsCommand)))
		if msg.run == nil && msg.sent != nil && !msg.sent.again && m.prompt.Value() == "" {
			m.takeBack(msg.sent) // refused: nothing typed is lost
		}
	}
	if msg.run == nil {
		m.chat.DropEmpty(m.answer)
	}
	m.answer = nil
	m.nearlyFull(msg.used, msg.ctx)
	cmd := m.settle()
	if m.views.Top() == m.models && m.state == idle { // now it can be measured
		return tea.Batch(cmd, m.listModels())
	}
	return cmd
}

// failure is what went wrong: before anything could be generated, or part way.
func failure(r *backend.Run, err error) error {
	if err == nil && r != nil {
		return r.Err
	}
	return err
}

// apply passes the wishes that wait to the engine.
func (m *Model) apply() tea.Cmd {
	ws := m.want
	m.inHand, m.want = ws, wishes{}
	m.state = applying
	t := tunable(m.eng)
	return m.job(func() tea.Msg { return appliedMsg{t.Apply(ws), t.Settings()} })
}

func (m *Model) onApplied(msg appliedMsg) tea.Cmd {
	m.settings, m.inHand, m.status = msg.rows, nil, ""
	for _, o := range msg.outcomes {
		m.noteOutcome(o)
	}
	return m.settle()
}

// shutDown stops what runs and closes the engine, after the terminal has been
// given back. A load that is still going on is left to end with the process.
func (m *Model) shutDown() error {
	if m.stop != nil {
		m.stop()
	}
	if m.change != nil {
		m.change.stop()
	}
	m.load.mu.Lock()
	eng := m.load.eng
	m.load.mu.Unlock()
	m.keep.prompts.close(promptPatience)
	if eng == nil {
		return m.loadErr
	}
	if !m.jobs.close(stopPatience) {
		return fmt.Errorf("the engine did not stop within %v", stopPatience)
	}
	line, err := m.keepOnLeaving()
	if line != "" {
		writeLines(m.o.Output, []string{line})
	}
	if cerr := eng.Close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("closing: %w", cerr))
	}
	return err
}

// job is a command that uses the engine.
func (m *Model) job(f func() tea.Msg) tea.Cmd {
	jobs := &m.jobs
	return func() tea.Msg {
		if !jobs.enter() {
			return nil
		}
		defer jobs.leave()
		return guarded("engine", f)()
	}
}

// guarded is a command, or the commands that it comes to, a panic in which ends
// the program in good order: the terminal is given back first.
func guarded(where string, f tea.Cmd) tea.Cmd {
	if f == nil {
		return nil
	}
	return func() (msg tea.Msg) {
		defer func() {
			if v := recover(); v != nil {
				msg = panicMsg{PanicError{crash.New(where, v, debug.Stack())}}
			}
		}()
		msg = f()
		if batch, ok := msg.(tea.BatchMsg); ok {
			for i := range batch {
				batch[i] = guarded(where, batch[i])
			}
		}
		return msg
	}
}

// gate counts the engine's jobs, so that the engine is closed after the last
// of them and none begins later.
type gate struct {
	mu     sync.Mutex
	shut   bool
	inside int
	empty  chan struct{} // closed when shut and nobody is inside
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.shut && g.inside == 0 {
		close(g.empty)
	}
}

// close lets nobody in any more and waits for those inside.
func (g *gate) close(patience time.Duration) bool {
	g.mu.Lock()
	g.shut = true
	g.empty = make(chan struct{})
	if g.inside == 0 {
		close(g.empty)
	}
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
		return true
	case <-time.After(patience):
		return false
	}
}
