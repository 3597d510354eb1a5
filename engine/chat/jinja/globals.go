package jinja

import (
	"fmt"
	"strings"
	"time"
)

// maxRange is the length of the longest range(), as in Jinja's sandbox.
const maxRange = 100000

// globals are the names that a template finds beside its context.
func (st *state) globals() *scope {
	sc := &scope{}
	for _, g := range []function{
		{"range", globalRange},
		{"dict", globalDict},
		{"namespace", func(st *state, a *arguments) any { return &Namespace{globalDict(st, a).(*Dict)} }},
		{"joiner", globalJoiner},
		{"strftime_now", func(st *state, a *arguments) any {
			format := st.stringArg(a, 0, "format")
			st.alloc(32 * len(format))
			st.charge(len(format))
			return strftime(st.now, format)
		}},
		{"raise_exception", func(st *state, a *arguments) any {
			v, _ := a.take(0, "message")
			panic(&Error{Line: st.line, Msg: st.str(v), Raised: true})
		}},
	} {
		sc.set(g.name, &g)
	}
	return sc
}

func globalDict(st *state, a *arguments) any {
	d := NewDict()
	dictUpdate(st, d, a)
	return d
}

// globalJoiner makes a function that returns nothing at first, and then the
// separator.
func globalJoiner(st *state, a *arguments) any {
	used, sep := false, st.textArg(a, 0, "sep", ", ")
	return &function{"joiner", func(*state, *arguments) any {
		if !used {
			used = true
			return ""
		}
		return sep
	}}
}

func globalRange(st *state, a *arguments) any {
	start, stop, step := int64(0), st.intArg(a, 0, "stop", 0), int64(1)
	if len(a.plain) > 1 {
		start, stop, step = stop, st.intArg(a, 1, "stop", 0), st.intArg(a, 2, "step", 1)
	}
	if step == 0 {
		fail(st.line, "range: the step is 0")
	}
	l := &List{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if len(l.Items) == maxRange {
			fail(st.line, "range: more than %d items", maxRange)
		}
		st.step()
		l.Items = append(l.Items, i)
		if next := i + step; (next > i) != (step > 0) {
			break // overflow
		}
	}
	return l
}

// strftime writes a time as C's strftime in the C locale does.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		plain := format[i] == '-' && i+1 < len(format) // %-d: without zeros in front
		if plain {
			i++
		}
		text := directive(t, format[i])
		if plain && len(text) > 1 {
			text = strings.TrimLeft(text[:len(text)-1], "0 ") + text[len(text)-1:]
		}
		b.WriteString(text)
	}
	return b.String()
}

func directive(t time.Time, c byte) string {
	hour12 := (t.Hour()+11)%12 + 1
	weekday := int(t.Weekday())
	year, week := t.ISOWeek()
	switch c {
	case 'a', 'A', 'b', 'h', 'B', 'p', 'Z', 'z':
		return t.Format(map[byte]string{'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'p': "PM", 'Z': "MST", 'z': "-0700"}[c])
	case 'd':
		return fmt.Sprintf("%02d", t.Day())
	case 'e':
		return fmt.Sprintf("%2d", t.Day())
	case 'm':
		return fmt.Sprintf("%02d", int(t.Month()))
	case 'y':
		return fmt.Sprintf("%02d", t.Year()%100)
	case 'Y':
		return fmt.Sprintf("%d", t.Year())
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'G':
		return fmt.Sprintf("%d", year)
	case 'V':
		return fmt.Sprintf("%02d", week)
	case 'H':
		return fmt.Sprintf("%02d", t.Hour())
	case 'I':
		return fmt.Sprintf("%02d", hour12)
	case 'M':
		return fmt.Sprintf("%02d", t.Minute())
	case 'S':
		return fmt.Sprintf("%02d", t.Second())
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000)
	case 'j':
		return fmt.Sprintf("%03d", t.YearDay())
	case 'u':
		return fmt.Sprintf("%d", (weekday+6)%7+1)
	case 'w':
		return fmt.Sprintf("%d", weekday)
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-weekday)/7)
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(weekday+6)%7)/7)
	case 's':
		return fmt.Sprintf("%d", t.Unix())
	case 'D', 'x':
		return strftime(t, "%m/%d/%y")
	case 'F':
		return strftime(t, "%Y-%m-%d")
	case 'T', 'X':
		return strftime(t, "%H:%M:%S")
	case 'R':
		return strftime(t, "%H:%M")
	case 'r':
		return strftime(t, "%I:%M:%S %p")
	case 'c':
		return strftime(t, "%a %b %e %H:%M:%S %Y")
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case '%':
		return "%"
	}
	return "%" + string(rune(c))
}
