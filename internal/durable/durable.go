// Package durable writes files that are whole or not there: whatever ends the
// program or the machine meanwhile, and however full the drive is, what stood at the
// place before stands there still.
package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Part ends the names of files that are being written.
const Part = ".part"

// Write puts what fill writes at path, for the user's eyes only. The folder is made
// if need be. An error names path, never the file that took its place meanwhile.
func Write(path string, fill func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", path, Cause(err))
		}
	}()
	dir, name := filepath.Split(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, name+".*"+Part) // its mode is 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := bufio.NewWriter(f)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(dir)
}

// abandoned is the age at which a part belongs to a program that was killed.
const abandoned = time.Hour

// Sweep removes parts that killed programs have left in a folder. What cannot be
// removed does no harm but for its bytes.
func Sweep(dir string, now time.Time) {
	parts, err := filepath.Glob(filepath.Join(dir, "*"+Part))
	if err != nil {
		return // a folder that is a pattern
	}
	for _, part := range parts {
		if info, err := os.Lstat(part); err == nil && info.Mode().IsRegular() && now.Sub(info.ModTime()) > abandoned {
			os.Remove(part)
		}
	}
}

// Cause drops the path of a path error, which may name a temporary file.
func Cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	var l *os.LinkError
	if errors.As(err, &l) {
		return l.Err
	}
	return err
}

// ErrBusy is returned by Lock when another program holds the lock for too long.
var ErrBusy = errors.New("another program is writing there")

// lockPoll is how often a lock is asked for.
const lockPoll = 10 * time.Millisecond

// Lock keeps other programs that ask for the lock at path from going on, until unlock.
// A program that ends gives its locks back.
func Lock(path string, patience time.Duration) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for end := time.Now().Add(patience); ; time.Sleep(lockPoll) {
		ok, err := tryLock(f)
		switch {
		case ok:
			return func() { f.Close() }, nil // which gives the lock back
		case err != nil:
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		case time.Now().After(end):
			f.Close()
			return nil, ErrBusy
		}
	}
}
