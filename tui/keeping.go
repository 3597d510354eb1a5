package tui

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/internal/durable"
	"bmoe/internal/sessions"
	"bmoe/internal/units"
	"bmoe/tui/term"
	"bmoe/tui/view"
)

// keeping is the chat as it is kept from one start of the program to the next.
type keeping struct {
	store *sessions.Store  // nil: nothing is kept
	s     sessions.Session // as it was last saved or resumed
	from  int              // runs up to this number are of another chat
	said  bool             // something was said since then
	lost  bool             // saving failed, and the user was told

	promptLost bool // so did keeping what was sent
	prompts    gate // what is being kept of it
}

// begin begins a chat that nobody has saved yet, after so many runs.
func (k *keeping) begin(runs int) {
	k.s, k.from, k.said, k.lost = sessions.Session{}, runs, false, false
}

// due reports that there is something that would be lost.
func (k *keeping) due() bool { return k.store != nil && k.said }

// session is the chat as it is now.
func (k *keeping) session(transcript []sessions.Entry, runs *view.Runs, eng backend.Backend, path string) *sessions.Session {
	s := k.s
	info := eng.Info()
	s.Model = sessions.Model{Path: path, Name: info.Model, Arch: info.Arch}
	s.Transcript = transcript
	s.Runs = append(s.Runs[:len(s.Runs):len(s.Runs)], keptRuns(runs, k.from)...)
	return &s
}

// keptRuns are the runs behind one, as they are kept.
func keptRuns(l *view.Runs, from int) (out []sessions.Run) {
	for _, g := range l.Groups() {
		r := g.First()
		if r.N <= from {
			continue
		}
		_, text, change := l.Relation(g)
		out = append(out, sessions.Run{Name: g.Name(), When: r.When, Prompt: r.Prompt, Settings: view.SettingsText(r.Settings),
			TokS: g.Median(ab.DecodeTPS).Text(units.Sig, ""), Waits: waitShare(r), Hits: g.Median(view.HitRate).Text(units.Percent, " %"), Text: text, Change: change, Note: l.NoteOf(g)})
	}
	return out
}

// note puts a line on the latest run, to be kept with the session.
func (k *keeping) note(runs *view.Runs, text string) (told string, warn bool) {
	last := runs.Last()
	switch {
	case strings.TrimSpace(text) == "":
		return "/note TEXT puts a line on the latest run", true
	case last == nil:
		return "no run yet", true
	}
	runs.SetNote(last.N, text)
	k.said = true
	return fmt.Sprintf("noted on run %d", last.N), false
}

// saveResult is what became of a save.
type saveResult struct {
	s   *sessions.Session
	out sessions.Outcome
	err error
}

// save saves a chat with what the model remembers of it. It is a job: the engine does
// nothing else meanwhile.
func save(store *sessions.Store, s *sessions.Session, eng backend.Backend) saveResult {
	var state func(io.Writer) error
	if k, ok := eng.(backend.Keeper); ok {
		s.Chat, state = k.Chat(), k.Save
	}
	out, err := store.Save(s, state)
	return saveResult{s, out, err}
}

// took notes what became of a save.
func (k *keeping) took(r saveResult) {
	if k.lost = r.err != nil; r.err != nil {
		return
	}
	// Runs made since are told of from now on.
	runs := k.s.Runs
	k.s, k.said = *r.s, false
	k.s.Runs = runs
}

// text says what became of a save.
func (r saveResult) text() (text string, warn bool) {
	if r.err != nil {
		return r.err.Error(), true
	}
	text = fmt.Sprintf("saved as %q", r.out.Name)
	if r.out.Forked {
		text = fmt.Sprintf("another program saved this session meanwhile: this one is saved as %q", r.out.Name)
	}
	if r.out.NoState != nil {
		text += fmt.Sprintf(", but not what the model remembers of it, which will be computed again: %v", r.out.NoState)
	}
	return text, r.out.Forked || r.out.NoState != nil
}

var errNotKept = errors.New("nothing is kept: the program was started with --no-save, or has no folder for it")

// resume finds a session and has the engine take it up. It is a job. Of what could
// not be used of it there are notes.
func resume(store *sessions.Store, name string, eng backend.Backend) (s *sessions.Session, notes []string, err error) {
	if s, notes, err = store.Find(name); err != nil {
		return nil, notes, err
	}
	k, ok := eng.(backend.Keeper)
	if !ok {
		return nil, notes, errors.New("what is open here cannot take up a conversation")
	}
	k.SetChat(s.Chat)
	if err := loadInto(store, s, k); err != nil {
		notes = append(notes, "the next answer reads the conversation anew: "+err.Error())
	}
	return s, notes, nil
}

func loadInto(store *sessions.Store, s *sessions.Session, k backend.Keeper) error {
	r, err := store.State(s)
	if err != nil {
		return err
	}
	defer r.Close() // opened for reading: nothing is lost if closing fails
	return k.Load(r)
}

// resumedText says what was taken up.
func resumedText(s *sessions.Session) string {
	return fmt.Sprintf("%q goes on: %s, saved %s", s.Name, units.Plural(int64(s.Questions()), "question"), s.Saved.Local().Format("2 January 15:04"))
}

// export writes a session as Markdown, or its runs as CSV where the file's name ends so.
// table is that of the runs.
func export(path string, s *sessions.Session, table []byte) error {
	if path == "" {
		return errors.New("/export FILE writes the chat and its runs as Markdown, /export FILE.csv the runs as CSV")
	}
	path = inHome(path)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if strings.EqualFold(filepath.Ext(path), ".csv") {
		return durable.Write(path, writing(table))
	}
	return durable.Write(path, s.Markdown)
}

// writing writes bytes.
func writing(b []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	}
}

// exports is the folder for files that people asked for, in that of the sessions.
const exports = "exports"

// exportRuns writes the runs as CSV and as Markdown beside the sessions, and returns the
// files' common name.
func exportRuns(store *sessions.Store, when time.Time, table []byte, runs []sessions.Run) (path string, err error) {
	dir := filepath.Join(store.Dir(), exports)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "runs-"+when.Format("20060102-150405"))
	if err := durable.Write(path+".csv", writing(table)); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Runs\n\n")
	sessions.RunsTable(&b, runs)
	return path, durable.Write(path+".md", writing([]byte(b.String())))
}

// sessionRow is a session as the list shows it.
func sessionRow(s *sessions.Session) string {
	return fmt.Sprintf("%s  %s  %s", s.Saved.Local().Format("2006-01-02 15:04"), term.CleanLine(s.Name), term.CleanLine(s.Model.Name))
}

// settleTime is when an entry was made, of one that does not say.
func settleTime(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}
