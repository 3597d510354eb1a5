package tui

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"bmoe/engine/backend"
	"bmoe/tui/term"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
)

// shelving is what is under way in the list of models.
type shelving struct {
	list, facts, hub context.CancelFunc // of what is under way; nil: nothing is
	news             *shelfNews         // what it has told
	seq              int                // of the latest list
}

// shelfNews takes what a list or a download tells, until the next tick.
type shelfNews struct {
	mu    sync.Mutex
	shelf *backend.Shelf
	down  *backend.Download
}

func (n *shelfNews) found(s backend.Shelf) {
	n.mu.Lock()
	n.shelf = &s
	n.mu.Unlock()
}

func (n *shelfNews) came(d backend.Download) {
	n.mu.Lock()
	n.down = &d
	n.mu.Unlock()
}

func (n *shelfNews) take() (s *backend.Shelf, d *backend.Download) {
	n.mu.Lock()
	defer n.mu.Unlock()
	s, d, n.shelf, n.down = n.shelf, n.down, nil, nil
	return s, d
}

// Messages about models.
type (
	shelfMsg struct {
		seq int
		err error
	}
	factsMsg struct {
		id    string
		facts []backend.Fact
		why   string
	}
	offerMsg struct {
		name  string
		offer *backend.Offer
		err   error
	}
	broughtMsg struct {
		id  string
		err error
	}
)

// What the list says while it is being made.
const (
	lookingFor = "looking for models, then measuring memory and drive for a second"
	noProbe    = "speeds are estimated anew once no answer is being written"
)

// unchangeable is why there are no models to change to.
const unchangeable = "what is open here cannot be changed for a model"

// openModels begins the list anew.
func (m *Model) openModels() tea.Cmd {
	m.models.Begin(m.o.ModelID, lookingFor)
	return m.listModels()
}

