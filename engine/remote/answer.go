package remote

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	"bmoe/engine/backend"
	"bmoe/engine/chat"
	"bmoe/internal/units"
	"bmoe/profile"

	"github.com/openai/openai-go/v3/packages/ssestream"
)

// beginning is where a run started from, so that it can be repeated.
type beginning struct {
	request backend.Request
	before  []backend.Message
}

// answer is what a request has brought so far.
type answer struct {
	remote  *Remote
	onDelta func(backend.Delta)
	onRead  func(done, of int)

	thoughts strings.Builder // that the server told apart
	tags     *chat.Reasoning // the rest, divided by its tags
	deltas   int64
	bytes    int64 // of text, thoughts included
	record   profile.Record
	walls    []float32 // seconds between deltas
	finish   string    // why the server ended; empty: it has not
	looked   int64

	usage *usage
	timed *timings
}

// lookEvery is how often what needs more than a delta's reading is renewed.
const lookEvery = units.Second / 10

// Generate answers a message. An error is a request that brought nothing; what
// failed or was stopped part way comes back as a run whose Err says so.
func (r *Remote) Generate(ctx context.Context, q backend.Request) (*backend.Run, error) {
	return r.begin(ctx, &beginning{request: q, before: slices.Clone(r.messages)})
}

// Again repeats the last prompt from the same conversation, with the settings in
// force: the seed and the temperature stay what they were unless they were changed.
func (r *Remote) Again(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	if r.last == nil {
		return nil, ErrNothingToRepeat
	}
	b := *r.last
	b.request.OnDelta, b.request.OnPrefill = onDelta, nil
	return r.begin(ctx, &b)
}

// begin asks and reads the answer.
func (r *Remote) begin(ctx context.Context, b *beginning) (*backend.Run, error) {
	if strings.TrimSpace(b.request.Text) == "" {
		return nil, errors.New("the message is empty")
	}
	r.messages, r.last = slices.Clone(b.before), b
	run := &backend.Run{N: r.ran + 1, Engine: r.label(), Prompt: b.request.Text, When: time.Now(), Settings: backend.Values(r.Settings()),
		ColdCache: true, StartKey: backend.AskedKey(b.before, b.request.Text, b.request.MaxTokens), Asked: backend.AskedKey(b.before, b.request.Text, r.limit(&b.request))}
	a := &answer{remote: r, onDelta: b.request.OnDelta, onRead: b.request.OnPrefill, tags: chat.NewReasoning("")}
	start := profile.Start{Run: run.N, Turn: len(b.before)/2 + 1, Started: r.now(), MaxTokens: r.limit(&b.request), Undivided: true}
	r.rec.Begin(start, r.gauges())
	r.rec.Update(func(l *profile.Snapshot) { l.Remote.Run = profile.RemoteRun{Server: r.label(), Model: r.cfg.Model} })
	r.heard()
	r.asking.Store(true)
	err := a.read(ctx, r.request(b))
	r.asking.Store(false)
	a.flush()
	r.rec.Look(r.gauges())
	used := 0
	if a.usage != nil {
		used = int(a.usage.Prompt + a.usage.Completion)
	}
	r.rec.End(used)
	if err != nil && a.deltas == 0 {
		return nil, err // nothing was said: the message can be sent again
	}
	r.ran++
	run.Err = err
	a.close(run)
	r.messages = append(r.messages, backend.Message{Role: chat.User, Text: b.request.Text},
		backend.Message{Role: chat.Assistant, Text: run.Result.Text, Reasoning: run.Result.Reasoning})
	return run, nil
}

// limit is how many tokens an answer may have; 0: as many as the server lets it.
func (r *Remote) limit(q *backend.Request) int {
	if a, b := r.cfg.MaxTokens, q.MaxTokens; a > 0 && b > 0 {
		return min(a, b)
	}
	return max(r.cfg.MaxTokens, q.MaxTokens)
}

func (r *Remote) gauges() *profile.Gauges {
	return &profile.Gauges{Counters: profile.Reading{At: r.now()}}
}

