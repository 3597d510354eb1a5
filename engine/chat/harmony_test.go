package chat

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestHarmony(t *testing.T) {
	const prompt = "<|start|>user<|message|>2+2?<|end|><|start|>assistant"
	for _, c := range []struct{ prompt, stream, thought, text string }{
		{prompt, "<|channel|>analysis<|message|>two and two<|end|><|start|>assistant<|channel|>final<|message|>Four.", "two and two", "Four."},
		{prompt, "<|channel|>final<|message|>Four.\n\nSo there. a < b, <|x|> <b>", "", "Four.\n\nSo there. a < b, <|x|> <b>"},
		{prompt + "<|channel|>analysis<|message|>", "hm<|end|><|start|>assistant<|channel|>final<|message|>4", "hm", "4"},
		{prompt + "<|channel|>", "final<|message|>4", "", "4"},
		// Several thoughts, a preamble for the reader, and a call of a tool.
		{prompt, "<|channel|>analysis<|message|>one<|end|><|start|>assistant<|channel|>analysis<|message|>two<|end|>" +
			"<|start|>assistant<|channel|>commentary<|message|>I look it up.<|end|>" +
			"<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"at\": \"Rome\"}",
			"one\n\ntwo", "I look it up.\n\nfunctions.weather: {\"at\": \"Rome\"}"},
		{prompt, " to=functions.f<|channel|>commentary json<|message|>{}<|call|>", "", "functions.f: {}"},
		{prompt, "<|channel|>analysis to=python code<|message|>1+1", "", "python: 1+1"},
		{prompt, "<|channel|>final <|constrain|>json<|message|>{}<|return|>", "", "{}"},
		// Unfinished: what was certain is shown, half a header never.
		{prompt, "<|channel|>analysis<|message|>hm", "hm", ""},
		{prompt, "<|channel|>analysis<|message|>hm<|en", "hm<|en", ""},
		{prompt, "<|channel|>anal", "", ""},
		{prompt, "<|channel|>analysis<|message|>hm<|end|><|start|>assi", "hm", ""},
		{prompt, " to=functions.f", "", ""},
		{prompt, "", "", ""},
		// A model that loses the format is heard all the same.
		{prompt, "Four.", "", "Four."},
		{prompt, "to", "", "to"},
		{prompt, "tomorrow, or <|message|>not", "", "tomorrow, or not"},
		{prompt, "<|channel|>analysis<|message|>hm<|channel|>final<|message|>Four.", "hm", "Four."},
		{prompt, "<|channel|>analysis<|message|>hm<|start|>assistant<|channel|>final<|message|>Four.<|message|>!<|constrain|>?", "hm", "Four.!?"},
		{prompt, "<|message|>Four.", "", "Four."},
		{prompt, "<|channel|>unheard of<|message|>Four.", "", "Four."},
		{prompt, "<|channel|>analysis<|message|>hm<|end|>Four.", "hm", "Four."},
		{prompt, "<|channel|>analysis" + strings.Repeat(" on and on", 20), "", " analysis" + strings.Repeat(" on and on", 20)},
	} {
		for size := 1; size <= max(len(c.stream), 1); size++ {
			r := NewReasoning(c.prompt)
			var thought, text string
			for rest := c.stream; rest != ""; {
				n := min(size, len(rest))
				a, b := r.Push(rest[:n])
				thought, text, rest = thought+a, text+b, rest[n:]
			}
			a, b := r.Flush()
			thought, text = thought+a, text+b
			if thought != c.thought || text != c.text {
				t.Fatalf("%q in pieces of %d: thought %q, text %q; want %q, %q", c.stream, size, thought, text, c.thought, c.text)
			}
			if m := r.Message(); m.Reasoning != thought || m.Content != text {
				t.Errorf("%q in pieces of %d: message %+v", c.stream, size, m)
			}
		}
	}
	// Text comes as soon as it is certain.
	r := NewReasoning(prompt)
	for _, step := range []struct{ push, thought, text string }{
		{"<|channel|>", "", ""}, {"analysis", "", ""}, {"<|message|>", "", ""}, {"hm <", "hm ", ""}, {"b", "<b", ""},
		{"<|end|><|start|>assistant<|channel|>final<|message|>", "", ""}, {"Fo", "", "Fo"},
	} {
		if a, b := r.Push(step.push); a != step.thought || b != step.text {
			t.Errorf("after %q: thought %q, text %q; want %q, %q", step.push, a, b, step.thought, step.text)
		}
	}
	// Other formats have none of it.
	for _, p := range []string{"", "<|im_start|>assistant\n", "<|start|>user<|message|>x<|end|>", "a <|start|> b"} {
		r := NewReasoning(p)
		if _, text := r.Push("<|channel|>final"); text != "<|channel|>final" {
			t.Errorf("after %q a channel is taken for one: %q", p, text)
		}
	}
}

// The template of gpt-oss shows an answer again without its thought, and
// refuses contents with channel marks in them.
func TestHarmonyTemplate(t *testing.T) {
	tmpl := mustParse(t, string(read(t, filepath.Join("jinja", "testdata", "openai-gpt-oss-120b.jinja"))))
	if !tmpl.Reasons() || tmpl.Thinks() {
		t.Errorf("reasons %v, can be told not to %v", tmpl.Reasons(), tmpl.Thinks())
	}
	ask := []Message{{Role: System, Content: "Be brief."}, {Role: User, Content: "2+2?"}}
	asked, err := tmpl.RenderMessages(t.Context(), ask, Options{AddGenerationPrompt: true})
	if err != nil {
		t.Fatal(err)
	}
	prompt := asked.Text
	r := NewReasoning(prompt)
	r.Push("<|channel|>analysis<|message|>two and two<|end|><|start|>assistant<|channel|>final<|message|>Four.")
	r.Flush()
	next, err := tmpl.RenderMessages(t.Context(), append(ask, r.Message(), Message{Role: User, Content: "3+3?"}), Options{AddGenerationPrompt: true})
	want := prompt + "<|channel|>final<|message|>Four.<|end|><|start|>user<|message|>3+3?<|end|><|start|>assistant"
	if err != nil || next.Text != want {
		t.Errorf("%v: %q, want %q", err, next.Text, want)
	}
	// The last answer, with its thought in the field that this template reads.
	all, err := tmpl.RenderMessages(t.Context(), append(ask, r.Message()), Options{})
	if err != nil || !strings.Contains(all.Text, "<|channel|>analysis<|message|>two and two<|end|>") {
		t.Errorf("%v: %q", err, all.Text)
	}
}
