package profile

// Remote is what is known of a server that computes in our place. Server is empty
// where the model runs here.
type Remote struct {
	Server  string // what program it is, as far as it says: llama-server, vLLM, Ollama, LM Studio, server
	Address string // host and port
	// RoundTrip is the time that the network takes to the server and back, ns: that of
	// the latest connection being made. Through a proxy it is the way to the proxy.
	RoundTrip Maybe[int64]
	Run       RemoteRun // the current run's, or the last one's
	Load      RemoteLoad
	// Silence is for how long nothing has come of the answer under way, ns; not
	// measured while none is.
	Silence Maybe[int64]
}

// RemoteRun is what a server tells of its part in a run, times in seconds. A
// server that tells nothing leaves all of it unmeasured.
type RemoteRun struct {
	Server string `json:"server"`
	Model  string `json:"model"`
	// Deltas is how many pieces the answer came in. A server may send several tokens
	// in one.
	Deltas int64 `json:"deltas"`
	// Told is true if the server counted the tokens; otherwise each delta is taken
	// for one.
	Told      bool           `json:"usage_told"`
	Prompt    Maybe[int64]   `json:"n_prompt"` // tokens
	Cached    Maybe[int64]   `json:"n_cached"` // of them, those that the server had from before
	Reasoning Maybe[int64]   `json:"n_reasoning"`
	Queue     Maybe[float64] `json:"queue_s"`
	Load      Maybe[float64] `json:"load_s"` // loading the model for this request
	Prefill   Maybe[float64] `json:"prefill_s"`
	Decode    Maybe[float64] `json:"decode_s"`
	// PrefillTPS and DecodeTPS are tokens a second without the network.
	PrefillTPS Maybe[float64] `json:"prefill_tps"`
	DecodeTPS  Maybe[float64] `json:"decode_tps"`
	RoundTrip  Maybe[float64] `json:"round_trip_s"`
}

// RemoteLoad is what a server's metrics say, of all who use it.
type RemoteLoad struct {
	Known            bool           // it has metrics that we can read
	Why              string         // why not, if it has not
	Running, Waiting Maybe[int64]   // requests now
	KV               Maybe[float64] // percent of the KV cache in use now
	CacheHit         Maybe[float64] // percent of prompt tokens found in the prefix cache, since the server started
	MostRunning      Maybe[int64]   // requests at once during the run
	MostWaiting      Maybe[int64]
}
