package chat

import (
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"bmoe/engine/chat/jinja"
)

// A message may spell out a special token: a user who asks what <|im_end|> means,
// or a page that a tool has read. That text must not end its own turn. But the
// template writes the same text for good, and may trim, split or repeat what it is
// given, so places in a message are no places in the prompt. Therefore one
// character of each such text is replaced by a stand-in before rendering, which
// the template cannot tell from the character itself, and the stand-ins that come
// out are the places where the prompt holds no special token.

// Prompt is a rendered conversation.
type Prompt struct {
	Text string
	// Plain are the byte offsets in Text, ascending, of characters that came out of
	// a message as part of a special token's text: no token may be parsed over one.
	Plain []int
}

// errNoStandIn is what a message must do that cannot be rendered safely.
var errNoStandIn = errors.New("the messages spell out special tokens and use every control character there is: " +
	"take the control characters out, or set {parse-special=on}")

// plainContents returns the context with stand-ins in its messages, and the
// characters that they stand for. find returns the places where a text spells out
// a special token; source is the template's.
func plainContents(vars Values, source string, find func(string) [][2]int) (Values, map[rune]rune, error) {
	messages, _ := vars.Get("messages")
	hide := hider{find: find, standIn: map[rune]rune{}}
	hide.each(messages) // which characters need one
	if len(hide.standIn) == 0 {
		return vars, nil, nil
	}
	originals, ok := hide.choose(source)
	if !ok {
		return nil, nil, errNoStandIn
	}
	out := vars.Clone()
	out.Set("messages", hide.each(messages))
	return out, originals, nil
}

// hider puts stand-ins into messages.
type hider struct {
	find    func(string) [][2]int
	standIn map[rune]rune // by what it stands for; 0 as long as it is not chosen
	seen    strings.Builder
}

// each returns a copy of the messages with stand-ins. A role is the program's own
// word. What the model itself has said may hold the marks of its reasoning.
func (h *hider) each(messages any) any {
	list, ok := messages.(*jinja.List)
	if !ok {
		return messages
	}
	out := jinja.NewList()
	for _, m := range list.Items {
		role, fields := any(nil), m
		if d, ok := m.(*jinja.Dict); ok {
			role, _ = d.Get("role")
		}
		fields = jinja.MapStrings(m, func(s string) string { return h.text(s, role == Assistant) })
		if d, ok := fields.(*jinja.Dict); ok && role != nil {
			d.Set("role", role)
		}
		out.Items = append(out.Items, fields)
	}
	return out
}

// text replaces one character of every special token's text in s.
func (h *hider) text(s string, marks bool) string {
	h.seen.WriteString(s)
	spans := h.find(s)
	if len(spans) == 0 {
		return s
	}
	b, done := strings.Builder{}, 0 // s[:done] is in b
	for _, span := range spans {
		token := s[span[0]:span[1]]
		if marks && Shown(token) {
			continue
		}
		i, r := hideable(token)
		at := span[0] + i
		if i < 0 || at < done {
			continue // nothing to replace, or an overlapping token's own: this one is broken by it, or ends before
		}
		b.WriteString(s[done:at])
		if stand := h.standIn[r]; stand != 0 {
			b.WriteRune(stand)
		} else {
			h.standIn[r] = 0
			b.WriteRune(r)
		}
		done = at + utf8.RuneLen(r)
	}
	return b.String() + s[done:]
}

// Shown reports whether a special token that a model says is for the reader of its
// answer: a part of the marks around its thoughts, or a mark of a tool call, which would
// else look like words out of nowhere.
func Shown(token string) bool {
	if len(token) < 4 { // no mark, but a part of many
		return false
	}
	for _, tag := range thinkTags {
		if strings.Contains(tag.open, token) || strings.Contains(tag.close, token) {
			return true
		}
	}
	lower := strings.ToLower(token)
	return strings.Contains(lower, "tool") || token == "[ARGS]" || token == "[CALL_ID]"
}

// hideable returns the character of a token that takes the least harm from a
// stand-in: one that no template changes the case of, quotes or trims.
func hideable(token string) (at int, r rune) {
	for i, r := range token {
		if r > ' ' && r < utf8.RuneSelf && r != '"' && r != '\'' && r != '\\' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return i, r
		}
	}
	for i, r := range token {
		if r != utf8.RuneError {
			return i, r
		}
	}
	return -1, 0
}

// choose gives every character that needs one a stand-in of the same length that
// occurs neither in the messages nor in the template.
func (h *hider) choose(source string) (originals map[rune]rune, ok bool) {
	originals = map[rune]rune{}
	used := h.seen.String() + source
	next := map[int]rune{}
	for _, r := range slices.Sorted(keys(h.standIn)) {
		n := utf8.RuneLen(r)
		for c, ok := next[n], true; ; {
			if c, ok = following(n, c); !ok {
				return nil, false
			}
			if !strings.ContainsRune(used, c) {
				h.standIn[r], originals[c], next[n] = c, r, c
				break
			}
		}
	}
	return originals, true
}

func keys(m map[rune]rune) func(func(rune) bool) {
	return func(yield func(rune) bool) {
		for r := range m {
			if !yield(r) {
				return
			}
		}
	}
}

// following returns the candidate behind c among characters of n bytes that no
// text needs and no template takes for white space; the first one behind 0.
func following(n int, c rune) (rune, bool) {
	first := [...]rune{1: 0x7F, 2: 0x80, 3: 0xE000, 4: 0x100000}[n]
	last := [...]rune{1: 0x1B, 2: 0x9F, 3: 0xF8FF, 4: 0x10FFFD}[n]
	switch {
	case c == 0:
		return first, true
	case c == last:
		return 0, false
	case c == 0x7F:
		return 0x01, true
	case c == 0x08: // up to \r they are white space
		return 0x0E, true
	case c == 0x84: // U+0085 is a line end
		return 0x86, true
	}
	return c + 1, true
}

// uncover turns what a template wrote with stand-ins into a prompt.
func uncover(text string, originals map[rune]rune) Prompt {
	if len(originals) == 0 {
		return Prompt{Text: text}
	}
	var p Prompt
	var b strings.Builder
	b.Grow(len(text))
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if original, ok := originals[r]; ok {
			p.Plain = append(p.Plain, i)
			b.WriteRune(original)
		} else {
			b.WriteString(text[i : i+n]) // also what is no UTF-8
		}
		i += n
	}
	p.Text = b.String()
	return p
}
