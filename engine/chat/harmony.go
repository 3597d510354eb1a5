package chat

import (
	"strings"
	"unicode"
)

// The marks of gpt-oss's format, harmony. An answer is one or more messages, each
// "header <|message|> body" and an end; <|start|> begins the next one. The header
// names a role, a channel behind <|channel|>, and a recipient behind to= if the
// message calls a tool. <|call|> and <|return|> end the generation.
const (
	markStart     = "<|start|>"
	markChannel   = "<|channel|>"
	markConstrain = "<|constrain|>"
	markMessage   = "<|message|>"
	markEnd       = "<|end|>"
)

var harmonyMarks = []string{markStart, markChannel, markConstrain, markMessage, markEnd, "<|call|>", "<|return|>"}

// longHeader is how many bytes of a header are waited for. What goes on without
// a body is the answer of a model that has lost the format.
const longHeader = 160

// harmony takes an answer in that format apart: the analysis channel is what the
// model thought, and everything else is for the reader, tool calls with the
// tool's name before them.
type harmony struct {
	inBody  bool
	thinks  bool   // the body belongs to the thought
	started bool   // a role comes first in the header
	header  string // of the message that begins, its marks included
	held    string // may become a mark
	// What goes before the body's first text: the space to the message before it,
	// and a tool's name.
	before string

	thought, text strings.Builder // of one take
	both          [2]bool         // something of the thought, of the text has come
}

// newHarmony begins behind a prompt, or returns nil if the prompt does not end
// with the beginning of a harmony message.
func newHarmony(prompt string) *harmony {
	at := strings.LastIndex(prompt, markStart)
	if at < 0 {
		return nil
	}
	rest, ok := strings.CutPrefix(prompt[at+len(markStart):], Assistant)
	if !ok {
		return nil
	}
	h := &harmony{}
	h.take(rest, false) // some prompts begin the message's header too
	return h
}

// take adds a delta and returns what is certain now of both parts.
func (h *harmony) take(delta string, final bool) (thought, text string) {
	h.thought.Reset()
	h.text.Reset()
	rest := h.held + delta
	h.held = ""
	for rest != "" {
		at, mark := firstMark(rest)
		if mark == "" {
			keep := len(rest)
			if !final {
				for _, m := range harmonyMarks {
					keep = min(keep, len(rest)-partial(rest, m))
				}
			}
			h.plain(rest[:keep])
			h.held = rest[keep:]
			break
		}
		h.plain(rest[:at])
		h.mark(mark)
		rest = rest[at+len(mark):]
	}
	if final && !h.inBody && !h.started && h.channel() < 0 && !strings.HasPrefix(strings.TrimSpace(h.header), "to=") {
		h.lost()
	}
	return h.thought.String(), h.text.String()
}

// firstMark returns the first mark in s and its place.
func firstMark(s string) (at int, mark string) {
	at = len(s)
	for _, m := range harmonyMarks {
		if i := strings.Index(s[:min(len(s), at+len(m))], m); i >= 0 && i < at {
			at, mark = i, m
		}
	}
	return at, mark
}

// channel returns the place of the channel's mark in the header, or -1.
func (h *harmony) channel() int { return strings.Index(h.header, markChannel) }

// plain adds text without marks.
func (h *harmony) plain(s string) {
	switch {
	case s == "":
	case h.inBody:
		h.write(s)
	default:
		h.header += s
		begin := strings.TrimLeftFunc(h.header, unicode.IsSpace)
		header := h.started || h.channel() >= 0 || strings.HasPrefix("to=", begin) || strings.HasPrefix(begin, "to=")
		if !header || len(h.header) > longHeader {
			h.lost()
		}
	}
}

// lost makes text of what should have been a header.
func (h *harmony) lost() {
	s := h.header
	for _, m := range harmonyMarks {
		s = strings.ReplaceAll(s, m, " ")
	}
	h.open(false, "")
	if s != "" {
		h.write(s)
	}
}

// mark acts on a mark.
func (h *harmony) mark(m string) {
	switch m {
	case markMessage:
		if h.inBody {
			return // between two pieces of text it means nothing
		}
		name, recipient := h.read()
		h.open(name == "analysis" && recipient == "", recipient)
	case markChannel, markConstrain:
		if h.inBody {
			if m == markConstrain {
				return
			}
			h.close(true) // the end of the message before is missing
		}
		h.header += m
	case markStart:
		h.close(true)
	default:
		h.close(false)
	}
}

// close ends a message.
func (h *harmony) close(started bool) { h.inBody, h.started, h.header = false, started, "" }

// read takes the channel and the recipient out of the header.
func (h *harmony) read() (channel, recipient string) {
	if at := h.channel(); at >= 0 {
		if words := strings.Fields(strings.ReplaceAll(h.header[at+len(markChannel):], markConstrain, " ")); len(words) > 0 {
			channel = words[0]
		}
	}
	for _, word := range strings.Fields(strings.NewReplacer(markChannel, " ", markConstrain, " ").Replace(h.header)) {
		if to, ok := strings.CutPrefix(word, "to="); ok {
			recipient = to
		}
	}
	return channel, recipient
}

// open begins a body.
func (h *harmony) open(thinks bool, recipient string) {
	h.inBody, h.thinks, h.started, h.header, h.before = true, thinks, false, "", ""
	if recipient != "" {
		h.before = recipient + ": "
	}
	if h.both[h.part()] {
		h.before = "\n\n" + h.before
	}
}

func (h *harmony) part() int {
	if h.thinks {
		return 0
	}
	return 1
}

// write adds text to the part that the body belongs to.
func (h *harmony) write(s string) {
	to := &h.text
	if h.thinks {
		to = &h.thought
	}
	to.WriteString(h.before)
	to.WriteString(s)
	h.before, h.both[h.part()] = "", true
}
