// Package crash catches panics on goroutines that nobody waits for, and writes
// reports of what ended the program.
//
// A panic that nobody recovers ends the process where it happens, with the
// terminal in whatever state it was. So every goroutine of the program begins
// with a deferred Catch, and the program says once, with Handle, how it wants
// to end.
package crash

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// Panic is a panic that was caught.
type Panic struct {
	Where string // the goroutine, in a word or two: lane, compute worker
	Value any    // what was passed to panic
	Stack []byte // of that goroutine
}

// handler is what the program does about a panic; nil lets it take its course.
var handler atomic.Pointer[func(*Panic)]

// Handle sets what is done about panics. f is called on the goroutine that
// panicked, possibly on several at once, and must not return. Until Handle is
// called, panics take their course.
func Handle(f func(*Panic)) { handler.Store(&f) }

// Catch is deferred, first thing, by every goroutine that is started; where
// names it.
func Catch(where string) {
	f := handler.Load()
	if f == nil {
		return
	}
	if v := recover(); v != nil {
		(*f)(New(where, v, debug.Stack()))
	}
}

// stacked is a panic that has been carried to another goroutine together with
// the stack on which it happened, as a compute worker's is.
type stacked interface {
	PanicValue() any
	PanicStack() []byte
}

// New describes a panic by its value and the stack at hand. A value that has
// been carried here from another goroutine brings its own stack along.
func New(where string, value any, stack []byte) *Panic {
	p := &Panic{Where: where, Value: value, Stack: stack}
	if s, ok := value.(stacked); ok {
		p.Value, p.Stack = s.PanicValue(), s.PanicStack()
	}
	return p
}

// String is the panic in one line, without texts that it may quote.
func (p *Panic) String() string {
	text := ""
	switch v := p.Value.(type) {
	case runtime.Error:
		text = v.Error()
	case error:
		text = fmt.Sprintf("%T: %v", v, v)
	case string:
		text = v
	default:
		text = fmt.Sprintf("%T", v) // fmt would show all that it holds
	}
	return p.Where + ": " + Unquoted(text)
}
