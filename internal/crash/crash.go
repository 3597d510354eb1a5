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
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
)

// Panic is a panic that was caught.
type Panic struct {
	Where string // the goroutine, in a word or two: lane, compute worker
	Value any    // what was passed to panic; it may hold a prompt
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

// String says in one line what kind of panic it was and where. Of what was passed
// to panic it tells the type only, unless the runtime made it: texts are built of
// others, and a prompt may be among them.
func (p *Panic) String() string {
	kind := fmt.Sprintf("%T", p.Value)
	what := "panic with a value of type " + kind
	if v, ok := p.Value.(runtime.Error); ok && strings.HasPrefix(strings.TrimPrefix(kind, "*"), "runtime.") {
		what = v.Error()
	}
	if at := place(string(p.Stack)); at != "" {
		what += " in " + at
	}
	return p.Where + ": " + what
}

// place finds the function that panicked in a stack, with its file and line.
func place(stack string) string {
	_, stack, ok := strings.Cut(stack, "\npanic(")
	if !ok {
		return ""
	}
	lines := strings.Split(stack, "\n")[1:] // the rest of that line
	for i := 1; i+1 < len(lines); i += 2 {  // the first one is panic's file
		name := lines[i]
		if strings.HasPrefix(name, "runtime.") { // what panics for the program, as an index out of range does
			continue
		}
		if end := strings.LastIndexByte(name, '('); end > 0 {
			name = name[:end]
		}
		file, _, _ := strings.Cut(strings.TrimSpace(lines[i+1]), " ")
		return name + " (" + filepath.Base(file) + ")"
	}
	return ""
}

// DebugVariable names the environment variable that shows what was passed to
// panic, and the stack.
const DebugVariable = "BMOE_DEBUG"

// telling is held by the first panic, which ends the program.
var telling sync.Mutex

// Tell does what a program named so does before it ends by a panic: restore gives
// back what it holds, unless it is nil, a report is written, and one line on
// standard error says so. Only the first call returns.
func (p *Panic) Tell(name, version string, restore func()) {
	telling.Lock()
	if restore != nil {
		restore()
	}
	fmt.Fprintf(os.Stderr, "%s: failed within itself: %s (please report this; %s)\n", name, p, told(p.report(version)))
	if os.Getenv(DebugVariable) != "" {
		fmt.Fprintf(os.Stderr, "panic: %+q\n\n%s", fmt.Sprint(p.Value), p.Stack)
	}
}
