package tui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"bmoe/engine/backend"
	"bmoe/internal/durable"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"

	tea "charm.land/bubbletea/v2"
)

// outgoing is a message as the user made it: what was typed, and the files that go
// with it.
type outgoing struct {
	text  string
	files []attachment
	// edits says that it takes the place of the last message, again that the model shall
	// answer that anew.
	edits, again bool
}

// attachment is a text file that goes with a message.
type attachment struct {
	name, text string
}

// A token of text has about so many bytes; a file that could not fit if it had the most
// is refused.
const (
	bytesPerToken     = 4
	mostBytesPerToken = 10
	mostFile          = 16 * units.MiB
)

func (a *attachment) String() string {
	return fmt.Sprintf("%s, %s", a.name, units.FileSize(int64(len(a.text))))
}

// tokens is about how many tokens the files of a message have.
func (o *outgoing) tokens() (n int64) {
	for i := range o.files {
		n += int64(len(o.files[i].text)+bytesPerToken-1) / bytesPerToken
	}
	return n
}

// message is what the model gets: the files, each between fences that it does not
// hold itself, and what was typed.
func (o *outgoing) message() string {
	var b strings.Builder
	for _, f := range o.files {
		fence := "```"
		for strings.Contains(f.text, fence) {
			fence += "`"
		}
		fmt.Fprintf(&b, "File %s:\n%s\n%s\n%s\n\n", f.name, fence, strings.TrimRight(f.text, "\n"), fence)
	}
	return b.String() + o.text
}

// shown is what the chat shows of it.
func (o *outgoing) shown() string {
	s := o.text
	for i := range o.files {
		s += "\n[" + o.files[i].String() + "]"
	}
	return s
}

// attached tells of the files of the next message, and of the room for them.
func attached(files []attachment, s *profile.Snapshot) string {
	o := outgoing{files: files}
	var names []string
	for i := range files {
		names = append(names, files[i].String())
	}
	text := strings.Join(names, "; ") + fmt.Sprintf(": about %d tokens", o.tokens())
	if s.Ctx == 0 {
		return text
	}
	left := max(s.Ctx-s.CtxUsed, 0)
	text += fmt.Sprintf(", %d left", left)
	if o.tokens() > int64(left) {
		text += "; they may not fit: /new makes room"
	}
	return text
}

// attach has a file read for the next message.
func (m *Model) attach(arg string) tea.Cmd {
	switch {
	case arg == "" && len(m.files) == 0:
		m.say(m.th.Read, "usage: /file PATH adds a text file to the next message; /file off takes it back")
	case arg == "":
		m.say(m.th.Accent, term.CleanLine(attached(m.files, m.live)))
	case arg == backend.Off:
		m.files = nil
		m.say(m.th.Accent, "no file goes with the next message")
	default:
		ctx := m.live.Ctx
		return guarded("file", func() tea.Msg {
			a, err := readFile(arg, ctx)
			return fileMsg{a, err}
		})
	}
	return nil
}

// onFile takes a file that was read.
func (m *Model) onFile(msg fileMsg) {
	if msg.err != nil {
		m.say(m.th.Read, term.CleanLine(msg.err.Error()))
		return
	}
	m.files = append(m.files, msg.a)
	m.say(m.th.Accent, term.CleanLine("with the next message: "+attached(m.files, m.live)))
}

// readFile reads a text file that goes with a message, for a context of so many tokens.
func readFile(path string, ctx int) (attachment, error) {
	path = inHome(path)
	refuse := func(format string, args ...any) (attachment, error) {
		return attachment{}, fmt.Errorf("%s "+format, append([]any{filepath.Base(path)}, args...)...)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist): // systems word it in their own ways
		return attachment{}, fmt.Errorf("%s: no such file", path)
	case err != nil:
		return attachment{}, fmt.Errorf("%s: %w", path, durable.Cause(err))
	}
	if !info.Mode().IsRegular() {
		return refuse("is not a file")
	}
	most := int64(mostFile)
	if ctx > 0 {
		most = min(most, int64(ctx)*mostBytesPerToken)
	}
	tooLong := func(size int64) (attachment, error) {
		if ctx == 0 {
			return refuse("has %s: at most %s are read", units.FileSize(size), units.FileSize(most))
		}
		return refuse("has %s, about %d tokens: the context holds %d", units.FileSize(size), size/bytesPerToken, ctx)
	}
	if info.Size() > most {
		return tooLong(info.Size())
	}
	f, err := os.Open(path)
	if err != nil {
		return attachment{}, err
	}
	defer f.Close() // opened for reading: nothing is lost if closing fails
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return attachment{}, err
	case int64(len(b)) > most: // it has grown
		return tooLong(int64(len(b)))
	case len(bytes.TrimSpace(b)) == 0:
		return refuse("is empty")
	case bytes.IndexByte(b, 0) >= 0 || !utf8.Valid(b):
		return refuse("is not text (UTF-8)")
	}
	return attachment{filepath.Base(path), term.Clean(string(b))}, nil
}

// inHome is a path with ~ spelled out.
func inHome(path string) string {
	if home, err := os.UserHomeDir(); err == nil && strings.HasPrefix(path, "~/") {
		return filepath.Join(home, path[2:])
	}
	return path
}

// inPlace is noted before a message that takes another's place.
const inPlace = "in place of the last message:"

var errNotKeeper = errors.New("what is open here cannot go back in a conversation")

