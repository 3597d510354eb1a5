package tui

import (
	"context"
	"fmt"
	"sync"
	"time"

	"bmoe/engine/backend"
	"bmoe/internal/sessions"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/chat"
	"bmoe/tui/pane"
	"bmoe/tui/term"
	"bmoe/tui/view"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// state is what the program is doing. Only one thing happens at a time: the
// engine generates, or changes its settings, or waits.
type state uint8

const (
	loading state = iota
	idle
	generating
	applying // settings are being changed
	saving   // the session is being saved, or another is taken up
	leaving  // another model is being looked at, to change to it
)

// focus is where keys go.
type focus uint8

const (
	onPrompt focus = iota
	onPanes
)

// Model is the root of the screen: everything that Update changes and View
// draws.
type Model struct {
	o    Options
	term term.Caps
	th   *term.Theme
	now  func() time.Time                                     // of day; tests hold it
	tock func(time.Duration, func(time.Time) tea.Msg) tea.Cmd // tea.Tick; tests say themselves when time passes

	table []keyRow // of keys and commands

	w, h   int
	state  state
	focus  focus
	picked int // pane

	eng      backend.Backend   // nil until it is open
	settings []backend.Setting // its rows; nil until then
	load     *loadState
	jobs     gate // what uses the engine

	loadErr     error // why the program ends by itself
	interrupted bool
	panicked    *PanicError
	suspend     func() // stops the program; nil where there is no terminal

	stop        context.CancelFunc // these are of the generation that runs
	deltas      *deltaBuffer
	answer      *chat.Block
	legs        *legFeed // of a pair of runs; else nil
	stopping    bool
	queued      *outgoing    // a message that waits until the engine has nothing else to do
	sent        outgoing     // the last one that the model was given
	files       []attachment // that go with the next
	editing     bool         // the next takes the place of the last
	completing  completing
	toldFull    bool // that the context fills up
	queuedAgain bool // so was ^G
	repeatable  bool // there is a prompt to repeat
	dropped     int  // turns that no longer fit the context, as last told
	keep        keeping
	queuedSave  *string // a save under a name, asked for while the engine was at work

	want   wishes // that wait
	inHand wishes // being applied
	notes  map[string]settingNote

	live      *profile.Snapshot // the latest
	frozen    *profile.Snapshot // what the panes show while they are held still
	held      *profile.Snapshot // what they showed when they were, if moved since
	scrubbing scrubbing
	finding   finding
	script    []string          // questions of a recording that are still to be played
	spare     *profile.Snapshot // to be filled next
	tickSeq   int
	warmth    int // ticks to go before the ticker slows down

	chat       *chat.Transcript
	prompt     *chat.Prompt
	promptRows []string // the prompt as last drawn; nil when it must be redrawn
	panes      []pane.Pane
	rows       []int    // of each pane
	laidOut    geometry // what the sizes were given for
	column     []string // the panes as last drawn; nil when they must be redrawn
	runs       *view.Runs
	sessions   *view.Sessions
	residents  *view.Residents // what the views of experts and layers draw
	spareMap   *profile.ExpertMap
	models     *view.Models
	shelving   shelving
	change     *changing // of the model; nil: none goes on
	rowsPage   *view.Settings
	pages      map[string]view.View // by the name of their kind
	views      view.Stack           // over the chat and the panes

	status      string
	statusStyle term.Style
	statusUntil time.Time
	armed       time.Time // Ctrl+C was pressed once, until then
}

func newModel(o Options, caps term.Caps) *Model {
	caps.ASCII = caps.ASCII || o.ASCII
	m := &Model{
		o: o, term: caps, now: time.Now, tock: tea.Tick, load: &loadState{}, live: &profile.Snapshot{Phase: profile.Loading},
		want: wishes{}, notes: map[string]settingNote{}, scrubbing: scrubbing{at: -1, zoom: 1},
	}
	m.table, _ = o.Keys.table() // checked before
	look, _ := term.LookOf(o.Theme, true)
	m.th = term.NewTheme(look, caps.ASCII)
	m.th.ASCIIText, m.th.NoColor = caps.NotUTF8, caps.NoColor
	m.chat = chat.NewTranscript(m.th)
	m.prompt = chat.NewPrompt()
	m.prompt.SetPlaceholder(loadingHint)
	m.panes = pane.New(m.th, m.sayKeys)
	m.runs = view.NewRuns(m.th, m.cap(actAgain))
	m.sessions = view.NewSessions(m.th)
	m.rowsPage = view.NewSettings(m.th, m.settingRows)
	m.models = view.NewModels(m.th)
	m.residents = &view.Residents{}
	m.keep.store = o.Sessions
	m.pages = map[string]view.View{}
	for _, k := range view.Kinds {
		m.pages[k.Name] = k.New(view.Source{Theme: m.th, Runs: m.runs, Sessions: m.sessions, Settings: m.rowsPage, Models: m.models, Residents: m.residents, Keys: m.helpLines})
	}
	return m
}

// Init starts loading and the ticker.
func (m *Model) Init() tea.Cmd {
	cmds := []tea.Cmd{m.open(), m.tick(), m.earlierPrompts()}
	if !m.term.NoColor && !m.term.ASCII { // the others might print the question
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return guarded("screen", tea.Batch(cmds...))
}

// Messages of our own.
type (
	tickMsg struct {
		seq     int
		snap    *profile.Snapshot  // nil while there is no engine
		experts *profile.ExpertMap // nil unless a view shows it
	}
	openedMsg struct {
		eng  backend.Backend
		rows []backend.Setting
		s    *profile.Snapshot
		err  error
	}
	doneMsg struct {
		run  *backend.Run
		err  error
		sent *outgoing // nil: what was sent before was answered again
		done int       // prompt tokens prefilled

		used, ctx int // of the context
	}
	appliedMsg struct {
		outcomes []backend.Outcome
		rows     []backend.Setting
	}
	newChatMsg struct{ saved *saveResult }
	savedMsg   saveResult
	takenUpMsg struct {
		saved *saveResult // of the chat before it
		s     *sessions.Session
		notes []string
		err   error
	}
	listedMsg struct {
		all   []*sessions.Session
		notes []string
		err   error
	}
	toldMsg struct { // what became of a command
		text string
		warn bool
	}
	fileMsg struct {
		a   attachment
		err error
	}
	promptsMsg struct {
		all []string
		err error
	}
	promptLostMsg struct{ err error }
	interruptMsg  struct{}
	panicMsg      struct{ PanicError }
	// resumedMsg comes after the program was stopped, or could not be.
	resumedMsg struct {
		stopped bool // the terminal was given back
		told    bool // but nobody could have resumed the program, so it went on
	}
)

// Update takes one message. It does no input or output and computes nothing
// that grows with the session.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	return m, guarded("screen", m.update(msg))
}

func (m *Model) update(msg tea.Msg) tea.Cmd {
	if _, tick := msg.(tickMsg); !tick {
		m.promptRows = nil // time alone does not change the prompt
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.w, m.h = msg.Width, msg.Height
		m.layout()
	case tea.BackgroundColorMsg:
		m.retheme(msg.IsDark())
	case tea.ModeReportMsg:
		// The renderer measures characters by clusters once the terminal says
		// that it does so too; the wrapping has to agree with it.
		if msg.Mode == ansi.ModeUnicodeCore && (msg.Value == ansi.ModeReset || msg.Value == ansi.ModeSet || msg.Value == ansi.ModePermanentlySet) {
			m.th.Method = ansi.GraphemeWidth
			m.chat.Rewrap()
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case tea.PasteMsg:
		m.paste(msg.Content)
	case tea.MouseWheelMsg:
		m.wheel(msg)
		return m.factsOfPicked()
	case tea.MouseClickMsg:
		return m.click(msg)
	case tickMsg:
		return m.onTick(msg)
	case openedMsg:
		return m.onOpened(msg)
	case doneMsg:
		return m.onDone(msg)
	case appliedMsg:
		return m.onApplied(msg)
	case interruptMsg:
		m.interrupted = true
		return tea.Quit
	case panicMsg:
		m.panicked = &msg.PanicError
		return tea.Quit
	case resumedMsg:
		return m.resumed(msg)
	case tea.FocusMsg: // what was drawn over it meanwhile nobody knows
		return tea.ClearScreen
	case tea.BlurMsg:
	case newChatMsg:
		return m.onNewChat(msg)
	case savedMsg:
		return m.onSaved(saveResult(msg))
	case takenUpMsg:
		return m.onTakenUp(msg)
	case listedMsg:
		m.onListed(msg)
	case fileMsg:
		m.onFile(msg)
	case promptsMsg:
		if m.prompt.Remember(msg.all); msg.err != nil {
			m.chat.Note(m.now(), true, term.CleanLine(msg.err.Error()))
		}
	case promptLostMsg:
		if !m.keep.promptLost {
			m.keep.promptLost = true
			m.say(m.th.Read, term.CleanLine(msg.err.Error()))
		}
	case shelfMsg:
		return m.onShelf(msg)
	case factsMsg:
		m.models.Tell(msg.id, msg.facts, msg.why)
	case offerMsg:
		m.onOffer(msg)
	case broughtMsg:
		return m.onBrought(msg)
	case preparedMsg:
		return m.onPrepared(msg)
	case changedMsg:
		return m.onChanged(msg)
	case toldMsg:
		st := m.th.Accent
		if msg.warn {
			st = m.th.Read
		}
		m.say(st, term.CleanLine(msg.text))
	default:
		if m.focus == onPrompt { // what the prompt asked for itself, such as the clipboard
			return m.updatePrompt(msg)
		}
	}
	return nil
}

// retheme changes the colours once the terminal has told its background, where they
// follow it.
func (m *Model) retheme(dark bool) {
	look, asks := term.LookOf(m.o.Theme, dark)
	if !asks {
		return
	}
	th := term.NewTheme(look, m.term.ASCII)
	th.ASCIIText, th.NoColor, th.Method = m.th.ASCIIText, m.th.NoColor, m.th.Method
	*m.th = *th
	m.column = nil
}

// say shows a line above the footer for a while.
func (m *Model) say(st term.Style, text string) {
	m.status, m.statusStyle, m.statusUntil = text, st, m.now().Add(6*time.Second)
}

// open loads the engine beside the screen.
func (m *Model) open() tea.Cmd {
	load, openEngine := m.load, m.o.Open
	return m.job(func() tea.Msg {
		eng, err := openEngine(load.set)
		if err != nil {
			return openedMsg{err: err}
		}
		return opened(load, eng)
	})
}

// opened notes that an engine is open, and looks at it.
func opened(load *loadState, eng backend.Backend) openedMsg {
	load.opened(eng)
	s := new(profile.Snapshot)
	eng.Snapshot(s)
	return openedMsg{eng: eng, rows: rowsOf(eng), s: s}
}

func (m *Model) onOpened(msg openedMsg) tea.Cmd {
	if msg.err != nil {
		m.loadErr = msg.err
		return tea.Quit
	}
	m.welcome(msg)
	if m.o.Resume != nil {
		m.state = idle
		return m.takeUp(*m.o.Resume)
	}
	return m.settle()
}

// welcome makes an engine that has been opened the one that is asked.
func (m *Model) welcome(msg openedMsg) {
	m.eng, m.settings, m.status = msg.eng, msg.rows, ""
	m.take(msg.s)
	for _, w := range m.eng.Warnings() {
		m.chat.Note(m.now(), true, backend.Mention(w, m.settings, backend.AsCommand))
	}
	m.prompt.SetPlaceholder(askSomething)
	m.chat.Hint = askFor
	if backend.Find(m.settings, "lanes") == nil {
		m.chat.Hint = askServer
	}
	if p, ok := m.eng.(backend.Played); ok {
		m.script = p.Prompts()
	}
}

// settle is where the engine has nothing to do: wishes first, then a prompt
// that waits.
func (m *Model) settle() tea.Cmd {
	m.state = idle
	if len(m.want) > 0 {
		return tea.Batch(m.apply(), m.wake())
	}
	if name := m.queuedSave; name != nil {
		m.queuedSave = nil
		return m.save(*name)
	}
	if m.queuedAgain {
		m.queuedAgain = false
		return m.again()
	}
	if o := m.queued; o != nil {
		m.queued = nil
		return m.send(*o)
	}
	if text, ok := m.playOn(); ok {
		return m.send(outgoing{text: text})
	}
	return m.wake()
}

// The ticker runs fast while something moves and slowly when not.
const (
	fastTick = time.Second / 10
	slowTick = time.Second
	warmTick = 10 // fast ticks after the last change, so that rates settle
)

// tick takes the next snapshot, away from the goroutine that draws.
func (m *Model) tick() tea.Cmd {
	d := fastTick
	if m.state == idle && m.warmth <= 0 {
		d = slowTick
	}
	seq, eng, s, experts := m.tickSeq, m.eng, m.spare, m.spareMap
	m.spare, m.spareMap = nil, nil
	if experts == nil {
		experts = &profile.ExpertMap{}
	}
	if !m.mapShown() {
		m.spareMap, experts = experts, nil
	}
	if s == nil {
		s = new(profile.Snapshot)
	}
	sample := m.job(func() tea.Msg {
		if eng == nil {
			return tickMsg{seq: seq}
		}
		eng.Snapshot(s)
		return tickMsg{seq, s, look(eng, experts)}
	})
	return m.tock(d, func(time.Time) tea.Msg { return sample() })
}

// wake makes the ticker fast at once.
func (m *Model) wake() tea.Cmd {
	m.warmth = warmTick
	m.tickSeq++
	return m.tick()
}

func (m *Model) onTick(msg tickMsg) tea.Cmd {
	if msg.seq != m.tickSeq {
		if msg.snap != nil {
			m.spare = msg.snap
		}
		return nil
	}
	if msg.experts != nil {
		m.takeMap(msg.experts)
	}
	if msg.snap != nil {
		m.take(msg.snap)
	}
	m.drain()
	m.notice()
	m.lookAtModels()
	if m.state == idle {
		m.warmth--
	} else {
		m.warmth = warmTick
	}
	return m.tick()
}

// notice shows what has come in by Options.Notices.
func (m *Model) notice() {
	for {
		select {
		case text := <-m.o.Notices:
			m.chat.Note(m.now(), true, term.CleanLine(text))
		default:
			return
		}
	}
}

// take makes a snapshot the latest.
func (m *Model) take(s *profile.Snapshot) {
	before := m.live
	m.live = s
	if s.Count < before.Count { // another engine answers, or a recording is played once more
		m.frozen, m.held = nil, nil
		m.letGo()
	}
	if m.frozen == nil && m.scrubbing.zoom > 1 && s.Count != before.Count {
		m.focusLens()
	}
	if m.frozen == nil {
		m.show(s)
	}
	if before != m.frozen && before != m.held {
		m.spare = before
	}
	if n := s.DroppedTurns; n > m.dropped && m.answer != nil {
		m.chat.NoteBefore(m.answer, m.now(), droppedText(n-m.dropped))
	}
	m.dropped = s.DroppedTurns
}

// droppedText says that a conversation no longer fits.
func droppedText(turns int) string {
	return fmt.Sprintf("the context is full: the oldest %s dropped", units.Plural(int64(turns), "turn"))
}

// show makes the panes draw a snapshot.
func (m *Model) show(s *profile.Snapshot) {
	m.residents.Snapshot = s
	of := m.outdated()
	for _, p := range m.panes {
		p.Apply(s, of)
	}
	m.column = nil
	if m.w > 0 && !m.tooSmall() && m.views.Top() == nil {
		m.sharePanes() // a pane may want more or fewer rows than before
	}
}

// outdated returns the number of the last run if settings have changed since,
// so that its figures are not those of the settings shown; else 0.
func (m *Model) outdated() int {
	last := m.runs.Last()
	if last == nil || m.state == generating || len(backend.Differences(last.Settings, backend.Values(m.settings))) == 0 {
		return 0
	}
	return last.N
}

func (m *Model) freeze() {
	if m.frozen == nil {
		m.frozen = m.live
		if m.eng != nil { // a copy of some microseconds, so that it is of this moment
			m.residents.Map = look(m.eng, &profile.ExpertMap{})
		}
	} else {
		m.frozen, m.held = nil, nil
		m.letGo()
		m.show(m.live)
	}
	m.column = nil
}

// loadState carries the progress of loading from its goroutine.
type loadState struct {
	mu    sync.Mutex
	stage string
	frac  float64
	eng   backend.Backend
}

func (l *loadState) set(stage string, frac float64) {
	l.mu.Lock()
	l.stage, l.frac = stage, frac
	l.mu.Unlock()
}

func (l *loadState) opened(e backend.Backend) {
	l.mu.Lock()
	l.eng = e
	l.mu.Unlock()
}

func (l *loadState) get() (string, float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stage, l.frac
}
