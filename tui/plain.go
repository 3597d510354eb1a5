package tui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/crash"
	"bmoe/internal/sessions"
	"bmoe/internal/tty"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
	"bmoe/tui/view"

	xterm "github.com/charmbracelet/x/term"
)

// plainChat is the line by line chat: it only ever writes at the end, so that
// a screen reader can follow, and moves no cursor.
type plainChat struct {
	o    Options
	th   *term.Theme
	eng  backend.Backend
	out  *bufio.Writer
	runs *view.Runs

	width   func() int // columns to break lines at, or 0
	fold    term.Folder
	notes   io.Writer // what is told beside an answer, see note
	noting  sync.Mutex
	keep    keeping
	said    []sessions.Entry // the chat so far
	dropped int              // turns that no longer fit the context, as last told
	sent    outgoing         // the last message
	files   []attachment     // that go with the next
}

// runPlain chats without a screen until the input ends or /quit.
func runPlain(ctx context.Context, o Options) error {
	th := &term.Theme{G: term.ASCIIGlyphs, ASCIIText: term.Detect(o.Environ).NotUTF8}
	p := &plainChat{o: o, th: th, out: bufio.NewWriter(o.Output), runs: view.NewRuns(th, "/again"),
		width: columnsOf(o.Output), notes: o.Errors}
	p.write("loading " + term.CleanLine(o.Name))
	if err := p.flush(); err != nil {
		return err
	}
	eng, err := o.Open(p.progress())
	p.say("")
	if err != nil {
		return err
	}
	p.eng, p.keep.store = eng, o.Sessions
	if o.Resume != nil {
		p.takeUp(*o.Resume)
	}
	err = p.chat(ctx)
	if p.keep.due() { // whatever ended it
		err = errors.Join(err, p.save(""), p.flush())
	}
	if cerr := eng.Close(); cerr != nil {
		err = errors.Join(err, fmt.Errorf("closing: %w", cerr))
	}
	return err
}

// progress names each stage of loading once, all on one line.
func (p *plainChat) progress() func(string, float64) {
	var mu sync.Mutex
	last, mark := "", ": "
	return func(stage string, _ float64) {
		mu.Lock()
		defer mu.Unlock()
		if stage != last && stage != "" {
			p.write(mark + term.CleanLine(stage))
			last, mark = stage, ", "
			p.out.Flush() // a write that fails shows at the prompt
		}
	}
}

// columnsOf returns a function that tells how wide a terminal is now. Lines that
// do not go to one are not broken.
func columnsOf(w io.Writer) func() int {
	f, ok := w.(*os.File)
	if !ok || !tty.Is(f) {
		return func() int { return 0 }
	}
	return func() int {
		columns, _, err := xterm.GetSize(f.Fd())
		if err != nil {
			return 0 // the terminal breaks the lines then
		}
		return columns
	}
}

// write writes text up to its last word's end; stream leaves that to what follows.
func (p *plainChat) write(s string) {
	p.stream(s)
	var b strings.Builder
	p.fold.Flush(&b)
	p.out.WriteString(b.String())
}

func (p *plainChat) stream(s string) {
	p.fold.Width = p.width()
	var b strings.Builder
	p.fold.Write(&b, p.th.Shown(s))
	p.out.WriteString(b.String())
}

func (p *plainChat) say(s string) { p.write(s + "\n") }