// before returns a conversation as it was before its last message, and that message.
func before(c backend.Chat) (backend.Chat, string, bool) {
	for i := len(c.Messages) - 1; i >= 0; i-- {
		if msg := c.Messages[i]; msg.Role == "user" {
			c.Messages = c.Messages[:i:i]
			return c, msg.Text, true
		}
	}
	return c, "", false
}

// lastMessage is the last message that a model was told, as the user made it; sent is
// the last one that the user made.
func lastMessage(b backend.Backend, sent *outgoing) (outgoing, error) {
	k, ok := b.(backend.Keeper)
	if !ok {
		return outgoing{}, errNotKeeper
	}
	_, text, ok := before(k.Chat())
	if !ok {
		return outgoing{}, errors.New("nothing has been said yet")
	}
	if sent.message() == text {
		return outgoing{text: sent.text, files: sent.files}, nil
	}
	return outgoing{text: text}, nil
}

// generate has a message answered.
func (o *outgoing) generate(ctx context.Context, eng backend.Backend, onDelta func(backend.Delta)) (*backend.Run, error) {
	q := backend.Request{Text: o.message(), OnDelta: onDelta}
	if !o.edits && !o.again {
		return eng.Generate(ctx, q)
	}
	k, ok := eng.(backend.Keeper)
	if !ok {
		return nil, errNotKeeper
	}
	whole := k.Chat()
	c, _, _ := before(whole)
	k.SetChat(c)
	r, err := eng.Generate(ctx, q)
	if r == nil { // refused: the conversation is as it was
		k.SetChat(whole)
	}
	return r, err
}

// edit brings the last message back to the prompt; what is sent then takes its place.
// With a text that is sent at once.
func (m *Model) edit(text string) tea.Cmd {
	if m.state != idle {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return nil
	}
	o, err := lastMessage(m.eng, &m.sent)
	if err != nil {
		m.say(m.th.Read, err.Error())
		return nil
	}
	if text != "" {
		o.text, o.edits = text, true
		return m.send(o)
	}
	m.editing, m.files = true, o.files
	m.setFocus(onPrompt)
	m.draft(o.text)
	return nil
}

const regenerateUsage = "usage: /regenerate, with another seed; /regenerate same, with the same one"

// anew says how a message will be answered anew: with which seed, if it is another one.
func anew(rows []backend.Setting, same bool) (note, seed string) {
	row, temp := backend.Find(rows, "seed"), backend.Find(rows, "temp")
	if row == nil || !row.Live {
		return "answered anew; what is open here has no seed to change", ""
	}
	n, err := strconv.ParseUint(row.Value, 10, 63)
	switch {
	case err != nil:
		return "answered anew; the seed is left to what is open here", ""
	case temp != nil && temp.Value == "0":
		return "answered anew without chance (temp 0): the text changes only where settings have; /temp 0.7 gives others", ""
	case same:
		return "answered anew with the same seed, " + row.Value, ""
	}
	seed = strconv.FormatUint(n+1, 10)
	return "answered anew with seed " + seed + "; before it was " + row.Value, seed
}

// regenerate has the last message answered anew: with another seed, or the same.
func (m *Model) regenerate(arg string) tea.Cmd {
	if arg != "" && arg != "same" {
		m.say(m.th.Read, regenerateUsage)
		return nil
	}
	if m.state != idle {
		m.say(m.th.Read, "not now: "+m.busyWith())
		return nil
	}
	o, err := lastMessage(m.eng, &m.sent)
	if err != nil {
		m.say(m.th.Read, err.Error())
		return nil
	}
	o.again = true
	note, seed := anew(m.settings, arg == "same")
	m.chat.Note(m.now(), false, note)
	if seed != "" {
		m.queued = &o
		return m.wish(backend.Find(m.settings, "seed"), seed)
	}
	return m.send(o)
}

// takeBack puts a message that was not sent into the prompt, before what is typed there.
func (m *Model) takeBack(o *outgoing) {
	text := o.text
	if v := m.prompt.Value(); strings.TrimSpace(v) != "" {
		text += "\n" + v
	}
	m.editing = o.edits
	m.files = append(o.files, m.files...)
	m.draft(text)
}

// mostCopied bounds what is handed to the terminal's clipboard: terminals drop what is
// longer.
const mostCopied = 64 << 10

// copyAnswer hands the last answer to the terminal, as the model wrote it.
func (m *Model) copyAnswer() tea.Cmd {
	text, ok := m.chat.LastAnswer()
	switch {
	case !ok:
		m.say(m.th.Read, "no answer to copy yet")
		return nil
	case len(text) > mostCopied:
		m.say(m.th.Read, fmt.Sprintf("the answer has %s, and terminals take about %s: /export FILE writes it", units.FileSize(int64(len(text))), units.FileSize(mostCopied)))
		return nil
	}
	what := "the answer"
	if m.state == generating {
		what = "the answer so far"
	}
	m.say(m.th.Accent, fmt.Sprintf("%s is copied, %s, if the terminal allows it (OSC 52)", what, units.Plural(int64(utf8.RuneCountInString(text)), "character")))
	return tea.SetClipboard(text)
}

// nearlyFull notes once that the context fills up.
func (m *Model) nearlyFull(used, ctx int) {
	full := ctx > 0 && int64(used)*5 >= int64(ctx)*4
	if full && !m.toldFull {
		m.chat.Note(m.now(), true, fmt.Sprintf("the context is %s full, %d of %d tokens: once it is, the oldest turns are dropped; /new begins anew", units.Share(float64(used)/float64(ctx)), used, ctx))
	}
	m.toldFull = full
}
