package remote

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bmoe/engine/backend"
)

// llama-server's own fields, as its documentation has them: how far it is with the
// prompt, and what prompt and answer took.
func TestLlamaServer(t *testing.T) {
	s := serve(t)
	s.models = `{"object":"list","data":[{"id":"qwen.gguf","object":"model","owned_by":"llamacpp","meta":{"n_ctx_train":32768,"size":18000000000}}]}`
	s.other["/props"] = func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"default_generation_settings":{"id":0,"n_ctx":8192},"total_slots":1}`)
	}
	h := connect(t, Config{URL: s.URL + "/v1"})
	s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
		stream(`{"choices":[{"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":120,"cache":20,"processed":20,"time_ms":1}}`)
		stream(`{"choices":[{"delta":{"content":null}}],"prompt_progress":{"total":120,"cache":20,"processed":84,"time_ms":100}}`)
		stream(piece("Hi"))
		stream(ended)
		stream(`{"choices":[],"usage":{"completion_tokens":2,"prompt_tokens":120,"total_tokens":122},"timings":{"cache_n":20,"prompt_n":100,"prompt_ms":500.0,"prompt_per_token_ms":5.0,"prompt_per_second":200.0,"predicted_n":2,"predicted_ms":80.0,"predicted_per_token_ms":40.0,"predicted_per_second":25.0}}`)
	}
	var read [][2]int
	run, err := h.Generate(context.Background(), backend.Request{Text: "hello", OnPrefill: func(done, of int) { read = append(read, [2]int{done, of}) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(read) != 2 || read[1] != [2]int{64, 100} || !s.requests()[0].Progress {
		t.Errorf("read the prompt %v", read)
	}
	far, l := run.Result.Remote, live(h)
	if !near(far.Prefill, 0.5) || !near(far.Decode, 0.08) || !near(far.PrefillTPS, 200) || !near(far.DecodeTPS, 25) || far.Cached.Value != 20 || far.Queue.OK {
		t.Errorf("told %+v", far)
	}
	if !near(run.Result.PrefillTPS, 200) || run.Result.NCached != 20 || l.Ctx != 8192 || l.CtxUsed != 122 || l.Prompt != 100 || l.PromptDone != 100 || !strings.HasPrefix(run.Engine, "llama-server ") {
		t.Errorf("%v, %d cached; %d of %d positions, %d of %d; %s", run.Result.PrefillTPS, run.Result.NCached, l.CtxUsed, l.Ctx, l.PromptDone, l.Prompt, run.Engine)
	}
	// Its metrics are off unless it is told otherwise, and that is all that is said.
	s.other["/metrics"] = func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error":{"code":501,"message":"This server does not support metrics endpoint"}}`, http.StatusNotImplemented)
	}
	h.beat()
	if n := live(h).Remote.Load; n.Known || !strings.Contains(n.Why, "--metrics") || h.told() != nil {
		t.Errorf("without metrics: %+v, told %q", n, h.told())
	}
}

func TestLlamaServersMetrics(t *testing.T) {
	s := serve(t)
	s.other["/metrics"] = func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "# HELP llamacpp:requests_processing Number of requests processing.\n# TYPE llamacpp:requests_processing gauge\nllamacpp:requests_processing 2\n"+
			"# TYPE llamacpp:requests_deferred gauge\nllamacpp:requests_deferred 3\nllamacpp:kv_cache_usage_ratio 0.25\nllamacpp:n_busy_slots_per_decode 1.5\n")
	}
	h := connect(t, Config{URL: s.URL})
	h.beat()
	n := live(h).Remote.Load
	if !n.Known || n.Running.Value != 2 || n.Waiting.Value != 3 || !near(n.KV, 25) || n.CacheHit.OK {
		t.Errorf("read %+v", n)
	}
}