// chat is the loop: a line in, an answer out.
func (p *plainChat) chat(ctx context.Context) error {
	var s profile.Snapshot
	p.eng.Snapshot(&s)
	what := fmt.Sprintf("%s, %s, %s", term.CleanLine(s.Model.Name), term.CleanLine(s.Model.Arch), units.Size(s.Model.FileBytes))
	if by := p.eng.Info().Engine; by != "" {
		what = term.CleanLine(s.Model.Name + " on " + by)
	}
	p.say(what + ". /help lists the commands; a line ending in a backslash goes on.")
	if s.Simulated {
		p.say("SIMULATED host: figures are not measurements of this machine.")
	}
	if s.Lossy {
		p.say("LOSSY: settings change what the model says.")
	}
	if s.Traced {
		p.say("TRACED: what is written down takes time; figures are not a benchmark's.")
	}
	rows := rowsOf(p.eng)
	for _, w := range p.eng.Warnings() {
		p.say("warning: " + term.CleanLine(backend.Mention(w, rows, backend.AsCommand)))
	}
	lines := readLines(p.o.Input)
	if r, ok := p.eng.(backend.Played); ok {
		for _, msg := range r.Prompts() {
			p.say("you: " + term.CleanLine(msg))
			p.ask(ctx, outgoing{text: msg})
			if ctx.Err() != nil {
				return ErrInterrupted
			}
		}
	}
	for {
		p.out.WriteString("you: ")
		if err := p.flush(); err != nil {
			return err
		}
		text, err := p.message(ctx, lines)
		p.fold.Begin() // what was typed ended a line
		switch {
		case err == io.EOF:
			p.say("")
			return p.flush()
		case err != nil:
			return err
		}
		msg, cmd, arg := parsePrompt(text)
		switch {
		case cmd == "quit":
			return p.flush()
		case cmd != "":
			p.command(ctx, cmd, arg)
		case msg != "":
			p.ask(ctx, outgoing{text: msg, files: p.files})
		}
		if ctx.Err() != nil {
			return ErrInterrupted
		}
	}
}

// ask sends a message and shows the answer.
func (p *plainChat) ask(ctx context.Context, o outgoing) {
	if o.edits {
		p.heard(sessions.FromUs, inPlace, "")
	}
	if !o.again {
		p.heard(sessions.FromUser, o.shown(), "")
		p.files = nil
	}
	p.sent = o
	p.answer(ctx, false, func(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
		return o.generate(ctx, p.eng, onDelta)
	})
}

func (p *plainChat) flush() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

type inputLine struct {
	text string
	err  error
}

// readLines reads lines beside the loop, so that a signal can end the wait.
func readLines(r io.Reader) <-chan inputLine {
	ch := make(chan inputLine)
	go func() {
		defer crash.Catch("reading")
		in := bufio.NewReader(r)
		for {
			s, err := in.ReadString('\n')
			if s != "" {
				ch <- inputLine{text: strings.TrimRight(s, "\r\n")}
			}
			if err != nil {
				ch <- inputLine{err: err}
				return
			}
		}
	}()
	return ch
}

// message joins lines that end in a backslash.
func (p *plainChat) message(ctx context.Context, lines <-chan inputLine) (string, error) {
	var parts []string
	for {
		select {
		case <-ctx.Done():
			return "", ErrInterrupted
		case text := <-p.o.Notices:
			p.say("[" + term.CleanLine(text) + "]")
			if err := p.flush(); err != nil {
				return "", err
			}
		case l := <-lines:
			if l.err == io.EOF {
				return "", io.EOF
			}
			if l.err != nil {
				return "", fmt.Errorf("reading the prompt: %w", l.err)
			}
			if s, more := strings.CutSuffix(l.text, "\\"); more {
				parts = append(parts, s)
				continue
			}
			return strings.Join(append(parts, l.text), "\n"), nil
		}
	}
}

// answer runs the engine and writes as the text comes. Ctrl+C stops the
// answer, not the program.
func (p *plainChat) answer(ctx context.Context, again bool, f func(context.Context, func(backend.Delta)) (*backend.Run, error)) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	told := p.tellNotices()
	w := p.begin()
	run, err := f(ctx, w.delta)
	w.open()
	told()
	p.finish(run, err, again)
}

// note writes a line beside the answer. It may be called on any goroutine.
func (p *plainChat) note(line string) {
	p.noting.Lock()
	defer p.noting.Unlock()
	fmt.Fprintln(p.notes, line)
}

// tellNotices tells what comes in by Options.Notices while an answer is under way,
// until the function that it returns is called.
func (p *plainChat) tellNotices() (stop func()) {
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer crash.Catch("notices")
		defer close(gone)
		for {
			select {
			case <-over:
				return
			case text := <-p.o.Notices:
				p.note("\n[" + term.CleanLine(text) + "]")
			}
		}
	}()
	return func() {
		close(over)
		<-gone
	}
}

// finish tells how an answer ended, and of one given again how it compares.
func (p *plainChat) finish(run *backend.Run, err error, again bool) {
	p.say("")
	p.ended(run)
	if run != nil && again {
		if v := p.runs.Latest(); v != "" {
			p.say("[" + v + "]")
		}
	}
	switch err = failure(run, err); {
	case errors.Is(err, context.Canceled):
		p.say("[stopped]")
	case err != nil:
		p.say("[failed: " + term.CleanLine(backend.Mention(err.Error(), rowsOf(p.eng), backend.AsCommand)) + "]")
	}
}

