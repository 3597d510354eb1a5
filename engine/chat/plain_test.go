package chat

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/chat/jinja"
	"bmoe/internal/conform"
)

// tokensOf returns a function that finds these texts, as a tokenizer does.
func tokensOf(tokens ...string) func(string) [][2]int {
	return func(s string) [][2]int {
		var found [][2]int
		for i := range s {
			for _, token := range tokens {
				if strings.HasPrefix(s[i:], token) {
					found = append(found, [2]int{i, i + len(token)})
				}
			}
		}
		return found
	}
}

// parsed returns the texts in a prompt that are tokens.
func parsed(p Prompt, find func(string) [][2]int) []string {
	var out []string
	for _, span := range find(p.Text) {
		i, _ := slices.BinarySearch(p.Plain, span[0])
		if i == len(p.Plain) || p.Plain[i] >= span[1] {
			out = append(out, p.Text[span[0]:span[1]])
		}
	}
	return out
}

// Whatever a template does to a message, what it spells out stays text, and what
// the template writes stays a token.
func TestSpecialsInMessages(t *testing.T) {
	find := tokensOf("<|im_end|>", "[INST]", "<|a|>", "|a|", "</s>")
	for _, c := range []struct{ expr, content, want string }{
		{"m.content", "x<|im_end|>y", "x<|im_end|>y"},
		{"m.content | trim", "  <|im_end|>\n", "<|im_end|>"},
		{"m.content.strip()", "  [INST]\n", "[INST]"},
		{"m.content.strip('<|')", "<|im_end|>", "im_end|>"},
		{"m.content | trim('>')", "<|im_end|>>", "<|im_end|"},
		{"m.content * 2", "</s>", "</s></s>"},
		{"m.content.split('<|im_end|>') | join('/')", "a<|im_end|>b[INST]", "a/b[INST]"},
		{"m.content.split('<|im_end|>', 1)[1]", "a<|im_end|>b<|im_end|>c", "b<|im_end|>c"},
		{"m.content.rsplit('<|im_end|>', 1)[0]", "a<|im_end|>b<|im_end|>c", "a<|im_end|>b"},
		{"m.content.partition('[INST]')[2]", "a[INST]b</s>", "b</s>"},
		{"m.content.split()[-1]", "a </s>", "</s>"},
		{"m.content.splitlines()[1]", "a\n</s>\n", "</s>"},
		{"m.content.replace('</s>', '.')", "a</s>b[INST]</s>", "a.b[INST]."},
		{"m.content | replace('', '-')", "</s>", "-<-/-s->-"},
		{"m.content[:4] ~ m.content[4:]", "</s></s>", "</s></s>"},
		{"m.content[::-1][::-1]", "</s>", "</s>"},
		{"m.content | list | join", "a</s>", "a</s>"},
		{"m.content | upper | lower", "</s>", "</s>"},
		{"m.content | tojson", "\"<|im_end|>\"", `"\"<|im_end|>\""`},
		{"m.content | tojson | from_json", "[<|im_end|>]", "[<|im_end|>]"},
		{"[m.content]", "</s>", "['</s>']"},
		{"m.content | e", "</s>", "&lt;/s&gt;"},
		{"m.content.removeprefix('</s>')", "</s></s>", "</s>"},
		{"m.content.removesuffix('</s>')", "</s></s>", "</s>"},
		{"'in' if '<|im_end|>' in m.content else 'out'", "a<|im_end|>", "in"},
		{"m.content.startswith('[INST]') and m.content.endswith('</s>')", "[INST]</s>", "True"},
		{"m.content == '</s>' and m.content in ['</s>'] and {'</s>': 1}[m.content] == 1", "</s>", "True"},
		{"m.content.find('<|im_end|>') ~ m.content.count('<|im_end|>') ~ m.content | length", "ab<|im_end|>", "2112"},
		{"m.content < '<'", "</s>", "False"},
		{"m.content", "<|a|>", "<|a|>"}, // one token inside another
		{"m.content", "\x7f\x01</s>\x02\xff", "\x7f\x01</s>\x02\xff"},
		{"m.content", "no token", "no token"},
	} {
		tmpl := mustParse(t, "{% for m in messages %}{{ "+c.expr+" }}<|im_end|>{% endfor %}")
		p, err := tmpl.RenderMessages(t.Context(), []Message{{Role: User, Content: c.content}}, Options{Specials: find})
		if err != nil || p.Text != c.want+"<|im_end|>" || !slices.Equal(parsed(p, find), []string{"<|im_end|>"}) {
			t.Errorf("%s of %q: %v: %q, tokens %q", c.expr, c.content, err, p.Text, parsed(p, find))
		}
	}
	// Without the function all of them are tokens.
	p, err := mustParse(t, "{{ messages[0].content }}").RenderMessages(t.Context(), []Message{{Role: User, Content: "</s>"}}, Options{})
	if err != nil || !slices.Equal(parsed(p, find), []string{"</s>"}) {
		t.Errorf("%v: %q", err, p.Text)
	}
	var all strings.Builder
	for r := range rune(0x80) {
		all.WriteRune(r)
	}
	if _, err := mustParse(t, "").RenderMessages(t.Context(), []Message{{Role: User, Content: "</s>" + all.String()}}, Options{Specials: find}); err != errNoStandIn {
		t.Errorf("error %v", err)
	}
}

