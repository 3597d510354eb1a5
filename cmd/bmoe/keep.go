package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"bmoe/engine/demo"
	"bmoe/internal/cli"
	"bmoe/internal/sessions"
	"bmoe/internal/userdir"
	"bmoe/tui/term"
)

// sessionStore returns where conversations are kept.
func sessionStore() (*sessions.Store, error) {
	dir, err := userdir.State()
	if err != nil {
		return nil, err
	}
	return sessions.Open(filepath.Join(dir, "sessions")), nil
}

// kept returns where conversations are kept, nil if they are not, and the session to go
// on with, nil if none was asked for. Unless a model is named too, the session's is
// opened.
func (o *options) kept(ctx context.Context) (*sessions.Store, *sessions.Session, error) {
	if o.noSave {
		return nil, nil, nil
	}
	store, err := sessionStore()
	if err != nil {
		if o.given("resume") {
			return nil, nil, err
		}
		warnOf(err.Error() + ", or nothing is kept")
		return nil, nil, nil
	}
	if !o.given("resume") {
		return store, nil, nil
	}
	name := o.resume
	if name == lastSession {
		name = ""
	}
	s, notes, err := store.Find(name)
	for _, n := range notes {
		warnOf(n)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--resume: %w; --sessions lists them", err)
	}
	if o.cfg.Model != "" || o.hf != "" || s.Model.Path == "" {
		return store, s, nil
	}
	if path, err := demo.Path(ctx); err == nil && path == s.Model.Path {
		return store, s, nil // what is opened without a model
	}
	if !exists(s.Model.Path) {
		return nil, nil, fmt.Errorf("session %q was with %s, which is not there: name a MODEL.gguf, too", s.Name, s.Model.Path)
	}
	o.cfg.Model = s.Model.Path
	return store, s, nil
}

// exists reports whether there is something at a path, as far as one can tell.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// keptSession is a session as --sessions --json tells of it.
type keptSession struct {
	ID         string    `json:"id"`
	Name       string    `json:"name"`
	Created    time.Time `json:"created"`
	Saved      time.Time `json:"saved"`
	Model      string    `json:"model"`
	Questions  int       `json:"questions"`
	StateBytes int64     `json:"state_bytes"`
}

// listSessions prints the conversations that were kept, the last one first.
func listSessions(o *options, out *cli.Output) error {
	store, err := sessionStore()
	if err != nil {
		return err
	}
	all, notes := store.List()
	for _, n := range notes {
		warnOf(n)
	}
	rows := []keptSession{}
	for _, s := range all {
		rows = append(rows, keptSession{s.ID(), s.Name, s.Created, s.Saved, s.Model.Path, s.Questions(), s.StateBytes})
	}
	if o.json {
		return out.Line("", rows)
	}
	if len(rows) == 0 {
		return out.Text(sessions.ErrNone.Error() + ": a chat is kept when the program ends\n")
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "saved\tquestions\tname\tmodel")
	for i, r := range rows {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", r.Saved.Local().Format("2006-01-02 15:04"), r.Questions, term.CleanLine(r.Name), term.CleanLine(all[i].Model.Name))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return out.Text(b.String())
}
