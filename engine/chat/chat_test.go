package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"bmoe/engine/gguf"
	"bmoe/engine/tokenizer"
	"bmoe/internal/conform"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustParse(t *testing.T, source string) *Template {
	t.Helper()
	tmpl, err := ParseTemplate(source)
	if err != nil {
		t.Fatal(err)
	}
	tmpl.Now = func() time.Time { return time.Date(2026, 8, 18, 12, 34, 56, 0, time.UTC) }
	return tmpl
}

// goldenCase is a case of the conformance set.
type goldenCase struct {
	Name     string
	Context  json.RawMessage
	Rendered string
}

func qwen3(t *testing.T) (*Template, []goldenCase) {
	base := filepath.Join("jinja", "testdata", "Qwen-Qwen3-0.6B")
	var g struct{ Cases []goldenCase }
	if err := json.Unmarshal(read(t, base+".json"), &g); err != nil {
		t.Fatal(err)
	}
	return mustParse(t, string(read(t, base+".jinja"))), g.Cases
}

// A context that comes as JSON, as --conversation gives it.
func TestReadContext(t *testing.T) {
	tmpl, cases := qwen3(t)
	for _, c := range cases {
		context, err := ReadContext(c.Context)
		if err != nil {
			t.Fatal(err)
		}
		p, err := tmpl.Render(t.Context(), context, nil)
		if got := p.Text; err != nil || got != c.Rendered {
			t.Errorf("%s: %v\n got %q\nwant %q", c.Name, err, got, c.Rendered)
		}
	}
	for text, want := range map[string]string{
		`{"messages":[]`:     "offset",
		`[]`:                 "not a JSON object",
		`{"messages":"x"}`:   "messages is missing",
		`{"messages":[]} {}`: "more behind the value",
	} {
		if _, err := ReadContext([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

// The same goldens through messages and options.
func TestRenderMessages(t *testing.T) {
	tmpl, cases := qwen3(t)
	n := 0
	for _, c := range cases {
		var in struct {
			Messages []struct {
				Role, Content string
				ToolCalls     any `json:"tool_calls"`
			}
			Gen   bool   `json:"add_generation_prompt"`
			Think *bool  `json:"enable_thinking"`
			BOS   string `json:"bos_token"`
			EOS   string `json:"eos_token"`
			Tools any
		}
		if err := json.Unmarshal(c.Context, &in); err != nil {
			t.Fatal(err)
		}
		if in.Tools != nil {
			continue
		}
		n++
		var messages []Message
		for _, m := range in.Messages {
			messages = append(messages, Message{Role: m.Role, Content: m.Content})
		}
		p, err := tmpl.RenderMessages(t.Context(), messages, Options{AddGenerationPrompt: in.Gen, EnableThinking: in.Think, BOS: in.BOS, EOS: in.EOS})
		if got := p.Text; err != nil || got != c.Rendered {
			t.Errorf("%s: %v\n got %q\nwant %q", c.Name, err, got, c.Rendered)
		}
	}
	if n != 4 {
		t.Errorf("%d cases", n)
	}
	if !tmpl.Thinks() || mustParse(t, forms[0].template()).Thinks() {
		t.Error("Thinks is wrong")
	}
}

// The template decides what becomes of earlier thoughts: Qwen3 forgets those
// before the last question.
func TestReasoningInHistory(t *testing.T) {
	tmpl, _ := qwen3(t)
	answer := Message{Role: Assistant, Content: "Four.", Reasoning: "two and two"}
	render := func(tmpl *Template, messages ...Message) (string, error) {
		p, err := tmpl.RenderMessages(t.Context(), messages, Options{})
		return p.Text, err
	}
	got, err := render(tmpl, Message{Role: User, Content: "2+2?"}, answer, Message{Role: User, Content: "3+3?"})
	if err != nil || strings.Contains(got, "two and two") || !strings.Contains(got, "assistant\nFour.<|im_end|>") {
		t.Errorf("%v: %q", err, got)
	}
	got, err = render(tmpl, Message{Role: User, Content: "2+2?"}, answer)
	if err != nil || !strings.Contains(got, "<think>\ntwo and two\n</think>\n\nFour.<|im_end|>") {
		t.Errorf("%v: %q", err, got)
	}
	got, err = render(mustParse(t, "{% for m in messages %}{{ m.thinking }}{% endfor %}"), answer)
	if err != nil || got != "two and two" {
		t.Errorf("%v: %q", err, got)
	}
}

// A model without a template, or with one that fails, gets ChatML where its
// vocabulary has the tokens, and a notice says so.
func TestTemplateFor(t *testing.T) {
	tokens := func(have ...string) func(string) bool { return func(s string) bool { return slices.Contains(have, s) } }
	chatMLTokens := tokens("<|im_start|>", "<|im_end|>")
	for source, why := range map[string]string{
		"":                                 "carries no chat template",
		"{% if %}":                         "template: line 1",
		"{{ messages[0].content | frob }}": "unknown filter",
	} {
		tmpl, notice, err := TemplateFor(t.Context(), source, chatMLTokens)
		if err != nil || !strings.Contains(notice, why) || !strings.Contains(notice, "ChatML") {
			t.Fatalf("%q: %v, notice %q", source, err, notice)
		}
		p, err := tmpl.RenderMessages(t.Context(), []Message{{Role: System, Content: "Be kind."}, {Role: User, Content: " hi\n"}}, Options{AddGenerationPrompt: true})
		want := "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\n hi\n<|im_end|>\n<|im_start|>assistant\n"
		if err != nil || p.Text != want {
			t.Errorf("%q: %v: %q", source, err, p.Text)
		}
		tmpl, notice, err = TemplateFor(t.Context(), source, tokens("<s>"))
		if err != nil || !strings.Contains(notice, why) || !strings.Contains(notice, "plain form") || !strings.Contains(notice, "{raw=on}") {
			t.Fatalf("%q without tokens that tell: %v, notice %q", source, err, notice)
		}
		p, err = tmpl.RenderMessages(t.Context(), []Message{{Role: User, Content: "hi"}}, Options{AddGenerationPrompt: true})
		if err != nil || p.Text != "User: hi\n\nAssistant:" {
			t.Errorf("%q: %v: %q", source, err, p.Text)
		}
	}
	// A template that works, or refuses a lone question on purpose, is taken.
	for _, source := range []string{"{{ messages[0].content }}", "{{ raise_exception('first comes a system message') }}"} {
		if tmpl, notice, err := TemplateFor(t.Context(), source, chatMLTokens); err != nil || notice != "" || tmpl.source != source {
			t.Errorf("%q: %v, notice %q", source, err, notice)
		}
	}
	_, err := mustParse(t, "\n{{ raise_exception('roles must alternate') }}").Render(t.Context(), emptyContext(), nil)
	if err == nil || err.Error() != "chat template: line 2 refuses: roles must alternate" {
		t.Errorf("error %v", err)
	}
	_, err = mustParse(t, "{{ raise_exception('ä' * 10000) }}").Render(t.Context(), emptyContext(), nil)
	if n := utf8.RuneCountInString(strings.TrimPrefix(fmt.Sprint(err), "chat template: ")); n != 300 || !utf8.ValidString(err.Error()) {
		t.Errorf("an error of %d characters: %v", n, err)
	}
}

// A template at work ends with its context, whatever it is doing.
func TestRenderStops(t *testing.T) {
	for _, source := range []string{
		"{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}",
		"{% for i in range(100) %}{{ ('Ab' * 8000000) | title | length }}{% endfor %}", // long single steps
	} {
		ctx, cancel := context.WithCancel(t.Context())
		started := make(chan struct{})
		tmpl := mustParse(t, source)
		tmpl.Now = func() time.Time { close(started); return time.Time{} }
		done := make(chan error)
		go func() {
			_, err := tmpl.Render(ctx, emptyContext(), nil)
			done <- err
		}()
		<-started
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", source, err)
		}
	}
}

func emptyContext() Values {
	c, err := ReadContext([]byte(`{"messages":[]}`))
	if err != nil {
		panic(err)
	}
	return c
}

// The demo model's template and vocabulary give the ids that llama.cpp was given.
func TestDemoPrompts(t *testing.T) {
	file, err := gguf.Open(conform.Shared(t, "demo/tiny-stories-moe-q8_0.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(file.Meta)
	if err != nil {
		t.Fatal(err)
	}
	source, err := file.Meta.String("tokenizer.chat_template")
	if err != nil {
		t.Fatal(err)
	}
	tmpl := mustParse(t, source)
	var greedy struct {
		Cases []struct {
			Prompt    string
			PromptIDs []int32 `json:"prompt_ids"`
		}
	}
	if err := json.Unmarshal(read(t, conform.Shared(t, "demo/greedy.json")), &greedy); err != nil {
		t.Fatal(err)
	}
	for _, c := range greedy.Cases {
		p, err := tmpl.RenderMessages(t.Context(), []Message{{Role: User, Content: c.Prompt}}, Options{AddGenerationPrompt: true, Specials: tok.Specials})
		if err != nil {
			t.Fatal(err)
		}
		if ids := tok.EncodePrompt(p.Text, p.Plain); !slices.Equal(ids, c.PromptIDs) {
			t.Errorf("%q: ids %v, want %v", c.Prompt, ids, c.PromptIDs)
		}
	}
	if len(greedy.Cases) != 6 {
		t.Errorf("%d cases", len(greedy.Cases))
	}
}

func dialogue(words ...string) *Conversation {
	c := &Conversation{}
	for _, w := range words {
		role := map[byte]string{'s': System, 'u': User, 'a': Assistant}[w[0]]
		c.Append(Message{Role: role, Content: w})
	}
	return c
}

func contents(c *Conversation) string {
	var all []string
	for _, m := range c.Messages {
		all = append(all, m.Content)
	}
	return strings.Join(all, " ")
}

func TestTurns(t *testing.T) {
	c := dialogue("s", "a0", "u1", "a1", "s2", "u2", "a2", "u3")
	for _, want := range []string{"s u1 a1 s2 u2 a2 u3", "s s2 u2 a2 u3", "s s2 u3"} {
		if !c.DropOldestTurn() || contents(c) != want {
			t.Errorf("got %q, want %q", contents(c), want)
		}
	}
	if c.DropOldestTurn() || contents(c) != "s s2 u3" {
		t.Errorf("the last turn is gone: %q", contents(c))
	}
	if dialogue("s").DropOldestTurn() || dialogue().DropOldestTurn() {
		t.Error("nothing to drop, but dropped")
	}
	c = dialogue("s", "u1", "a1", "u2", "a2")
	copy := c.Clone()
	c.DropOldestTurn()
	c.Append(Message{Role: User, Content: "u3"})
	if contents(c) != "s u2 a2 u3" || contents(copy) != "s u1 a1 u2 a2" {
		t.Errorf("%q, and its clone %q", contents(c), contents(copy))
	}
}

func TestFit(t *testing.T) {
	encode := func(ms []Message) ([]int32, error) { return make([]int32, 10*len(ms)), nil } // ten tokens each
	for _, c := range []struct {
		nCtx, reserve, dropped int
		want                   string
	}{{100, 50, 0, "s u1 a1 u2 u3"}, {100, 51, 1, "s u2 u3"}, {40, 11, 2, "s u3"}, {20, 0, 2, "s u3"}} {
		d := dialogue("s", "u1", "a1", "u2", "u3")
		ids, dropped, err := d.Fit(c.nCtx, c.reserve, encode)
		if err != nil || dropped != c.dropped || contents(d) != c.want || len(ids) != 10*len(d.Messages) {
			t.Errorf("context %d: %q, %d dropped, %d ids, %v", c.nCtx, contents(d), dropped, len(ids), err)
		}
	}
	d := dialogue("s", "u1", "a1", "u2")
	_, _, err := d.Fit(30, 11, encode)
	var long *TooLongError
	if !errors.As(err, &long) || *long != (TooLongError{20, 30, 11}) || contents(d) != "s u1 a1 u2" {
		t.Errorf("error %v, left %q", err, contents(d))
	}
	broken := errors.New("broken")
	if _, _, err := d.Fit(30, 0, func([]Message) ([]int32, error) { return nil, broken }); err != broken {
		t.Errorf("error %v", err)
	}
}

func TestCommonPrefix(t *testing.T) {
	for _, c := range []struct {
		a, b []int32
		want int
	}{{nil, nil, 0}, {[]int32{1, 2, 3}, []int32{1, 2, 4}, 2}, {[]int32{1}, []int32{1, 2}, 1}, {[]int32{1}, []int32{2}, 0}} {
		if n := CommonPrefix(c.a, c.b); n != c.want {
			t.Errorf("%v %v: %d", c.a, c.b, n)
		}
	}
}

// A model that does not say that it begins to think says when it ends. What has come
// was shown as the answer; whoever has shown it is told, and the conversation has it
// apart, whatever pieces it came in.
func TestLoneEndOfThought(t *testing.T) {
	const stream = "I wonder.\n</think>\n\nFour. </think>"
	for size := 1; size <= len(stream); size++ {
		r := NewReasoning("assistant\n")
		said, thought, turns := "", "", 0
		take := func(more, text string) {
			if r.Turned() {
				thought, said = thought+said, ""
				turns++
			}
			thought, said = thought+more, said+text
		}
		for rest := stream; rest != ""; {
			n := min(size, len(rest))
			take(r.Push(rest[:n]))
			rest = rest[n:]
		}
		take(r.Flush())
		if strings.TrimSpace(thought) != "I wonder." || said != "Four. </think>" || turns != 1 {
			t.Errorf("in pieces of %d: thought %q, said %q, told %d times", size, thought, said, turns)
		}
		if got, want := r.Message(), (Message{Role: Assistant, Content: "Four. </think>", Reasoning: "I wonder."}); got != want {
			t.Errorf("in pieces of %d: message %+v, want %+v", size, got, want)
		}
	}
}

// The form of each vocabulary: a question, an answer, another question.
func TestForms(t *testing.T) {
	messages := []Message{{Role: System, Content: "S"}, {Role: User, Content: "it's"}, {Role: Assistant, Content: "A\\n"}, {Role: User, Content: "B"}}
	for token, want := range map[string]string{
		"<|im_start|>":            "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nit's<|im_end|>\n<|im_start|>assistant\nA\\n<|im_end|>\n<|im_start|>user\nB<|im_end|>\n<|im_start|>assistant\n",
		"<|start_header_id|>":     "<|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nit's<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nA\\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nB<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
		"<|turn>":                 "<|turn>system\nS<turn|>\n<|turn>user\nit's<turn|>\n<|turn>model\nA\\n<turn|>\n<|turn>user\nB<turn|>\n<|turn>model\n",
		"<start_of_turn>":         "<start_of_turn>user\nS<end_of_turn>\n<start_of_turn>user\nit's<end_of_turn>\n<start_of_turn>model\nA\\n<end_of_turn>\n<start_of_turn>user\nB<end_of_turn>\n<start_of_turn>model\n",
		"[gMASK]":                 "[gMASK]<sop><|system|>\nS<|user|>\nit's<|assistant|>\nA\\n<|user|>\nB<|assistant|>\n",
		"<｜User｜>":                "S<｜User｜>it's<｜Assistant｜>A\\n<｜end▁of▁sentence｜><｜User｜>B<｜Assistant｜>",
		"<|im_user|>":             "<|im_system|>system<|im_middle|>S<|im_end|><|im_user|>user<|im_middle|>it's<|im_end|><|im_assistant|>assistant<|im_middle|>A\\n<|im_end|><|im_user|>user<|im_middle|>B<|im_end|><|im_assistant|>assistant<|im_middle|>",
		"<|start|>":               "<|start|>system<|message|>S<|end|><|start|>user<|message|>it's<|end|><|start|>assistant<|channel|>final<|message|>A\\n<|end|><|start|>user<|message|>B<|end|><|start|>assistant<|channel|>final<|message|>",
		"<|start_of_role|>":       "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>it's<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>A\\n<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>B<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>",
		"]~b]":                    "]~b]system\nS[e~[\n]~b]user\nit's[e~[\n]~b]ai\nA\\n[e~[\n]~b]user\nB[e~[\n]~b]ai\n",
		"<role>":                  "<role>SYSTEM</role>S<role>HUMAN</role>it's<role>ASSISTANT</role>A\\n<role>HUMAN</role>B<role>ASSISTANT</role>",
		"<|START_OF_TURN_TOKEN|>": "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>it's<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>A\\n<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|USER_TOKEN|>B<|END_OF_TURN_TOKEN|><|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
		"[INST]":                  "[INST] S [/INST][INST] it's [/INST]A\\n</s>[INST] B [/INST]",
	} {
		i := slices.IndexFunc(forms, func(f form) bool { return f.tokens[0] == token })
		if i < 0 {
			t.Errorf("no form for %s", token)
			continue
		}
		f := formFor(func(s string) bool { return slices.Contains(forms[i].tokens, s) })
		p, err := mustParse(t, f.template()).RenderMessages(t.Context(), messages, Options{AddGenerationPrompt: true})
		if err != nil || p.Text != want {
			t.Errorf("%s: %v\n got %q\nwant %q", f.name, err, p.Text, want)
		}
	}
	if len(forms) != 13 {
		t.Errorf("%d forms", len(forms))
	}
}

// --no-think reaches every template that knows a switch, by the name that it gives it.
func TestThinkingIsSwitchedOff(t *testing.T) {
	dir := conform.Shared(t, "conformance/templates")
	for name, differs := range map[string]bool{
		"Qwen-Qwen3-0.6B": true, "GLM-4.6": true, "GLM-4.7-Flash": true, "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": true, "ByteDance-Seed-OSS": true,
		"HuggingFaceTB-SmolLM3-3B": true, "deepseek-ai-DeepSeek-V3.1": true, "deepseek-ai-DeepSeek-V3.2": true, "deepseek-ai-DeepSeek-V4": true,
		"google-gemma-4-31B-it": true, "poolside-Laguna-S-2.1": true, "poolside-Laguna-XS-2.1": true, "tencent-Hy3": true, "MiniMax-M3": true,
		"ibm-granite-granite-3.3-2B-Instruct": true, "upstage-Solar-Open-100B": true, "Cohere2MoE": true, "Qwen3.5-4B": true,
		"Qwen-Qwen2.5-7B-Instruct": false, "MiniMax-M2": false, "Kimi-K2-Thinking": false,
	} {
		tmpl := mustParse(t, string(read(t, filepath.Join(dir, name+".jinja"))))
		render := func(think bool) string {
			p, err := tmpl.RenderMessages(t.Context(), []Message{{Role: User, Content: "hi"}}, Options{AddGenerationPrompt: true, EnableThinking: &think})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return p.Text
		}
		if got := render(true) != render(false); got != differs || tmpl.Thinks() != differs {
			t.Errorf("%s: another prompt without thinking: %v, can be switched: %v; want %v", name, got, tmpl.Thinks(), differs)
		}
	}
}

// Every way to cut the stream gives the same two texts.
func TestReasoning(t *testing.T) {
	for _, c := range []struct{ prompt, stream, thought, text string }{
		{"assistant\n", "<think>\nhm, <b>\n\nso\n</think>\n\nFour.\n", "hm, <b>\n\nso", "Four.\n"},
		{"assistant\n<think>\n", "hm</think>Four.", "hm", "Four."},
		{"assistant\n<think>\n", "\n</think>\n\nFour.", "", "Four."},
		{"assistant\n<think>\n\n</think>\n\n", "Four.", "", "Four."},
		{"assistant\n", "\n Four. <think>no</think>", "", "\n Four. <think>no</think>"},
		{"assistant\n", " <think>a</think> <think>b</think> c", "ab", "c"},
		{"assistant\n", "<think>never ends\n", "never ends", ""},
		{"assistant\n", "<thin", "", "<thin"},
		{"assistant\n<think>", "a</thi", "a</thi", ""},
		{"assistant\n", " \n", "", " \n"},
		{"[/INST]", "[THINK]x[/THINK]y", "x", "y"},
		{"", "", "", ""},
		{"", "<|START_THINKING|>x<|END_THINKING|>y", "x", "y"},
		{"assistant\n", "Say <think>no</think>. Then </think>!", "", "Say <think>no</think>. Then </think>!"},
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
				t.Errorf("%q in pieces of %d: thought %q, text %q; want %q, %q", c.stream, size, thought, text, c.thought, c.text)
			}
			if want := (Message{Role: Assistant, Content: text, Reasoning: thought}); !reflect.DeepEqual(r.Message(), want) {
				t.Errorf("message %v, want %v", r.Message(), want)
			}
		}
	}
}
