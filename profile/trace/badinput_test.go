package trace

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// reader is a way to read a file of rows, for the tests of damaged files.
type reader struct {
	name string
	head []string // lines before the rows; the last names the columns
	rows []string
	// swapped are two rows whose order matters.
	swapped [2]int
	read    func(io.Reader) (rows int, err error)
	what    string // what it says of a file that is none
}

var readers = []reader{
	{"token rows", []string{csvMark, "# model=m", "step,steps,wall_ms,run,dropped"},
		[]string{"1,9,1.25,1,10", "2,9,1.5,1,10", "3,9,1.5,1,10", "1,9,1.5,2,10"}, [2]int{1, 2},
		func(in io.Reader) (n int, err error) {
			t, err := ReadCSV(in)
			if err == nil {
				for i := range t.Runs {
					n += len(t.Runs[i].Rows)
				}
			}
			return n, err
		}, "not a file of token rows"},
	{"routes, row by row", strings.Split(strings.TrimSpace(head), "\n"), routeRows, [2]int{},
		func(in io.Reader) (n int, err error) {
			rows, err := NewRouteRows(in)
			for err == nil {
				var row RouteRow
				if err = rows.Next(&row); err == nil {
					n++
				}
			}
			if err == io.EOF {
				err = nil
			}
			return n, err
		}, "not a route trace"},
	{"a route as a whole", strings.Split(strings.TrimSpace(head), "\n"), routeRows, [2]int{0, 11},
		func(in io.Reader) (n int, err error) {
			r, err := ReadRoute(in)
			if err == nil {
				for _, t := range r.Turns {
					for _, d := range append(t.Prompt, t.Decoded...) {
						n += len(d.Experts)
					}
				}
			}
			return n, err
		}, "not a route trace"},
	{"reads", []string{ioMark, strings.Join(ioColumns, ",")},
		[]string{"0,0,0,3,4,0,0,0,4096,8192,8192,1000", "0,0,0,3,4,1,0,0,65536,8192,8192,1000", "0,1,9,3,4,0,0,0,4096,8192,8192,1000", "0,1,10,3,4,0,0,0,4096,8192,8192,1000"}, [2]int{2, 3},
		func(in io.Reader) (n int, err error) {
			err = ReadIO(in, func(*IORow) error { n++; return nil })
			return n, err
		}, "not an I/O trace"},
	{"steps", []string{computeMark, strings.Join(computeColumns, ",")},
		[]string{"0,0,0,0,,embed,embed,1000,", "0,0,0,1,0,attn,blk.0.attn,1000,", "0,1,9,0,,embed,embed,1000,2", "0,1,9,1,0,attn,blk.0.attn,1000,10"}, [2]int{2, 3},
		func(in io.Reader) (n int, err error) {
			err = ReadCompute(in, func(*ComputeRow) error { n++; return nil })
			return n, err
		}, "not a compute trace"},
}

// routeRows are three tokens of two turns.
var routeRows = func() (rows []string) {
	for _, at := range []string{"0,0,0", "0,1,1", "1,1,1"} {
		for i := range 4 {
			rows = append(rows, fmt.Sprintf("%s,%d,%d,%d,0.5,0,10,0,7", at, i/2*2, i%2, i))
		}
	}
	return rows
}()

func (r *reader) text(rows []string) string {
	return strings.Join(r.head, "\n") + "\n" + strings.Join(rows, "\n") + "\n"
}

// What does no harm is read: line ends of Windows, columns that nobody knows, blank
// lines and remarks, and a file that a killed program has left in the middle of a row
// or of its last number.
func TestEveryReaderTakes(t *testing.T) {
	for _, r := range readers {
		whole := r.text(r.rows)
		last := len(r.rows) - 1
		if r.name == "a route as a whole" {
			last = len(r.rows) - 4 // a token that is not whole is left out
		}
		more := strings.Split(strings.TrimSuffix(whole, "\n"), "\n")
		for i := range more {
			switch {
			case i == len(r.head)-1:
				more[i] += ",new"
			case i >= len(r.head):
				more[i] += ",anything"
			}
		}
		for name, c := range map[string]struct {
			text string
			want int
		}{
			"as it is":                 {whole, len(r.rows)},
			"CRLF":                     {strings.ReplaceAll(whole, "\n", "\r\n"), len(r.rows)},
			"an unknown column":        {strings.Join(more, "\n") + "\n", len(r.rows)},
			"blank lines and remarks":  {r.text(append([]string{"", "# a remark"}, r.rows...)), len(r.rows)},
			"cut in the last row":      {whole[:len(whole)-6], last},
			"cut in the last number":   {whole[:len(whole)-2], last},
			"cut before the line end":  {whole[:len(whole)-1], last},
			"cut between CR and LF":    {strings.TrimSuffix(strings.ReplaceAll(whole, "\n", "\r\n"), "\n"), last},
			"no rows but the first":    {r.text(r.rows[:1]), 1},
			"cut behind the first row": {r.text(r.rows[:1]) + r.rows[1][:3], 1},
		} {
			if r.name == "a route as a whole" && c.want == 1 {
				continue // no token is whole
			}
			if n, err := r.read(strings.NewReader(c.text)); err != nil || n != c.want {
				t.Errorf("%s, %s: %d rows, %v, want %d", r.name, name, n, err, c.want)
			}
		}
	}
}

// What cannot be read is refused with the line.
func TestEveryReaderRefuses(t *testing.T) {
	for _, r := range readers {
		rows := func(change func([]string) []string) string { return r.text(change(append([]string{}, r.rows...))) }
		first := len(r.head) + 1
		lost := strings.Join(append(append([]string{}, r.head[1:]...), r.rows...), "\n") + "\n"
		columns := r.head[len(r.head)-1]
		name, _, _ := strings.Cut(columns, ",")
		cases := map[string][2]string{
			"no preamble":         {lost, "line 1: " + r.what},
			"something else":      {"GGUF\x03\x00\x00\n", "line 1: " + r.what},
			"no columns":          {strings.Join(r.head[:len(r.head)-1], "\n") + "\n", "it ends before"},
			"a column is missing": {strings.Replace(r.text(r.rows), columns, "some"+columns, 1), fmt.Sprintf("line %d: the column %s is missing", first-1, name)},
			"a column twice":      {strings.Replace(r.text(r.rows), columns, columns+","+name, 1), fmt.Sprintf("line %d: the column %s stands twice", first-1, name)},
			"a short row":         {rows(func(s []string) []string { s[1] = "0,1"; return s }), fmt.Sprintf("line %d: 2 cells", first+1)},
			"no number":           {rows(func(s []string) []string { s[1] = "x" + s[1]; return s }), fmt.Sprintf("line %d: %s is \"x", first+1, name)},
			"an endless line":     {r.text(r.rows) + strings.Repeat("1", 1<<17), "longer than 65536 bytes"},
		}
		if r.swapped != [2]int{} {
			cases["a row twice"] = [2]string{rows(func(s []string) []string { return append(s, s[len(s)-1]) }), fmt.Sprintf("line %d: ", first+len(r.rows))}
			cases["rows out of order"] = [2]string{rows(func(s []string) []string {
				a, b := r.swapped[0], r.swapped[1]
				s[a], s[b] = s[b], s[a]
				return s
			}), fmt.Sprintf("line %d: ", first+min(r.swapped[0]+1, r.swapped[1]))}
		}
		for name, c := range cases {
			if n, err := r.read(strings.NewReader(c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
				t.Errorf("%s, %s: %d rows, %v, want %q", r.name, name, n, err, c[1])
			}
		}
	}
}