// vLLM's histograms are of all requests: this one's part is known where no other
// ended meanwhile.
func TestVLLM(t *testing.T) {
	for _, others := range []int{0, 1} {
		s := serve(t)
		s.models = `{"data":[{"id":"big","owned_by":"vllm","max_model_len":32768}]}`
		var ended atomic.Int64
		s.other["/metrics"] = func(w http.ResponseWriter, _ *http.Request) {
			text := `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="big"} 2.0
vllm:num_requests_running{engine="1",model_name="big"} 1.0
vllm:num_requests_waiting{engine="0",model_name="big"} 4.0
vllm:kv_cache_usage_perc{engine="0",model_name="a{b} c"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="big"} 0.75
vllm:prefix_cache_queries_total{engine="0",model_name="big"} 1000.0
vllm:prefix_cache_hits_total{engine="0",model_name="big"} 250.0
vllm:prefix_cache_hits_created{engine="0",model_name="big"} 1.7e+09
vllm:request_queue_time_seconds_bucket{engine="0",le="0.3",model_name="big"} 9.0
`
			if ended.Load() == 0 {
				text += `vllm:request_queue_time_seconds_count{engine="0"} 10.0
vllm:request_queue_time_seconds_sum{engine="0"} 5.0
vllm:request_prefill_time_seconds_sum{engine="0"} 7.0
vllm:request_decode_time_seconds_sum{engine="0"} 70.0
`
			} else {
				text += map[int]string{0: "vllm:request_queue_time_seconds_count 11\n", 1: "vllm:request_queue_time_seconds_count 12\n"}[others]
				text += "vllm:request_queue_time_seconds_sum 5.25\nvllm:request_prefill_time_seconds_sum 7.5\nvllm:request_decode_time_seconds_sum 74\n"
			}
			io.WriteString(w, text)
		}
		h := connect(t, Config{URL: s.URL})
		asked, goOn := make(chan struct{}), make(chan struct{})
		s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
			close(asked)
			<-goOn
			stream(piece("Hi"))
			stream(`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":64,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":48}}}`)
		}
		done := make(chan *backend.Run)
		go func() { done <- ask(t, h, "hello") }()
		<-asked
		h.beat()
		close(goOn)
		run := <-done
		ended.Store(1)
		h.clock.Add(60e9)
		h.beat()
		l := live(h)
		n, far := l.Remote.Load, l.Remote.Run
		if n.Running.Value != 3 || n.Waiting.Value != 4 || !near(n.KV, 75) || !near(n.CacheHit, 25) || n.MostRunning.Value != 3 || l.Ctx != 32768 {
			t.Errorf("read %+v", n)
		}
		if run.Result.Remote.Cached.Value != 48 || run.Result.NCached != 48 {
			t.Errorf("told %+v", run.Result.Remote)
		}
		if others == 0 && (!near(far.Queue, 0.25) || !near(far.Prefill, 0.5) || !near(far.Decode, 4)) || others > 0 && (far.Queue.OK || far.Prefill.OK) {
			t.Errorf("with %d others this run took %+v", others, far)
		}
	}
}

func TestOllamasDurations(t *testing.T) {
	s := serve(t)
	h := connect(t, Config{URL: s.URL})
	s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
		stream(piece("Hi"))
		stream(`{"choices":[{"delta":{},"finish_reason":"stop"}],"total_duration":5000000000,"load_duration":1500000000,"prompt_eval_count":26,"prompt_eval_duration":130000000,"eval_count":100,"eval_duration":2000000000}`)
	}
	far := ask(t, h, "hello").Result.Remote
	if !near(far.Load, 1.5) || !near(far.Prefill, 0.13) || !near(far.PrefillTPS, 200) || !near(far.Decode, 2) || !near(far.DecodeTPS, 50) {
		t.Errorf("told %+v", far)
	}
}

// Metrics are asked for once a second while an answer is under way, rarely
// otherwise, and never again where there are none. Whatever comes is quiet.
func TestHowOftenMetricsAreAskedFor(t *testing.T) {
	s := serve(t)
	var polls atomic.Int64
	body := "vllm:num_requests_running 1\n"
	s.other["/metrics"] = func(w http.ResponseWriter, _ *http.Request) {
		polls.Add(1)
		io.WriteString(w, body)
	}
	h := connect(t, Config{URL: s.URL})
	second := func(n int) {
		for range n {
			h.clock.Add(1e9)
			h.beats <- time.Time{}
		}
		h.beats <- time.Time{}
	}
	second(19)
	if n := polls.Load(); n != 2 && n != 3 {
		t.Errorf("%d polls in 20 idle seconds", n)
	}
	before := polls.Load()
	asked, goOn := make(chan struct{}), make(chan struct{})
	s.chat = func(_ http.ResponseWriter, _ *http.Request, stream func(string)) {
		close(asked)
		<-goOn
		say(stream, "Hi")
	}
	done := make(chan *backend.Run)
	go func() { done <- ask(t, h, "hello") }()
	<-asked
	second(4)
	if n := polls.Load() - before; n < 4 || n > 5 {
		t.Errorf("%d polls in 5 seconds of an answer", n)
	}
	close(goOn)
	<-done
	for name, answer := range map[string]http.HandlerFunc{
		"nothing there": http.NotFound,
		"other metrics": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "go_goroutines 7\n") },
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<html>vllm:num_requests_running</html>")
		},
		"no end": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x 1\n", mostBody/3)) },
	} {
		s := serve(t)
		var polls atomic.Int64
		s.other["/metrics"] = func(w http.ResponseWriter, r *http.Request) {
			polls.Add(1)
			answer(w, r)
		}
		h := connect(t, Config{URL: s.URL})
		for range 5 {
			h.clock.Add(60e9)
			h.beat()
		}
		if n := live(h).Remote.Load; n.Known || n.Why == "" || polls.Load() != 1 || h.told() != nil {
			t.Errorf("%s: asked %d times, %+v, told %q", name, polls.Load(), n, h.told())
		}
		works(t, s, h)
	}
}
