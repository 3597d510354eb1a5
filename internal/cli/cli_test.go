package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Each way to end has its code, wherever in the chain the reason stands, and at most
// one line that a terminal cannot be made to obey.
func TestFinish(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		said string
	}{
		{nil, Done, ""},
		{fmt.Errorf("report: %w", ErrStdoutClosed), Done, ""},
		{fmt.Errorf("open: %w", context.Canceled), Interrupted, ""},
		{Usagef("--lanes %d: too many", 99), Usage, "x: --lanes 99: too many (--help lists the flags)\n"},
		{fmt.Errorf("plan: %w", Usagef("no")), Usage, "x: plan: no (--help lists the flags)\n"},
		{errors.New("open a\x1b[31m: no such file"), Failed, "x: open a^[[31m: no such file\n"},
		{errors.Join(errors.New("one"), errors.New("two")), Failed, "x: one two\n"},
	} {
		var said strings.Builder
		if code := Finish(&said, "x", c.err); code != c.code || said.String() != c.said {
			t.Errorf("%v: exit code %d, %q; want %d, %q", c.err, code, said.String(), c.code, c.said)
		}
	}
}

// full is a drive without room.
type full struct{ writes int }

func (f *full) Write([]byte) (int, error) { f.writes++; return 0, errors.New("no space left") }

// What cannot be written is an error, and nothing is written after it.
func TestOutputRemembersItsError(t *testing.T) {
	f := &full{}
	out := NewOutput(f)
	for range 2 {
		if err := out.Text("x"); err == nil || ExitCode(err) != Failed || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("a full drive: %v", err)
		}
	}
	if f.writes != 1 {
		t.Errorf("%d writes", f.writes)
	}
}
