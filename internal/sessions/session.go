// Package sessions keeps conversations from one start of the program to the next: as
// JSON files in a folder of the user's, each with what the model remembers of it
// beside. Other programs may write to the folder at the same time.
package sessions

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"bmoe/engine/backend"
)

// version is that of the files. One with a higher version was written by a later
// program; it is left alone.
const version = 1

// Session is a conversation with all that a screen showed of it.
type Session struct {
	Version int       `json:"version"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Saved   time.Time `json:"saved"`
	Model   Model     `json:"model"`
	// Chat is what the model is told; the transcript has what it was told and has
	// dropped since, answers given again, and notes.
	Chat       backend.Chat `json:"chat"`
	Transcript []Entry      `json:"transcript"`
	Runs       []Run        `json:"runs"`

	StateFile  string `json:"state_file,omitempty"` // what the model remembers, in the same folder; empty: nothing
	StateBytes int64  `json:"state_bytes,omitempty"`
	// Revision is another one after each save, so that a program sees that another
	// has saved meanwhile.
	Revision string `json:"revision"`

	id    string // the file's name without its ending; empty before the first save
	named string // what it was called when it was last read or written
}

// Model says which model a conversation was with.
type Model struct {
	Path string `json:"path"`
	Name string `json:"name"`
	Arch string `json:"arch,omitempty"`
}

// The kinds of entries.
const (
	FromUser  = "user"
	FromModel = "model"
	FromUs    = "note"
)

// Entry is a piece of the transcript.
type Entry struct {
	From      string    `json:"from"`
	When      time.Time `json:"when"`
	Tag       string    `json:"tag,omitempty"` // beside the speaker: again
	Warn      bool      `json:"warn,omitempty"`
	Text      string    `json:"text"`
	Reasoning string    `json:"reasoning,omitempty"`
	Thought   int64     `json:"thought_ns,omitempty"` // spent reasoning
}

// Run is what is kept of a run, as the list of runs words it.
type Run struct {
	Name     string    `json:"name"`
	When     time.Time `json:"when"`
	Prompt   string    `json:"prompt"`
	Settings string    `json:"settings"`
	TokS     string    `json:"tok_s"`
	Waits    string    `json:"waits"`
	Hits     string    `json:"hits"`
	Text     string    `json:"text"`   // identical or not to that of the run it is held against
	Change   string    `json:"change"` // of the speed
	Note     string    `json:"note,omitempty"`
}

// ID identifies a session in its folder, whatever it is called. It is empty before
// the first save.
func (s *Session) ID() string { return s.id }

// Questions is how many messages of the user's the transcript has.
func (s *Session) Questions() (n int) {
	for _, e := range s.Transcript {
		if e.From == FromUser {
			n++
		}
	}
	return n
}

// mostName bounds the name that a session gets of its first question, in characters.
const mostName = 48

// title is a name for a session that has none: how it begins.
func (s *Session) title() string {
	for _, e := range s.Transcript {
		if e.From == FromUser {
			if name := Name(e.Text); name != "" {
				return name
			}
		}
	}
	return "empty chat"
}

// Name makes a name of a text: its first words on a line, without what a terminal
// would not show.
func Name(text string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	words := strings.Join(strings.Fields(clean), " ")
	if utf8.RuneCountInString(words) <= mostName {
		return words
	}
	cut := string([]rune(words)[:mostName])
	if at := strings.LastIndexByte(cut, ' '); at > mostName/2 {
		cut = cut[:at]
	}
	return cut + "..."
}

// newID returns a name for a file that no other has.
func newID(now time.Time) string { return now.UTC().Format("20060102-150405") + "-" + token() }

// token is a random word.
func token() string {
	var b [4]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// parse reads a session's file.
func parse(b []byte) (*Session, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	s := &Session{}
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	switch {
	case s.Version > version:
		return nil, &NewerError{s.Version}
	case s.Version < 1 || s.Revision == "" || s.Name == "":
		return nil, fmt.Errorf("it lacks version, name or revision")
	case s.StateFile != "" && !plain(s.StateFile):
		return nil, fmt.Errorf("its state file %q is not in the folder", s.StateFile)
	}
	return s, nil
}

// plain reports that a name is that of a file in the folder and of no other.
func plain(name string) bool {
	return !strings.ContainsAny(name, `/\:`) && strings.HasSuffix(name, stateEnding)
}

// NewerError is a file that a later version of the program wrote.
type NewerError struct{ Version int }

func (e *NewerError) Error() string {
	return fmt.Sprintf("a later version of bmoe wrote it (format %d, this one reads %d)", e.Version, version)
}