// listModels looks for models. Nothing is measured while an answer is being written:
// that would be felt in its figures.
func (m *Model) listModels() tea.Cmd {
	z := &m.shelving
	if m.o.Models == nil {
		m.models.Fail(unchangeable)
		return nil
	}
	if z.list != nil {
		z.list()
	}
	if z.news == nil {
		z.news = &shelfNews{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	z.list = cancel
	z.seq++
	models, news, seq, probe := m.o.Models, z.news, z.seq, m.state == idle
	return tea.Batch(m.wake(), func() tea.Msg {
		defer cancel()
		return shelfMsg{seq, models.List(ctx, probe, func(s backend.Shelf) {
			if ctx.Err() == nil {
				news.found(s)
			}
		})}
	})
}

// lookAtModels shows what has been told of models since the last tick.
func (m *Model) lookAtModels() {
	z := &m.shelving
	if z.news == nil {
		return
	}
	shelf, down := z.news.take()
	if shelf != nil {
		busy := ""
		switch {
		case z.list != nil && m.state == idle:
			busy = lookingFor
		case shelf.Machine == "":
			busy = noProbe
		}
		m.models.Set(*shelf, busy)
	}
	if down != nil {
		m.models.Coming(*down)
	}
	if z.list != nil || z.hub != nil {
		m.warmth = warmTick
	}
}

// onShelf ends a list.
func (m *Model) onShelf(msg shelfMsg) tea.Cmd {
	if msg.seq != m.shelving.seq {
		return nil
	}
	m.shelving.list = nil
	m.lookAtModels()
	if msg.err != nil && !errors.Is(msg.err, context.Canceled) {
		m.models.Fail(term.CleanLine(msg.err.Error()))
	}
	return m.factsOfPicked()
}

// factsOfPicked asks for what the list does not tell of the picked model; not while an
// answer is being written, in whose figures it would be felt.
func (m *Model) factsOfPicked() tea.Cmd {
	z := &m.shelving
	if m.o.Models == nil || m.views.Top() != m.models || m.state == generating {
		return nil
	}
	id := m.models.Wants()
	if id == "" {
		return nil
	}
	if z.facts != nil {
		z.facts()
	}
	ctx, cancel := context.WithCancel(context.Background())
	z.facts = cancel
	models := m.o.Models
	return func() tea.Msg {
		defer cancel()
		facts, err := models.Facts(ctx, id)
		if err != nil {
			return factsMsg{id: id, why: term.CleanLine(err.Error())}
		}
		return factsMsg{id: id, facts: facts}
	}
}

// obeyModels does what was asked for in the list of models.
func (m *Model) obeyModels() tea.Cmd {
	z := &m.shelving
	facts := m.factsOfPicked()
	w, ok := m.models.Asked()
	if !ok || m.o.Models == nil {
		return facts
	}
	switch w.Do {
	case view.OpenModel:
		return m.changeTo(w.ID, w.Name)
	case view.StopIt:
		if z.hub != nil {
			z.hub()
		}
		return nil
	}
	if z.hub != nil {
		z.hub()
	}
	ctx, cancel := context.WithCancel(context.Background())
	z.hub = cancel
	models, news := m.o.Models, z.news
	if w.Do == view.LookUp {
		return tea.Batch(m.wake(), func() tea.Msg {
			defer cancel()
			o, err := models.Offer(ctx, w.Name)
			return offerMsg{w.Name, o, err}
		})
	}
	return tea.Batch(m.wake(), func() tea.Msg {
		defer cancel()
		id, err := models.Download(ctx, w.Offer, news.came)
		return broughtMsg{id, err}
	})
}

func (m *Model) onOffer(msg offerMsg) {
	why := ""
	if msg.err != nil {
		why = term.CleanLine(msg.err.Error())
	}
	m.models.Offered(msg.name, msg.offer, why)
	if !m.models.Downloading() {
		m.shelving.hub = nil
	}
}

// onBrought ends a download.
func (m *Model) onBrought(msg broughtMsg) tea.Cmd {
	m.shelving.hub = nil
	switch {
	case errors.Is(msg.err, context.Canceled):
		m.models.Came("", "stopped; Enter goes on from where it was")
		return nil
	case msg.err != nil:
		why := term.CleanLine(msg.err.Error())
		m.models.Came("", why)
		m.chat.Note(m.now(), true, why)
		return nil
	}
	m.models.Came(msg.id, "")
	m.say(m.th.Accent, "downloaded; Enter in the list of models changes to it")
	return m.listModels()
}

// Changing the model goes in steps. What can fail is tried while the old one is open and
// the chat is saved; then it is closed, and the other opened; if that fails or is
// stopped, the old one is opened again, with its conversation and what was set by keys.

type (
	preparedMsg struct {
		to    *backend.Opening
		err   error
		saved *saveResult
	}
	changedMsg struct {
		openedMsg
		to     *backend.Opening // what is open
		failed error            // why it is the old one
		notes  []string
	}
)

// changing is a change of model that goes on.
type changing struct {
	from, to string // names
	saved    string // the name of the chat that was saved for it; empty: none was
	stop     context.CancelFunc
	stopped  bool
	under    bool // the old model has been closed
}

// changeTo begins to change the model.
func (m *Model) changeTo(id, name string) tea.Cmd {
	if m.state != idle {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return nil
	}
	z := &m.shelving
	if z.list != nil {
		z.list() // its probes would be in the way
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.state = leaving
	m.change = &changing{from: term.CleanLine(m.live.Model.Name), to: term.CleanLine(name), stop: cancel}
	models, unsaved := m.o.Models, m.unsaved()
	return tea.Batch(m.wake(), m.job(func() tea.Msg {
		to, err := models.Prepare(ctx, id)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return preparedMsg{err: err}
		}
		return preparedMsg{to: to, saved: unsaved()}
	}))
}

// onPrepared closes the old model and opens the other.
func (m *Model) onPrepared(msg preparedMsg) tea.Cmd {
	c := m.change
	if msg.saved != nil {
		m.tellSaved(*msg.saved)
		c.saved = msg.saved.out.Name
		if msg.err = msg.saved.err; msg.err != nil {
			msg.err = errors.New("the chat could not be saved; ask again to leave it")
		}
	}
	if c.stopped && msg.err == nil {
		msg.err = context.Canceled
	}
	if msg.err != nil {
		return m.stays(msg.err)
	}
	eng, saved := m.eng, m.keep.s
	var conversation *backend.Chat
	if k, ok := eng.(backend.Keeper); ok {
		chat := k.Chat()
		conversation = &chat
	}
	if m.keep.said { // what is kept of its memory is not that of now
		saved.Chat = backend.Chat{}
	}
	byKey := wishes{}
	for _, r := range m.settings {
		if r.Origin == backend.FromKey && r.Live {
			byKey[r.Name] = r.Value
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.state, m.eng, m.settings, m.load = loading, nil, nil, &loadState{}
	m.frozen, m.held = nil, nil
	m.letGo()
	m.focusLens()
	m.residents.Map = nil
	c.under, c.stop = true, cancel
	m.views.Clear()
	m.prompt.SetPlaceholder(loadingHint)
	m.layout()
	load, models, old, store, ran := m.load, m.o.Models, m.o.ModelID, m.keep.store, m.runsSoFar()
	return tea.Batch(m.wake(), m.job(func() tea.Msg {
		defer cancel()
		out := changedMsg{to: msg.to}
		load.set("closing "+c.from, -1)
		if err := eng.Close(); err != nil {
			out.notes = append(out.notes, "closing "+c.from+": "+err.Error())
		}
		next, err := msg.to.Finish(ctx, load.set)
		if err == nil && ctx.Err() != nil { // too late for it to stop by itself
			err = errors.Join(ctx.Err(), next.Close())
		}
		if err == nil {
			out.openedMsg = opened(load, next)
			return out
		}
		out.failed = err
		load.set("going back to "+c.from, -1)
		out.to, err = models.Prepare(context.Background(), old)
		if err == nil {
			next, err = out.to.Finish(context.Background(), load.set)
		}
		if err != nil {
			out.err = errors.Join(out.failed, fmt.Errorf("going back to %s: %w", c.from, err))
			return out
		}
		if n, ok := next.(numbered); ok {
			n.NumberFrom(ran)
		}
		out.notes = append(out.notes, restore(next, conversation, byKey)...)
		if k, ok := next.(backend.Keeper); ok && store != nil && saved.Chat.Messages != nil {
			if err := loadInto(store, &saved, k); err != nil {
				out.notes = append(out.notes, "the next answer reads the conversation anew: "+err.Error())
			}
		}
		out.openedMsg = opened(load, next)
		return out
	}))
}

// numbered is an engine whose runs can go on from those of another.
type numbered interface{ NumberFrom(n int) }

// restore gives an engine that was opened anew the conversation and the settings that it
// had.
func restore(b backend.Backend, c *backend.Chat, byKey wishes) (notes []string) {
	if t := tunable(b); t != nil && len(byKey) > 0 {
		for _, o := range t.Apply(byKey) {
			if o.Verdict == backend.Declined {
				notes = append(notes, outcomeText(o, t.Settings()))
			}
		}
	}
	if k, ok := b.(backend.Keeper); ok && c != nil {
		k.SetChat(*c)
	}
	return notes
}

// stays ends a change before anything was closed.
func (m *Model) stays(err error) tea.Cmd {
	c := m.change
	m.change = nil
	c.stop()
	cmd := m.settle()
	m.tellStays(c, err)
	return cmd
}

// tellStays says why the old model is the one that is open.
func (m *Model) tellStays(c *changing, err error) {
	if errors.Is(err, context.Canceled) || c.stopped {
		m.say(m.th.Accent, "stopped: "+c.from+" stays")
		return
	}
	m.chat.Note(m.now(), true, c.from+" stays: "+term.CleanLine(err.Error()))
}

// onChanged takes the model that is open now.
func (m *Model) onChanged(msg changedMsg) tea.Cmd {
	c := m.change
	m.change = nil
	if msg.err != nil {
		m.loadErr = msg.err
		return tea.Quit
	}
	if msg.failed == nil {
		m.chat.Clear()
		m.runs.Clear()
		m.o.ModelID, m.o.Model, m.o.Name = msg.to.ID, msg.to.Path, msg.to.Name
		m.keep.begin(0)
		m.dropped, m.repeatable, m.editing, m.sent = 0, false, false, outgoing{}
	} else {
		m.repeatable = false // the engine that is open has answered nothing yet
	}
	m.script = nil
	m.welcome(msg.openedMsg)
	for _, n := range msg.notes {
		m.chat.Note(m.now(), true, term.CleanLine(n))
	}
	cmd := m.settle()
	if msg.failed != nil {
		m.tellStays(c, msg.failed)
	} else if m.status == "" {
		text := "this is a new chat"
		if c.saved != "" {
			text += fmt.Sprintf("; that with %s is saved as %q", c.from, c.saved)
		}
		m.say(m.th.Accent, term.CleanLine(text))
	}
	m.layout()
	return cmd
}

// goBack stops a change of model; false: there is none to stop.
func (m *Model) goBack() bool {
	c := m.change
	if c == nil || c.stopped {
		return c != nil
	}
	c.stopped = true
	c.stop()
	return true
}

// changeLine is what the line above the footer says while the model changes.
func (m *Model) changeLine() string {
	th, c := m.th, m.change
	parts := []term.Part{th.Text(0, th.Accent, " opening "+th.Cut(th.Shown(c.to), m.w/3))}
	if c.stopped {
		parts = []term.Part{th.Text(0, th.Read, " going back to "+th.Cut(th.Shown(c.from), m.w/2))}
	}
	stage, frac := m.load.get()
	if stage != "" && c.under {
		parts = append(parts, th.Text(1, "", term.CleanLine(stage)))
		if frac >= 0 {
			bar := th.Bar(min(frac, 1), 20, th.Compute)
			bar.Rank = 2
			parts = append(parts, bar)
		}
	}
	if !c.stopped {
		parts = append(parts, th.Text(0, th.Bold, "Esc goes back"))
	}
	return th.Row(m.w, 2, slices.DeleteFunc(parts, func(p term.Part) bool { return p.W == 0 })...)
}