// request is the body of a request, in the fields that all servers know.
func (r *Remote) request(b *beginning) []byte {
	q := question{Model: r.cfg.Model, Stream: true, Seed: r.cfg.Seed, Progress: r.kind.progress}
	q.Options.Usage = true
	for _, m := range b.before {
		q.Messages = append(q.Messages, contribution{m.Role, m.Text})
	}
	q.Messages = append(q.Messages, contribution{chat.User, b.request.Text})
	if r.cfg.Temp.OK {
		q.Temp = &r.cfg.Temp.Value
	}
	if n := r.limit(&b.request); r.kind.newLimit {
		q.NewLimit = n
	} else {
		q.Limit = n
	}
	body, err := json.Marshal(&q)
	if err != nil {
		panic(err) // texts and finite numbers
	}
	return body
}

// read sends the request and takes its answer, to its end or that of ctx.
func (a *answer) read(ctx context.Context, body []byte) error {
	r := a.remote
	res, err := r.ask(ctx, http.MethodPost, r.at.api.String()+"chat/completions", body)
	if err != nil {
		return r.fault(ctx, err)
	}
	stream := ssestream.NewStream[chunk](ssestream.NewDecoder(res), nil)
	for stream.Next() {
		c := stream.Current()
		a.take(&c)
	}
	err = stream.Err()
	switch {
	case a.finish != "" && ctx.Err() == nil:
		return a.believed() // what came after the answer's end does not spoil it
	case err == nil:
		err = errCut
	}
	return r.fault(ctx, err)
}

// take takes one event of the stream.
func (a *answer) take(c *chunk) {
	if c.Usage != nil && c.Usage.Completion+c.Usage.Prompt > 0 {
		a.usage = c.Usage
	}
	if c.Timings != nil {
		a.timed = c.Timings
	}
	if d := c.durations; d.Eval > 0 {
		a.timed = d.timings()
	}
	if p := c.Progress; p != nil && a.deltas == 0 && p.Total > 0 {
		a.reading(p)
	}
	if len(c.Choices) == 0 {
		return
	}
	first := &c.Choices[0]
	thought := first.Delta.ReasoningContent
	if thought == "" {
		thought = first.Delta.Reasoning
	}
	if text := first.Delta.Content; thought != "" || text != "" {
		a.piece(thought, text)
	}
	if first.Finish != "" {
		a.finish = first.Finish
	}
}

// reading notes how far the server is with the prompt.
func (a *answer) reading(p *progress) {
	done, of := max(p.Done-p.Cached, 0), max(p.Total-p.Cached, 0)
	a.remote.rec.Update(func(l *profile.Snapshot) { l.Prompt, l.PromptDone = of, done })
	if a.onRead != nil {
		a.onRead(done, of)
	}
}

// piece takes a part of the answer.
func (a *answer) piece(thought, text string) {
	r := a.remote
	at := profile.Reading{At: r.now()}
	d := backend.Delta{}
	if a.deltas++; a.deltas == 1 {
		r.rec.First(&at)
	} else {
		r.rec.Token(&at, 0, &a.record)
		d.Record = &a.record
		if len(a.walls) < profile.HistoryTokens {
			a.walls = append(a.walls, float32(units.InSeconds(a.record.Wall)))
		}
	}
	if at.At-a.looked >= lookEvery {
		a.looked = at.At
		r.rec.Look(r.gauges())
	}
	a.bytes += int64(len(thought) + len(text))
	a.thoughts.WriteString(thought)
	tagged, said := a.tags.Push(text)
	d.Reasoning, d.Text, d.WasThought = thought+tagged, said, a.tags.Turned()
	if a.onDelta != nil {
		a.onDelta(d)
	}
}

// flush passes on what could still have become a tag.
func (a *answer) flush() {
	thought, text := a.tags.Flush()
	turned := a.tags.Turned()
	if a.onDelta != nil && (thought+text != "" || turned) {
		a.onDelta(backend.Delta{Reasoning: thought, Text: text, Token: -1, WasThought: turned})
	}
}

// markTokens is how many tokens an answer may have that are no text: the ends of
// messages and the marks around thoughts.
const markTokens = 16