// ended tells what a run cost.
func (p *plainChat) ended(run *backend.Run) {
	var s profile.Snapshot
	p.eng.Snapshot(&s)
	if n := s.DroppedTurns - p.dropped; n > 0 {
		p.say("[" + droppedText(n) + "]")
	}
	p.dropped = s.DroppedTurns
	if run == nil {
		return
	}
	p.runs.Take(run, s.PromptDone)
	p.heard(sessions.FromModel, term.Clean(run.Result.Text), term.Clean(run.Result.Reasoning))
	p.say(fmt.Sprintf("[run %d: %s]", run.N, p.runs.Summary(run)))
}

// plainAnswer writes an answer as its text comes.
type plainAnswer struct {
	p                 *plainChat
	c, rc             term.Cleaner
	b                 strings.Builder
	reasoning, column bool
	// open ends the notes of how far reading the prompt is, and begins the answer's
	// line. Only the first call does something.
	open func()
}

func (p *plainChat) begin() *plainAnswer {
	var due profile.PrefillNotes
	stopNotes := WatchPrefill(p.eng.Snapshot, func(s *profile.Snapshot) {
		if due.Due(s) {
			p.note("reading the prompt: " + s.PrefillText())
		}
	})
	return &plainAnswer{p: p, open: sync.OnceFunc(func() {
		stopNotes()
		p.stream("bmoe: ")
	})}
}

func (w *plainAnswer) delta(d backend.Delta) {
	w.open()
	w.b.Reset()
	if d.WasThought {
		w.c.Write(&w.b, d.Reasoning) // the end of what stands there
		w.b.WriteString("\n(that was a thought)\n(answer) ")
		w.reasoning, w.column = true, true
		d.Reasoning = ""
	}
	if d.Reasoning != "" {
		if !w.reasoning {
			w.b.WriteString("(thinking) ")
			w.reasoning = true
		}
		w.rc.Write(&w.b, d.Reasoning)
	}
	if d.Text != "" {
		if w.reasoning && !w.column {
			w.b.WriteString("\n(answer) ")
		}
		w.column = true
		w.c.Write(&w.b, d.Text)
	}
	w.p.stream(w.b.String())
	w.p.out.Flush() // a write that fails shows at the next prompt
}

