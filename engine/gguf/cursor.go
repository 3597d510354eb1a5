package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// chunk is how much a cursor reads at a time: a vocabulary of 150,000
	// tokens is some 6 MB, a tiny model's header a few kB.
	chunk = 256 << 10
	// maxHeader bounds what comes before the tensor data. Real headers have
	// 1 to 20 MB; the bound keeps a damaged file of many gigabytes from being
	// read, and its announced counts from being allocated, as a header.
	maxHeader = 1 << 30
)

// cursor reads a file's header forwards through a window. Before anything is
// read or allocated, its length is checked against what the file has left.
type cursor struct {
	r     io.ReaderAt
	path  string
	size  int64 // of the file
	limit int64 // where the header must have ended: the file's size or maxHeader

	win  []byte // bytes of the file from base on
	base int64
	pos  int // read position in win

	section string // what is being read, for errors
	item    string // the key or tensor being read, or ""
}

func newCursor(r io.ReaderAt, size int64, path string) *cursor {
	return &cursor{r: r, path: path, size: size, limit: min(size, maxHeader), section: "header"}
}

// at returns the position in the file.
func (c *cursor) at() int64 { return c.base + int64(c.pos) }

// left returns how many bytes the header can still have.
func (c *cursor) left() int64 { return c.limit - c.at() }

// where names the section and the item being read.
func (c *cursor) where() string {
	if c.item == "" {
		return "the " + c.section
	}
	return fmt.Sprintf("the %s (%s)", c.section, c.item)
}

// fault returns an error at the current position.
func (c *cursor) fault(kind, format string, args ...any) error {
	return &FormatError{Path: c.path, Msg: fmt.Sprintf("%s in %s at byte %d: %s", kind, c.where(), c.at(), fmt.Sprintf(format, args...))}
}

// bad returns an error about content at the current position.
func (c *cursor) bad(format string, args ...any) error {
	return c.fault("bad data", format, args...)
}

// short returns the error for something that needs more bytes than are left.
func (c *cursor) short(what, need string) error {
	if c.size > c.limit {
		return c.fault("damaged", "%s needs %s bytes, which takes the header over %d bytes; get the file again", what, need, int64(maxHeader))
	}
	return c.fault("truncated or damaged", "%s needs %s bytes, but %d of the file's %d are left; get the file again", what, need, c.left(), c.size)
}

// room checks that n things of at least each bytes can be left.
func (c *cursor) room(what string, n uint64, each int64) error {
	switch {
	case n <= uint64(c.left()/each):
		return nil
	case each == 1:
		return c.short(what, fmt.Sprint(n))
	}
	return c.short(fmt.Sprintf("%s of %d", what, n), fmt.Sprintf("at least %d x %d", n, each))
}

// bytes returns the next n bytes, which are valid until the next call.
func (c *cursor) bytes(what string, n int64) ([]byte, error) {
	if n > c.left() {
		return nil, c.short(what, fmt.Sprint(n))
	}
	if int64(len(c.win)-c.pos) < n {
		if err := c.fill(n); err != nil {
			return nil, err
		}
	}
	b := c.win[c.pos : c.pos+int(n)]
	c.pos += int(n)
	return b, nil
}

// fill moves the window so that it starts at the current position and holds at
// least n bytes, which the file is known to have.
func (c *cursor) fill(n int64) error {
	rest := c.win[c.pos:]
	want := min(max(n, chunk), c.left())
	win := c.win[:0]
	if int64(cap(win)) < want {
		win = make([]byte, 0, want)
	}
	have := copy(win[:len(rest)], rest)
	c.base, c.pos, c.win = c.at(), 0, win[:want]
	got, err := c.r.ReadAt(c.win[have:], c.base+int64(have))
	if got == len(c.win)-have {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // the file shrank since its size was taken
	}
	return fmt.Errorf("%s: read %s at byte %d: %w", c.path, c.where(), c.base+int64(have), err)
}

func (c *cursor) u32(what string) (uint32, error) {
	b, err := c.bytes(what, 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (c *cursor) u64(what string) (uint64, error) {
	b, err := c.bytes(what, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// text returns the bytes of a string, which are valid until the next call.
func (c *cursor) text(what string) ([]byte, error) {
	n, err := c.u64(what)
	if err != nil {
		return nil, err
	}
	if err := c.room(what, n, 1); err != nil {
		return nil, err
	}
	return c.bytes(what, int64(n))
}

// quickText is text for a string that lies in the window; ok is false, and
// nothing is read, if it does not.
func (c *cursor) quickText() (b []byte, ok bool) {
	rest := c.win[c.pos:]
	if len(rest) < 8 {
		return nil, false
	}
	n := binary.LittleEndian.Uint64(rest)
	if n > uint64(len(rest)-8) {
		return nil, false
	}
	c.pos += 8 + int(n)
	return rest[8 : 8+n], true
}
