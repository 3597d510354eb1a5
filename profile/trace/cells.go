package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxCellsLine bounds a line of an I/O or compute trace.
const maxCellsLine = 1 << 16

// cells reads a file of rows by the names of its columns, in memory that does not
// grow with the file.
type cells struct {
	lines
	names  []string
	row    [][]byte
	column []int // of each name that was asked for; -1: the file has none
}

// openCells reads up to the line of the columns. All of names must be there; those of
// more came later, and older files lack them.
func openCells(from io.Reader, what, mark string, names, more []string) (*cells, error) {
	c := &cells{lines: lines{in: bufio.NewReaderSize(from, maxCellsLine)}}
	for {
		line, err := c.lines.next()
		if err == io.EOF {
			return nil, fmt.Errorf("it ends before the line that names the columns of %s", what)
		}
		s := string(line)
		switch {
		case err != nil:
		case c.n == 1 && !strings.HasPrefix(s, mark):
			err = fmt.Errorf("not %s: it should begin with %s", what, mark)
		case s == "" || s[0] == '#':
		default:
			c.names = strings.Split(s, ",")
			if err = c.find(names); err == nil {
				for _, name := range more {
					c.column = append(c.column, slices.Index(c.names, name))
				}
				return c, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", c.n, err)
		}
	}
}

// find looks up the columns.
func (c *cells) find(names []string) error {
	if err := once(c.names); err != nil {
		return err
	}
	for _, name := range names {
		at := slices.Index(c.names, name)
		if at < 0 {
			return fmt.Errorf("the column %s is missing", name)
		}
		c.column = append(c.column, at)
	}
	return nil
}

// once refuses a column that stands twice.
func once(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("the column %s stands twice", name)
		}
	}
	return nil
}

// lines reads lines no longer than its reader's buffer.
type lines struct {
	in  *bufio.Reader
	n   int  // the line read last
	cut bool // it has no end
}

// next returns the next line without its end; it is valid until the next call.
func (l *lines) next() ([]byte, error) {
	line, err := l.in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		l.n++
		return nil, fmt.Errorf("longer than %d bytes", l.in.Size())
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, err
	}
	l.n++
	l.cut = err == io.EOF
	return bytes.TrimRight(line, "\r\n"), nil
}

// next reads the next row; io.EOF is the end. A last line without an end, as a killed
// program leaves it, is the end too.
func (c *cells) next() error {
	for {
		line, err := c.lines.next()
		if err == io.EOF || err == nil && c.cut {
			return io.EOF
		}
		if err != nil {
			return err
		}
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		c.row = c.row[:0]
		for {
			cell, rest, more := bytes.Cut(line, []byte{','})
			c.row = append(c.row, cell)
			if !more {
				break
			}
			line = rest
		}
		if len(c.row) != len(c.names) {
			return fmt.Errorf("%d cells in a row of %d columns", len(c.row), len(c.names))
		}
		return nil
	}
}

// pass is where a row stands: rows of later passes follow.
type pass struct{ turn, phase, step int }

// follows refuses a row whose pass is before that of the row that it follows; first: it
// is the first of its pass.
func (p *pass) follows(turn, phase, step int) (first bool, err error) {
	next := pass{turn, phase, step}
	if phase > 1 {
		return false, fmt.Errorf("phase %d", phase)
	}
	if cmp.Or(cmp.Compare(turn, p.turn), cmp.Compare(phase, p.phase), cmp.Compare(step, p.step)) < 0 {
		return false, fmt.Errorf("turn %d, phase %d, step %d comes after turn %d, phase %d, step %d: rows are missing their order", turn, phase, step, p.turn, p.phase, p.step)
	}
	first = *p != next
	*p = next
	return first, nil
}

// before is where nothing stands yet.
var before = pass{-1, -1, -1}

// optional is a number that may be missing: -1 then.
type optional int64

// each reads all rows into fields, pointers to where the cells of the names go, and
// calls tell after each. An error names the line.
func (c *cells) each(fields []any, tell func() error) error {
	for {
		err := c.next()
		if err == io.EOF {
			return nil
		}
		for i := 0; err == nil && i < len(fields); i++ {
			err = c.take(i, fields[i])
		}
		if err == nil {
			err = tell()
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", c.n, err)
		}
	}
}

// take parses the cell of the i-th name.
func (c *cells) take(i int, to any) error {
	if c.column[i] < 0 {
		if to, may := to.(*optional); may {
			*to = -1
		}
		return nil
	}
	cell := c.row[c.column[i]]
	if word, ok := to.(*string); ok {
		*word = string(cell)
		return nil
	}
	v, err := int64(-1), error(nil)
	if _, may := to.(*optional); !may || len(cell) > 0 {
		if v, err = strconv.ParseInt(string(cell), 10, 64); err != nil || v < 0 {
			return fmt.Errorf("%s is %q", c.names[c.column[i]], cell)
		}
	}
	switch to := to.(type) {
	case *int:
		*to = int(v)
	case *int64:
		*to = v
	case *optional:
		*to = optional(v)
	case *bool:
		*to = v != 0
	}
	return nil
}