// repeat asks the last prompt again: once, or under the old settings too where
// there is no run yet that the next could be held against.
func (p *plainChat) repeat(ctx context.Context) {
	rows := rowsOf(p.eng)
	old, now, ok := p.runs.Missing(backend.Values(rows))
	eng, can := p.eng.(ab.Engine)
	if !ok || !can {
		p.answer(ctx, true, p.eng.Again)
		return
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	var w *plainAnswer
	runs, err := ab.Pair(ctx, eng, old, now, func(l ab.Leg) {
		if l.Done != nil {
			w.open()
			p.say("")
			p.ended(l.Done)
		}
		for _, o := range l.Outcomes {
			p.say(outcomeText(o, rows))
		}
		p.say(legTag(l))
		w = p.begin()
	}, func(d backend.Delta) { w.delta(d) })
	if w != nil {
		w.open()
	}
	var run *backend.Run
	if len(runs) > 0 {
		run = runs[len(runs)-1]
	}
	p.finish(run, err, true)
}

// command obeys a command.
func (p *plainChat) command(ctx context.Context, cmd, arg string) {
	switch cmd {
	case "save":
		if err := p.save(arg); err != nil {
			p.say("[" + term.CleanLine(err.Error()) + "]")
		}
		return
	case "sessions":
		p.listSessions()
		return
	case "resume":
		p.takeUp(arg)
		return
	case "note":
		text, _ := p.keep.note(p.runs, arg)
		p.say("[" + text + "]")
		return
	case "export":
		if err := export(arg, p.session(), p.runs.CSV()); err != nil {
			p.say("[" + term.CleanLine(err.Error()) + "]")
		} else {
			p.say("[written to " + term.CleanLine(arg) + "]")
		}
		return
	case "again":
		if p.runs.Last() == nil {
			p.say("nothing to repeat yet")
			return
		}
		p.repeat(ctx)
		return
	case "new":
		if !p.leave() {
			return
		}
		p.eng.NewChat()
		p.dropped, p.said = 0, nil
		p.keep.begin(p.runsSoFar())
		p.say("new chat")
		return
	case "settings":
		p.listSettings()
		return
	case "runs":
		p.listRuns()
		return
	case "why":
		p.why(arg)
		return
	case "experts", "layers":
		r := p.residents()
		lines := []string{r.ExpertLine()}
		if cmd == "layers" {
			lines = r.LayerLines()
		}
		for _, l := range lines {
			p.say(l)
		}
		return
	case "edit":
		p.edit(ctx, arg)
		return
	case "regenerate":
		p.regenerate(ctx, arg)
		return
	case "file":
		p.attach(arg)
		return
	case "record":
		p.say(term.CleanLine(record(p.eng, arg)))
		return
	case "help":
		p.help()
		return
	}
	rows := rowsOf(p.eng)
	r, value, told, ok := settingCommand(rows, cmd, arg, func(r *backend.Setting) string { return r.Value })
	switch {
	case !ok:
		p.say("unknown command /" + cmd + "; /help lists them")
	case told != "":
		p.say(term.CleanLine(told))
	default:
		t := tunable(p.eng)
		for _, o := range t.Apply(map[string]string{r.Name: value}) {
			p.say(outcomeText(o, t.Settings()))
		}
	}
}

// why tells why the last run was as slow as it was.
func (p *plainChat) why(arg string) {
	if arg != "" {
		lines, err := whyToken(p.eng, arg)
		if err != nil {
			lines = []string{err.Error()}
		}
		for _, line := range lines {
			p.say(term.CleanLine(line))
		}
		return
	}
	var s profile.Snapshot
	p.eng.Snapshot(&s)
	rows := rowsOf(p.eng)
	found := profile.Diagnose(&s)
	for i := range found {
		f := &found[i]
		p.say("- " + term.CleanLine(f.String()))
		if f.Action != "" {
			p.say("  > " + term.CleanLine(backend.Mention(f.Action, rows, backend.AsCommand)))
		}
	}
	switch {
	case p.runs.Last() == nil:
		p.say("no run yet")
	case len(found) == 0:
		p.say("nothing found that slows it down")
	}
}

// residents is the map of experts and layers as it is now.
func (p *plainChat) residents() *view.Residents {
	s := &profile.Snapshot{}
	p.eng.Snapshot(s)
	return &view.Residents{Map: look(p.eng, &profile.ExpertMap{}), Snapshot: s}
}

// help lists the commands. What the table of keys says of keys is of the screen.
func (p *plainChat) help() {
	for i := range keyTable {
		switch r := &keyTable[i]; {
		case r.cmd == "" || r.screen:
		case r.cmd == "/quit":
			p.say("/quit: end the program; so do the end of the input (Ctrl+D, on Windows Ctrl+Z and Enter) and Ctrl+C at the prompt")
		default:
			p.say(r.cmd + ": " + r.help)
		}
	}
	rows := rowsOf(p.eng)
	for i := range rows {
		if r := &rows[i]; r.Live {
			p.say(usage(rows, r) + ": " + backend.Mention(r.Help, rows, backend.AsCommand))
		}
	}
	p.say("A setting's command alone shows it, or turns it if it is a switch. Ctrl+C during an answer stops the answer.")
}

func (p *plainChat) listRuns() {
	if p.runs.Last() == nil {
		p.say("no run yet")
	}
	for _, g := range p.runs.Groups() {
		r := g.Last()
		p.say(fmt.Sprintf("run %s: %s; %s", g.Name(), view.SettingsText(r.Settings), p.runs.Summary(r)))
		if len(g.Runs) > 1 {
			p.say("  " + p.runs.Pooled(g))
		}
		if note := p.runs.NoteOf(g); note != "" {
			p.say("  note: " + note)
		}
		if base := p.runs.Base(g); base != nil {
			c := p.runs.Compare(base, g)
			p.say("  " + p.runs.Sentence(&c))
		}
	}
}

// listSettings tells every setting with its value, and where that comes from.
func (p *plainChat) listSettings() {
	rows := rowsOf(p.eng)
	for i := range rows {
		r := &rows[i]
		value := r.Shown()
		if value == "" {
			value = "not set"
		}
		p.say(fmt.Sprintf("%s %s (%s)", r.Name, term.CleanLine(value), r.Origin))
	}
}
