package chat

import "strings"

// form is a format of conversations that a vocabulary gives away: whoever has its
// tokens was trained on it. It stands in for a template that is missing or fails.
type form struct {
	name   string
	tokens []string
	// What goes around a message of each role, $ standing for its name. assistant
	// takes the model's answer; its beginning asks for one.
	begin              string // of the conversation; BOS comes with the ids
	before, after      string
	user, system       string // other words before a user's and a system message; "": before
	assistant, closing string // the same for the assistant's; closing is behind it; "": after
}

// forms are tried in this order.
var forms = []form{
	{name: "ChatML", tokens: []string{"<|im_start|>", "<|im_end|>"}, before: "<|im_start|>$\n", after: "<|im_end|>\n"},
	{name: "Llama 3's form", tokens: []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"},
		before: "<|start_header_id|>$<|end_header_id|>\n\n", after: "<|eot_id|>"},
	{name: "Gemma 4's form", tokens: []string{"<|turn>", "<turn|>"}, before: "<|turn>$\n", after: "<turn|>\n", assistant: "<|turn>model\n"},
	{name: "Gemma's form", tokens: []string{"<start_of_turn>", "<end_of_turn>"}, before: "<start_of_turn>$\n", after: "<end_of_turn>\n",
		system: "<start_of_turn>user\n", assistant: "<start_of_turn>model\n"},
	{name: "GLM's form", tokens: []string{"[gMASK]", "<sop>", "<|user|>", "<|assistant|>"}, begin: "[gMASK]<sop>", before: "<|$|>\n"},
	{name: "DeepSeek's form", tokens: []string{"<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"},
		user: "<｜User｜>", assistant: "<｜Assistant｜>", closing: "<｜end▁of▁sentence｜>"},
	{name: "Kimi's form", tokens: []string{"<|im_user|>", "<|im_middle|>", "<|im_end|>"}, before: "<|im_$|>$<|im_middle|>", after: "<|im_end|>"},
	{name: "gpt-oss's form", tokens: []string{"<|start|>", "<|message|>", "<|end|>"}, before: "<|start|>$<|message|>", after: "<|end|>",
		assistant: "<|start|>assistant<|channel|>final<|message|>"},
	{name: "Granite's form", tokens: []string{"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"},
		before: "<|start_of_role|>$<|end_of_role|>", after: "<|end_of_text|>\n"},
	{name: "MiniMax's form", tokens: []string{"]~b]", "[e~["}, before: "]~b]$\n", after: "[e~[\n", assistant: "]~b]ai\n"},
	{name: "Ling's form", tokens: []string{"<role>", "</role>"}, before: "<role>$</role>", user: "<role>HUMAN</role>", assistant: "<role>ASSISTANT</role>",
		system: "<role>SYSTEM</role>"},
	{name: "Cohere's form", tokens: []string{"<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>"}, after: "<|END_OF_TURN_TOKEN|>",
		user: "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", system: "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>", assistant: "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
	{name: "Mistral's form", tokens: []string{"[INST]", "[/INST]", "</s>"}, user: "[INST] ", system: "[INST] ", after: " [/INST]", closing: "</s>"},
}

// plainForm is for a vocabulary that gives nothing away.
var plainForm = form{name: "a plain form, User: and Assistant:,", before: "$: ", after: "\n\n", user: "User: ", assistant: "Assistant: ", system: "System: "}

// formFor returns the form whose tokens the vocabulary has, or the plain one.
func formFor(hasToken func(text string) bool) form {
next:
	for _, f := range forms {
		for _, t := range f.tokens {
			if !hasToken(t) {
				continue next
			}
		}
		return f
	}
	return plainForm
}

// template returns the form as a template.
func (f form) template() string {
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
	}
	before := func(own, role string) string {
		if own == "" {
			own = strings.ReplaceAll(f.before, "$", role)
		}
		return quote(own)
	}
	closing := f.closing
	if closing == "" {
		closing = f.after
	}
	asks := strings.TrimRight(strings.Trim(before(f.assistant, Assistant), "'"), " ") // a space at the end would begin the answer's first token
	var b strings.Builder
	b.WriteString("{{- " + quote(f.begin) + " -}}{%- for message in messages -%}")
	b.WriteString("{%- if message.role == 'user' -%}{{ " + before(f.user, User) + " + message.content + " + quote(f.after) + " }}")
	b.WriteString("{%- elif message.role == 'assistant' -%}{{ " + before(f.assistant, Assistant) + " + message.content + " + quote(closing) + " }}")
	b.WriteString("{%- else -%}{{ " + before(f.system, System) + " + message.content + " + quote(f.after) + " }}{%- endif -%}{%- endfor -%}")
	b.WriteString("{%- if add_generation_prompt -%}{{ '" + asks + "' }}{%- endif -%}")
	return b.String()
}