// What a model has said may hold the marks of its reasoning, and nothing else.
func TestSpecialsInAnswers(t *testing.T) {
	find := tokensOf("<think>", "</think>", "</s>")
	tmpl := mustParse(t, "{% for m in messages %}{{ m.role }}{{ m.content }}{% endfor %}")
	for role, want := range map[string][]string{User: nil, System: nil, "tool": nil, Assistant: {"<think>", "</think>"}} {
		p, err := tmpl.RenderMessages(t.Context(), []Message{{Role: role, Content: "<think>x</think></s>"}}, Options{Specials: find})
		if err != nil || !slices.Equal(parsed(p, find), want) {
			t.Errorf("%s: %v: %q", role, err, parsed(p, find))
		}
	}
}

// Every known template gives the same text with the messages' tokens kept apart
// as without, and the same tokens as of messages that spell out none.
func TestSpecialsInTemplates(t *testing.T) {
	injected := []string{"<|im_end|>", "<|im_start|>", "<|end|>", "<|start|>", "<|eot_id|>", "[INST]", "[/INST]", "</s>", "<|user|>", "<｜User｜>", "<|turn>"}
	find := tokensOf(injected...)
	dirs := []string{filepath.Join("jinja", "testdata")}
	if conform.HasShared() {
		dirs = append(dirs, conform.Shared(t, "conformance/templates"))
	}
	n := 0
	for _, dir := range dirs {
		paths, err := filepath.Glob(filepath.Join(dir, "*.jinja"))
		if err != nil || len(paths) < 3 {
			t.Fatal(err, len(paths))
		}
		for _, path := range paths {
			tmpl := mustParse(t, string(read(t, path)))
			var g struct {
				Cases []struct {
					Name     string
					Context  json.RawMessage
					Rendered *string
				}
			}
			if err := json.Unmarshal(read(t, strings.TrimSuffix(path, ".jinja")+".json"), &g); err != nil {
				t.Fatal(err)
			}
			for _, c := range g.Cases {
				if c.Rendered == nil {
					continue
				}
				render := func(inject string, specials func(string) [][2]int) Prompt {
					vars, err := ReadContext(c.Context)
					if err != nil {
						t.Fatal(err)
					}
					injectInto(vars, inject)
					p, err := tmpl.Render(t.Context(), vars, specials)
					if err != nil {
						t.Fatalf("%s %s: %v", path, c.Name, err)
					}
					return p
				}
				if p := render("", find); p.Text != *c.Rendered {
					t.Errorf("%s %s: got %q, want %q", path, c.Name, p.Text, *c.Rendered)
				}
				all := strings.Join(injected, " ")
				with, without := render(all, find), render(all, nil)
				neutral := render(strings.Map(func(r rune) rune {
					if strings.ContainsRune("<>[]/", r) {
						return '+'
					}
					return r
				}, all), nil)
				if with.Text != without.Text {
					t.Errorf("%s %s:\n got %q\nwant %q", path, c.Name, with.Text, without.Text)
				}
				if got, want := fmt.Sprint(parsed(with, find)), fmt.Sprint(parsed(neutral, find)); got != want {
					t.Errorf("%s %s:\ntokens %s\n  want %s", path, c.Name, got, want)
				}
				n++
			}
		}
	}
	if n < 15 {
		t.Errorf("%d renderings", n)
	}
}

// injectInto puts a text into all messages of users, systems and tools.
func injectInto(vars Values, text string) {
	messages, _ := vars.Get("messages")
	for _, m := range messages.(*jinja.List).Items {
		d := m.(*jinja.Dict)
		role, _ := d.Get("role")
		if s, ok := d.Get("content"); ok && role != Assistant {
			if s, ok := s.(string); ok {
				d.Set("content", s+text)
			}
		}
	}
}
