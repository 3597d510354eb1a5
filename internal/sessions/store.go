package sessions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bmoe/internal/durable"
	"bmoe/internal/units"
)

// What the folder holds at most. What the model remembers can be computed again, so
// that of the oldest sessions goes first.
const (
	mostSessions   = 200
	mostStateBytes = 4 * units.GiB
	mostBad        = 20
)

const (
	ending      = ".json"
	stateEnding = ".state"
	badEnding   = ".bad"
)

// maxFile bounds what is read of a session's file.
const maxFile = 64 * units.MiB

// lockPatience is how long a save waits for that of another program. Only names are
// changed under the lock.
const lockPatience = 5 * time.Second

// Store is a folder of sessions. It may be used from any goroutine.
type Store struct {
	dir   string
	now   func() time.Time
	write func(path string, fill func(io.Writer) error) error // durable.Write; tests let it fail

	mostSessions   int
	mostStateBytes int64
}

// Open returns the sessions of a folder, which is made with the first of them.
func Open(dir string) *Store {
	return &Store{dir: dir, now: time.Now, write: durable.Write, mostSessions: mostSessions, mostStateBytes: mostStateBytes}
}

// Dir returns the folder.
func (st *Store) Dir() string { return st.dir }

func (st *Store) path(id string) string { return filepath.Join(st.dir, id+ending) }

// lock keeps other programs from changing the folder.
func (st *Store) lock() (unlock func(), err error) {
	return durable.Lock(filepath.Join(st.dir, "lock"), lockPatience)
}

// Outcome says what became of a save.
type Outcome struct {
	Name string // under which it was saved
	// Forked is true if another program had saved the session since this one last
	// read or wrote it: both are there now.
	Forked bool
	// NoState says why what the model remembers could not be kept; nil if it was, or
	// there was none. The next answer will read the conversation anew then.
	NoState error
}

// Save writes a session, and with state what the model remembers; state may be nil.
// A save that fails leaves what was saved before.
func (st *Store) Save(s *Session, state func(io.Writer) error) (Outcome, error) {
	out := Outcome{}
	next := *s
	next.Version, next.Saved, next.Revision = version, st.now(), token()
	if next.Created.IsZero() {
		next.Created = next.Saved
	}
	if next.Name == "" {
		next.Name = next.title()
	}
	if next.id == "" {
		next.id = newID(next.Saved)
	}
	// The state first: its file has a name of its own, which nobody reads before the
	// session's file tells of it.
	next.StateFile, next.StateBytes = "", 0
	if state != nil {
		name := next.id + "-" + next.Revision + stateEnding
		count := &counter{}
		if out.NoState = st.write(filepath.Join(st.dir, name), func(w io.Writer) error {
			count.w = w
			return state(count)
		}); out.NoState == nil {
			next.StateFile, next.StateBytes = name, count.n
		}
	}
	fail := func(err error) (Outcome, error) {
		if next.StateFile != "" {
			os.Remove(filepath.Join(st.dir, next.StateFile))
		}
		return Outcome{}, fmt.Errorf("the session is not saved: %w", err)
	}
	unlock, err := st.lock()
	if err != nil {
		return fail(err)
	}
	defer unlock()
	old, err := st.read(next.id)
	if s.id != "" && err == nil && old.Revision != s.Revision {
		out.Forked = true
		next.id = newID(next.Saved)
		next.Name = st.another(next.Name)
		old = nil
	}
	if old != nil && s.Name == s.named {
		next.Name = old.Name // it may have been renamed in the folder
	}
	next.named = next.Name
	b, err := json.MarshalIndent(&next, "", " ")
	if err == nil {
		err = st.write(st.path(next.id), func(w io.Writer) error { _, err := w.Write(b); return err })
	}
	if err != nil {
		return fail(err)
	}
	if old != nil && old.StateFile != "" && old.StateFile != next.StateFile {
		os.Remove(filepath.Join(st.dir, old.StateFile)) // prune takes what is left
	}
	*s = next
	out.Name = s.Name
	st.prune(s.id)
	return out, nil
}

// counter counts the bytes that are written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

// another returns a name that no session has yet.
func (st *Store) another(name string) string {
	all, _ := st.scan()
	for n := 2; ; n++ {
		next := fmt.Sprintf("%s (%d)", name, n)
		if !slices.ContainsFunc(all, func(s *Session) bool { return s.Name == next }) {
			return next
		}
	}
}

// read reads a session's file.
func (st *Store) read(id string) (*Session, error) {
	f, err := os.Open(st.path(id))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > maxFile:
		return nil, fmt.Errorf("%s: longer than %d MiB", st.path(id), maxFile/units.MiB)
	}
	s, err := parse(b)
	if err != nil {
		return nil, &damaged{st.path(id), err}
	}
	s.id, s.named = id, s.Name
	return s, nil
}

// damaged is a file whose content is not a session.
type damaged struct {
	path string
	err  error
}

func (d *damaged) Error() string { return fmt.Sprintf("%s: %v", d.path, d.err) }
func (d *damaged) Unwrap() error { return d.err }

// scan reads all sessions, and returns beside them the ids of what is damaged.
func (st *Store) scan() (all []*Session, bad map[string]error) {
	paths, err := filepath.Glob(filepath.Join(globbed(st.dir), "*"+ending))
	if err != nil {
		return nil, nil // the pattern is our own
	}
	bad = map[string]error{}
	for _, p := range paths {
		id := strings.TrimSuffix(filepath.Base(p), ending)
		s, err := st.read(id)
		switch {
		case err == nil:
			all = append(all, s)
		case !errors.Is(err, fs.ErrNotExist): // it may be deleted meanwhile
			bad[id] = err
		}
	}
	slices.SortFunc(all, func(a, b *Session) int { return b.Saved.Compare(a.Saved) })
	return all, bad
}