// believed holds what the server counted against what it sent: a token is a byte
// at least, or a mark.
func (a *answer) believed() error {
	u := a.usage
	if u == nil {
		return nil
	}
	n := u.Completion
	if a.thoughts.Len() == 0 {
		n -= u.CompletionDetails.Reasoning // thought, and told to nobody
	}
	if n > a.bytes+markTokens || a.bytes == 0 && n > 1 {
		a.usage = nil
		return &Fault{text: fmt.Sprintf("%s: the server says that it generated %s, and sent %s of text: its figures are left out",
			a.remote.at, units.Plural(u.Completion, "token"), units.Plural(a.bytes, "byte"))}
	}
	return nil
}

// close writes the run down: what was seen from here, and what the server told.
func (a *answer) close(run *backend.Run) {
	r := a.remote
	said := a.tags.Message()
	res := &run.Result
	res.Text, res.Reasoning = said.Content, a.thoughts.String()+said.Reasoning
	sum := sha256.Sum256([]byte(res.Reasoning + "\x00" + res.Text))
	res.TextSHA256 = hex.EncodeToString(sum[:])
	res.StopReason = a.stopReason(run.Err)
	res.TokenIDs = []int32{}
	far := a.far()
	res.NGen = int(a.deltas)
	if far.Told {
		res.NGen = int(a.usage.Completion)
		res.NPrompt, res.NCached = int(a.usage.Prompt), int(far.Cached.Value)
	}
	run.Sum = r.rec.Sum()
	// Several tokens may have come in a delta. The one that ends an answer comes in
	// none.
	gaps, tokens := run.Sum.Tokens, run.Sum.Tokens
	if far.Told && a.usage.Completion > a.deltas+1 {
		tokens = a.usage.Completion - 1
	}
	run.Walls = slices.Clone(a.walls)
	var wall profile.Maybe[float64]
	if gaps > 0 && run.Sum.Wall > 0 {
		for i := range run.Walls {
			run.Walls[i] *= float32(gaps) / float32(tokens)
		}
		wall = profile.Ratio(units.InSeconds(run.Sum.Wall), float64(tokens))
		res.DecodeTPS = profile.Ratio(float64(tokens), units.InSeconds(run.Sum.Wall))
	}
	res.PerToken.Wall = wall
	res.PrefillTPS = far.PrefillTPS
	r.rec.Update(func(l *profile.Snapshot) {
		l.DecodeTPS, l.PrefillTPS, l.Step = res.DecodeTPS, res.PrefillTPS, res.NGen
		if far.Prompt.OK {
			l.Prompt = int(far.Prompt.Value - far.Cached.Value)
			l.PromptDone = l.Prompt
		}
		l.Remote.Run = far
	})
	var live profile.Snapshot
	r.Snapshot(&live)
	res.TTFT = profile.In(live.TTFT, units.Second)
	res.Load = profile.Some(units.InSeconds(r.took))
	res.Remote = &far
	res.Mapping.State = profile.MappingNone
	res.Prefetch.By = []profile.Guesses{}
	res.Diagnosis = append([]profile.Finding{}, profile.Diagnose(&live)...)
	res.Config, res.Flags = r.cfg, []string{}
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	res.Memory.RuntimeMiB = units.InMiB(int64(ms.Sys - ms.HeapReleased))
}

// far is the server's part in the run.
func (a *answer) far() profile.RemoteRun {
	r := a.remote
	f := profile.RemoteRun{Server: r.label(), Model: r.cfg.Model, Deltas: a.deltas}
	if n := r.roundTrip.Load(); n > 0 {
		f.RoundTrip = profile.Some(units.InSeconds(n))
	}
	if u := a.usage; u != nil {
		f.Told, f.Prompt = true, profile.Some(u.Prompt)
		if u.PromptDetails != nil {
			f.Cached = profile.Some(min(u.PromptDetails.Cached, u.Prompt))
		}
		if n := u.CompletionDetails.Reasoning; n > 0 {
			f.Reasoning = profile.Some(n)
		}
	}
	if t := a.timed; t != nil {
		t.fill(&f)
	}
	return f
}

// stopReason puts the server's word, or ours, for the end.
func (a *answer) stopReason(err error) string {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "cancelled"
	case err != nil:
		return "error"
	case a.finish == "stop":
		return "eos"
	case a.finish == "length":
		if a.remote.last != nil && a.remote.limit(&a.remote.last.request) == 0 {
			return "context"
		}
		return "length"
	}
	return a.remote.clean(a.finish)
}
