package durable

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// mostSeats is how many programs can be seen at a time; more sit down nowhere.
const mostSeats = 4

// Seats lets programs of a user see each other: one that is at something takes a seat,
// and looks whether others are taken. Nobody waits for anybody. The system gives a
// seat back when its program ends, however it ends. After Open nothing is allocated.
type Seats struct {
	files []*os.File
	mine  int // -1: none
}

// OpenSeats opens the seats at path, which are files that begin with it.
func OpenSeats(path string) (*Seats, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	s := &Seats{mine: -1}
	for i := range mostSeats {
		f, err := os.OpenFile(path+"."+strconv.Itoa(i), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("lock: %w", err)
		}
		s.files = append(s.files, f)
	}
	return s, nil
}

// Take takes a free seat, if there is one and none is taken yet.
func (s *Seats) Take() {
	for i := 0; s.mine < 0 && i < len(s.files); i++ {
		if ok, err := tryLock(s.files[i]); ok && err == nil {
			s.mine = i
		}
	}
}

// Leave gives the seat back.
func (s *Seats) Leave() {
	if s.mine >= 0 {
		unlock(s.files[s.mine]) // what could not be given back is when the file is closed
		s.mine = -1
	}
}

// Others reports whether another program has a seat. A look takes a shared lock for a
// moment, so that those who look do not take each other for who sits.
func (s *Seats) Others() bool {
	for i, f := range s.files {
		if i == s.mine {
			continue
		}
		ok, err := tryShared(f)
		if ok {
			unlock(f)
		} else if err == nil {
			return true
		}
	}
	return false
}

// Close gives everything back.
func (s *Seats) Close() error {
	var first error
	for _, f := range s.files {
		if err := f.Close(); err != nil && first == nil {
			first = err
		}
	}
	s.files, s.mine = nil, -1
	return first
}