// globbed keeps what is special in patterns from being so.
func globbed(dir string) string {
	return strings.NewReplacer(`[`, `[[]`, `*`, `[*]`, `?`, `[?]`).Replace(dir)
}

// List returns all sessions, the last saved first, and a line for each that could not
// be read. Those that are damaged are kept aside, and not met again.
func (st *Store) List() (all []*Session, notes []string) {
	all, bad := st.scan()
	for id, err := range bad {
		notes = append(notes, st.setAside(id, err).Error())
	}
	slices.Sort(notes)
	return all, notes
}

// setAside renames a damaged file, so that it is neither lost nor in the way.
func (st *Store) setAside(id string, why error) error {
	if !errors.As(why, new(*damaged)) || errors.As(why, new(*NewerError)) {
		return why
	}
	kept := st.path(id) + badEnding
	if err := os.Rename(st.path(id), kept); err != nil {
		return why
	}
	return fmt.Errorf("session %w; it is kept aside as %s", why, filepath.Base(kept))
}

// ErrNone is returned by Find where there is no session.
var ErrNone = errors.New("there is no saved session yet")

// Find returns the session that is meant by a name: the last saved if it is empty;
// else the one called so, the last saved of several; else the only one whose name
// begins so.
func (st *Store) Find(name string) (*Session, []string, error) {
	all, notes := st.List()
	if len(all) == 0 {
		return nil, notes, ErrNone
	}
	if name == "" {
		return all[0], notes, nil
	}
	var begins []*Session
	for _, s := range all {
		switch {
		case strings.EqualFold(s.Name, name), s.id == name:
			return s, notes, nil
		case len(s.Name) >= len(name) && strings.EqualFold(s.Name[:len(name)], name):
			begins = append(begins, s)
		}
	}
	switch len(begins) {
	case 1:
		return begins[0], notes, nil
	case 0:
		return nil, notes, fmt.Errorf("there is no session called %q", name)
	}
	return nil, notes, fmt.Errorf("%d sessions begin with %q: %q, %q", len(begins), name, begins[0].Name, begins[1].Name)
}

// ErrNoState is returned by State where nothing was kept, or it has gone to make room.
var ErrNoState = errors.New("what the model remembers of it was not kept")

// State opens what the model remembers of a session.
func (st *Store) State(s *Session) (io.ReadCloser, error) {
	if s.StateFile == "" {
		return nil, ErrNoState
	}
	f, err := os.Open(filepath.Join(st.dir, s.StateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoState
	}
	return f, err
}

// Rename gives a session another name.
func (st *Store) Rename(id, name string) error {
	name = Name(name)
	if name == "" {
		return errors.New("a session needs a name")
	}
	unlock, err := st.lock()
	if err != nil {
		return err
	}
	defer unlock()
	s, err := st.read(id)
	if err != nil {
		return err
	}
	s.Name = name
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return st.write(st.path(id), func(w io.Writer) error { _, err := w.Write(b); return err })
}

// Delete removes a session for good.
func (st *Store) Delete(id string) error {
	unlock, err := st.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return st.remove(id)
}

// remove removes a session's files: its own first, so that none is left without a
// state that it tells of.
func (st *Store) remove(id string) error {
	if err := os.Remove(st.path(id)); err != nil {
		return fmt.Errorf("delete a session: %w", err)
	}
	for _, p := range st.states(id) {
		os.Remove(p) // prune takes what is left
	}
	return nil
}

// states are the files of what models remember: of one session, or of all.
func (st *Store) states(id string) []string {
	if id != "" {
		id = globbed(id) + "-"
	}
	paths, err := filepath.Glob(filepath.Join(globbed(st.dir), id+"*"+stateEnding))
	if err != nil {
		return nil // the pattern is our own
	}
	return paths
}

// orphaned is the age at which a state that no session tells of belongs to a program
// that was killed before it had written the session.
const orphaned = time.Hour

// prune keeps the folder within its bounds. The session that was just saved stays as
// it is. What cannot be removed is tried again after the next save.
func (st *Store) prune(saved string) {
	durable.Sweep(st.dir, st.now())
	all, bad := st.scan()
	if len(all) > st.mostSessions {
		for _, s := range all[st.mostSessions:] {
			if s.id != saved {
				st.remove(s.id)
			}
		}
		all = all[:st.mostSessions]
	}
	told := map[string]bool{}
	room := st.mostStateBytes
	for _, s := range all {
		if s.StateFile == "" {
			continue
		}
		told[s.StateFile] = true
		if room -= s.StateBytes; room < 0 && s.id != saved {
			os.Remove(filepath.Join(st.dir, s.StateFile))
			room += s.StateBytes
		}
	}
	for _, p := range st.states("") {
		info, err := os.Stat(p)
		if err == nil && len(bad) == 0 && !told[filepath.Base(p)] && st.now().Sub(info.ModTime()) > orphaned {
			os.Remove(p)
		}
	}
	aside, err := filepath.Glob(filepath.Join(globbed(st.dir), "*"+badEnding))
	if err != nil || len(aside) <= mostBad {
		return
	}
	slices.Sort(aside) // by the time of their first save
	for _, p := range aside[:len(aside)-mostBad] {
		os.Remove(p)
	}
}
