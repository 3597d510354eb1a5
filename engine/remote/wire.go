package remote

import (
	"bmoe/internal/units"
	"bmoe/profile"
)

// question is a request for a chat completion, in the fields that we send.
type question struct {
	Model    string         `json:"model"`
	Messages []contribution `json:"messages"`
	Stream   bool           `json:"stream"`
	Options  struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	Temp     *float64 `json:"temperature,omitempty"`
	Seed     uint64   `json:"seed"`
	Limit    int      `json:"max_tokens,omitempty"`
	NewLimit int      `json:"max_completion_tokens,omitempty"`
	Progress bool     `json:"return_progress,omitempty"` // llama-server
}

type contribution struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// chunk is an event of the answer, in the fields that we read. What programs add
// to the interface's own stands beside them.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content          string `json:"content"`
			ReasoningContent string `json:"reasoning_content"` // llama-server, LM Studio, vLLM before 0.12
			Reasoning        string `json:"reasoning"`         // vLLM, Ollama
		} `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage    *usage    `json:"usage"`
	Timings  *timings  `json:"timings"`         // llama-server
	Progress *progress `json:"prompt_progress"` // llama-server
	durations
}

// usage is what a server counted.
type usage struct {
	Prompt        int64 `json:"prompt_tokens"`
	Completion    int64 `json:"completion_tokens"`
	PromptDetails *struct {
		Cached int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// timings are llama-server's, of one request.
type timings struct {
	Cached    *int64  `json:"cache_n"`
	PromptN   int64   `json:"prompt_n"`
	PromptMs  float64 `json:"prompt_ms"`
	PromptTPS float64 `json:"prompt_per_second"`
	DecodeN   int64   `json:"predicted_n"`
	DecodeMs  float64 `json:"predicted_ms"`
	DecodeTPS float64 `json:"predicted_per_second"`
	loadMs    float64
}

func (t *timings) fill(f *profile.RemoteRun) {
	some := func(v, unit float64) profile.Maybe[float64] {
		return profile.Maybe[float64]{Value: v / unit, OK: v > 0}
	}
	f.Prefill, f.Decode, f.Load = some(t.PromptMs, 1e3), some(t.DecodeMs, 1e3), some(t.loadMs, 1e3)
	f.PrefillTPS, f.DecodeTPS = some(t.PromptTPS, 1), some(t.DecodeTPS, 1)
	if t.Cached != nil && !f.Cached.OK {
		f.Cached = profile.Some(*t.Cached)
	}
}

// progress says how far llama-server is with a prompt, in tokens.
type progress struct {
	Total  int `json:"total"`
	Cached int `json:"cache"`
	Done   int `json:"processed"`
}

// durations are Ollama's, in nanoseconds.
type durations struct {
	Load       int64 `json:"load_duration"`
	PromptN    int64 `json:"prompt_eval_count"`
	PromptEval int64 `json:"prompt_eval_duration"`
	EvalN      int64 `json:"eval_count"`
	Eval       int64 `json:"eval_duration"`
}

func (d *durations) timings() *timings {
	t := &timings{PromptN: d.PromptN, PromptMs: units.InMs(d.PromptEval), DecodeN: d.EvalN, DecodeMs: units.InMs(d.Eval), loadMs: units.InMs(d.Load)}
	t.PromptTPS = profile.Ratio(float64(d.PromptN), units.InSeconds(d.PromptEval)).Value
	t.DecodeTPS = profile.Ratio(float64(d.EvalN), units.InSeconds(d.Eval)).Value
	return t
}
