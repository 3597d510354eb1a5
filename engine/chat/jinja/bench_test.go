package jinja

import (
	"os"
	"strings"
	"testing"
)

// BenchmarkRender renders a conversation of 2000 messages of 1 KB by Qwen3's
// template.
func BenchmarkRender(b *testing.B) {
	source, err := os.ReadFile("testdata/Qwen-Qwen3-0.6B.jinja")
	if err != nil {
		b.Fatal(err)
	}
	tmpl, err := Parse(string(source))
	if err != nil {
		b.Fatal(err)
	}
	messages := NewList()
	for i := range 2000 {
		m := NewDict()
		m.Set("role", []string{"user", "assistant"}[i%2])
		m.Set("content", strings.Repeat("sixteen letters ", 64))
		messages.Items = append(messages.Items, m)
	}
	context := NewDict()
	context.Set("messages", messages)
	context.Set("add_generation_prompt", true)
	b.ReportAllocs()
	for b.Loop() {
		text, err := tmpl.Render(b.Context(), context, Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(text)))
	}
}

func BenchmarkParse(b *testing.B) {
	source, err := os.ReadFile("testdata/openai-gpt-oss-120b.jinja")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		if _, err := Parse(string(source)); err != nil {
			b.Fatal(err)
		}
	}
}
