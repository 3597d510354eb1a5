package chat

import (
	"strings"
	"unicode"
)

// thinkTags are the marks that models put around what they think before they
// answer.
var thinkTags = []struct{ open, close string }{
	{"<think>", "</think>"},                               // Qwen, DeepSeek, GLM and most others
	{"<seed:think>", "</seed:think>"},                     // Seed-OSS
	{"<think:opensource>", "</think:opensource>"},         // Hy3
	{"<mm:think>", "</mm:think>"},                         // MiniMax-M3
	{"[THINK]", "[/THINK]"},                               // Ministral
	{"<|channel>thought", "<channel|>"},                   // Gemma 4
	{"<|START_THINKING|>", "<|END_THINKING|>"},            // Cohere
	{"<|think|>", "<|end|><|begin|>assistant<|content|>"}, // Solar Open
}

// Reasoning divides a streamed answer into what the model thought and what it
// said. The tags may come in pieces. An opening tag counts only before the answer
// has begun; later it is text that happens to look like one.
type Reasoning struct {
	close    string // ends the thought that is going on; "" outside
	thought  bool   // there was one, or is
	answered bool   // the answer has begun
	turned   bool   // what had come as the answer was the thought; until it is told
	held     string // may become a tag, or white space that may belong to one

	harmony *harmony // takes the place of all above for a prompt in that format

	reasoning, content strings.Builder // what has come so far
}

// NewReasoning begins with the answer to a rendered prompt. Some templates open
// the thought themselves, at the end of the prompt.
func NewReasoning(prompt string) *Reasoning {
	r := &Reasoning{harmony: newHarmony(prompt)}
	prompt = strings.TrimRightFunc(prompt, unicode.IsSpace)
	for _, tag := range thinkTags {
		if strings.HasSuffix(prompt, tag.open) {
			r.close, r.thought = tag.close, true
		}
		if strings.HasSuffix(prompt, tag.close) {
			r.thought = true // an empty one: it is to answer at once
		}
	}
	return r
}

// Message returns what has come so far, as the message of an assistant.
func (r *Reasoning) Message() Message {
	return Message{Role: Assistant, Content: r.content.String(), Reasoning: r.reasoning.String()}
}

// Push adds a delta of the answer and returns what is certain now of both parts.
func (r *Reasoning) Push(delta string) (thought, text string) { return r.take(delta, false) }

// Flush ends the answer and returns what was held back.
func (r *Reasoning) Flush() (thought, text string) { return r.take("", true) }

func (r *Reasoning) take(delta string, final bool) (thought, text string) {
	if r.harmony != nil {
		thought, text = r.harmony.take(delta, final)
		r.reasoning.WriteString(thought)
		r.content.WriteString(text)
		return thought, text
	}
	rest := r.held + delta
	r.held = ""
	for rest != "" {
		var part string
		switch {
		case r.close != "":
			part, rest = r.inside(rest, final)
			thought += part
		case r.answered && r.thought:
			text, rest = text+rest, ""
		case r.answered:
			var late string
			late, part, rest = r.lone(rest, final)
			thought, text = thought+late, text+part
		default:
			var late string
			late, part, rest = r.outside(rest, final)
			thought, text = thought+late, text+part
		}
	}
	r.reasoning.WriteString(thought)
	r.content.WriteString(text)
	return thought, text
}

// inside returns the part of s that belongs to the thought, and what comes behind
// its end. Line ends at both ends of a thought belong to its tags.
func (r *Reasoning) inside(s string, final bool) (part, rest string) {
	if r.reasoning.Len() == 0 {
		s = strings.TrimLeft(s, "\n")
	}
	if before, after, ok := strings.Cut(s, r.close); ok {
		r.close = ""
		return strings.TrimRight(before, "\n"), after
	}
	if final {
		return strings.TrimRight(s, "\n"), ""
	}
	keep := len(strings.TrimRight(s[:len(s)-partial(s, r.close)], "\n"))
	r.held = s[keep:]
	return s[:keep], ""
}

// outside looks for an opening tag at the beginning of the answer. White space
// between a thought and the answer belongs to neither.
func (r *Reasoning) outside(s string, final bool) (thought, part, rest string) {
	start := strings.TrimLeftFunc(s, unicode.IsSpace)
	for _, tag := range thinkTags {
		if after, ok := strings.CutPrefix(start, tag.open); ok {
			r.close, r.thought = tag.close, true
			return "", "", after
		}
		if !final && strings.HasPrefix(tag.open, start) { // also if start is empty
			r.held = s
			return "", "", ""
		}
	}
	r.answered = true
	if r.thought {
		return "", start, ""
	}
	return r.lone(s, final)
}

// lone looks for the end of a thought that nothing has opened: some models begin to
// think without saying so. What has come by then was the thought: Turned tells whoever
// has shown it as the answer.
func (r *Reasoning) lone(s string, final bool) (thought, part, rest string) {
	keep := len(s)
	for _, tag := range thinkTags {
		if before, after, ok := strings.Cut(s, tag.close); ok {
			if strings.Contains(r.content.String()+before, tag.open) {
				r.thought = true // the answer speaks of such marks: from here on none is looked for
				return "", s, ""
			}
			r.thought, r.answered, r.turned = true, false, true
			before = strings.TrimRight(before, "\n")
			shown := r.content.String()
			if before == "" {
				shown = strings.TrimRight(shown, "\n")
			}
			r.reasoning.WriteString(shown)
			r.content.Reset()
			return before, "", after
		}
		if !final {
			keep = min(keep, len(s)-partial(s, tag.close))
		}
	}
	r.held = s[keep:]
	return "", s[:keep], ""
}

// Turned reports, once, that all that had come as the answer was a thought.
func (r *Reasoning) Turned() bool {
	turned := r.turned
	r.turned = false
	return turned
}

// partial returns the length of the longest end of s that tag begins with.
func partial(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasSuffix(s, tag[:n]) {
			return n
		}
	}
	return 0
}
