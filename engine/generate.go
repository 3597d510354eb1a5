package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bmoe/engine/backend"
	"bmoe/engine/chat"
	"bmoe/engine/pool"
	"bmoe/engine/sample"
	"bmoe/engine/tokenizer"
	"bmoe/flashio"
	"bmoe/internal/clock"
	"bmoe/internal/units"
	"bmoe/profile"
)

// ErrNothingToRepeat is returned by Again before there was a run.
var ErrNothingToRepeat = errors.New("there is no run to repeat yet")

var errNoLanes = errors.New("no lanes are open: an earlier change failed; change the lanes again")

// The reasons for which a generation stops.
const (
	stopEOS       = "eos"
	stopLength    = "length"
	stopContext   = "context"
	stopCancelled = "cancelled"
	stopError     = "error"
)

// Generate answers a message, or continues a prompt with Config.Raw. An error
// is a request that cannot run. A generation that was cancelled or failed part
// way comes back as a run whose Err says so.
func (s *Session) Generate(ctx context.Context, r backend.Request) (*backend.Run, error) {
	b := &beginning{request: r, conversation: *s.conversation.Clone(), dropped: s.dropped, base: -1}
	if s.cfg.NoThink {
		b.thinking = new(bool)
	}
	return s.begin(ctx, b)
}

// Again repeats the last run from the same start: the conversation as it was
// before its message, what the state held then, an empty cache, the same seed.
func (s *Session) Again(ctx context.Context, onDelta func(backend.Delta)) (*backend.Run, error) {
	if s.last == nil {
		return nil, ErrNothingToRepeat
	}
	b := *s.last
	b.request.OnDelta, b.request.OnPrefill = onDelta, nil
	s.conversation = *b.conversation.Clone()
	if s.streamer != nil {
		s.streamer.Empty()
	}
	return s.begin(ctx, &b)
}

// begin turns the request into ids, winds the state back to what they have in
// common with it, and runs.
func (s *Session) begin(ctx context.Context, b *beginning) (*backend.Run, error) {
	if s.reader == nil {
		return nil, errNoLanes
	}
	started := clock.Now()
	ids, rendered, dropped, err := s.promptIDs(ctx, b)
	if err != nil {
		return nil, err
	}
	if b.base < 0 {
		// The last id is computed again in any case: its logits are needed.
		b.base = min(chat.CommonPrefix(s.ids, ids), len(ids)-1)
		b.held = len(s.ids)
	}
	if b.base, err = s.rewind(b.base); err != nil {
		return nil, err
	}
	// Again comes back to here.
	for _, n := range append([]int{b.base}, s.places(ctx, ids, b)...) {
		if err := s.state.Mark(n); err != nil {
			return nil, err
		}
	}
	s.last, s.dropped = b, b.dropped+dropped
	return s.run(ctx, b, ids, rendered, started)
}

// promptIDs renders the conversation with the new message. Turns that no
// longer fit are dropped, oldest first.
func (s *Session) promptIDs(ctx context.Context, b *beginning) (ids []int32, rendered string, dropped int, err error) {
	if s.cfg.Raw {
		if ids = s.text.RawPrompt(b.request.Text); len(ids) == 0 {
			return nil, "", 0, errors.New("the prompt is empty")
		}
		if len(ids) >= s.cfg.Ctx {
			return nil, "", 0, &chat.TooLongError{Tokens: len(ids), Context: s.cfg.Ctx, Reserve: 1}
		}
		return ids, b.request.Text, 0, nil
	}
	asked := b.conversation.Clone()
	asked.Append(chat.Message{Role: chat.User, Content: b.request.Text})
	encode := func(ms []chat.Message) ([]int32, error) {
		var err error
		rendered, ids, err = s.text.Prompt(ctx, ms, b.thinking)
		return ids, err
	}
	reserve := s.cfg.Ctx / 4
	if n := s.limit(b.request.MaxTokens); n > 0 {
		reserve = min(n, s.cfg.Ctx/2)
	}
	c := asked.Clone()
	ids, dropped, err = c.Fit(s.cfg.Ctx, max(1, reserve), encode)
	var tooLong *chat.TooLongError
	switch {
	case errors.As(err, &tooLong) && tooLong.Tokens < s.cfg.Ctx:
		// Better a short answer than none.
		ids, dropped, err = c.Fit(s.cfg.Ctx, 1, encode)
	case err == nil && dropped > 0:
		// What the state holds behind a dropped turn is lost. Dropping until half
		// of the context is free keeps the next turns from losing it again.
		roomy := asked.Clone()
		if _, n, rerr := roomy.Fit(s.cfg.Ctx, s.cfg.Ctx/2, encode); rerr == nil {
			c, dropped = roomy, n
		} else {
			_, err = encode(c.Messages)
		}
	}
	if err != nil {
		return nil, "", 0, err
	}
	if len(ids) == 0 {
		return nil, "", 0, errors.New("the model's chat template makes an empty prompt of this conversation: use {raw=on}")
	}
	s.conversation = *c
	return ids, rendered, dropped, nil
}

// rewind brings the state back to n positions, or to the nearest mark before.
func (s *Session) rewind(n int) (int, error) {
	n, err := s.state.Rewind(n)
	s.ids = s.ids[:n]
	return n, err
}

// leastMark is how many ids a prompt begins with for their end to be worth a
// mark: fewer are computed again at once.
const leastMark = 16

// places returns where the prefill of ids marks the state: at the end of what every
// chat with these system messages begins with, and of the conversation, before the
// words that ask for an answer. (A mark at the end of the answer follows when it is
// there.) Both are found by comparing ids, because templates add to what they are
// given, and leave parts of it out.
func (s *Session) places(ctx context.Context, ids []int32, b *beginning) []int {
	if s.cfg.Raw || s.state.Marks().Most == 0 {
		return nil
	}
	ms := s.conversation.Messages
	user := slices.IndexFunc(ms, func(m chat.Message) bool { return m.Role != chat.System })
	other := "0"
	if strings.HasPrefix(strings.TrimSpace(ms[user].Content), other) {
		other = "1"
	}
	var places []int
	for _, alike := range []struct {
		messages []chat.Message
		ask      bool
	}{
		{append(slices.Clone(ms[:user]), chat.Message{Role: chat.User, Content: other}), true},
		{ms, false},
	} {
		_, have, err := s.text.render(ctx, alike.messages, b.thinking, alike.ask)
		if err != nil {
			continue // some templates refuse what asks for no answer: then there is no mark
		}
		if n := chat.CommonPrefix(have, ids); n >= leastMark && n > b.base && n < len(ids) && !slices.Contains(places, n) {
			places = append(places, n)
		}
	}
	return places
}

// answer is what a generation has produced so far.
type answer struct {
	ids       []int32
	decoder   *tokenizer.Decoder
	reasoning *chat.Reasoning // nil with Raw
	text      []byte          // of a raw answer; else in reasoning
	record    profile.Record
	walls     []float32 // seconds of each decoded token, as many as a comparison may want
}

// run prefills and generates.
func (s *Session) run(ctx context.Context, b *beginning, ids []int32, rendered string, started int64) (*backend.Run, error) {
	limit := s.cfg.Ctx - len(ids) + 1 // the last token needs no position
	if n := s.limit(b.request.MaxTokens); n > 0 {
		limit = min(limit, n)
	}
	if s.forced != nil {
		limit = s.forced.begin(len(ids), limit)
	}
	sampler, err := sample.New(s.cfg.Sampling, s.arch.Info().Vocab)
	if err != nil {
		return nil, err
	}
	sampler.Accept(ids...)
	run := &backend.Run{N: s.ran + 1, Prompt: b.request.Text, When: time.Now(), Settings: backend.Values(s.Settings()), ColdCache: s.cacheIsEmpty(),
		StartKey: s.startKey(b, ids, limit), Asked: backend.AskedKey(spoken(&b.conversation), b.request.Text, s.limit(b.request.MaxTokens))}
	a := &answer{ids: s.room(limit), text: s.textRoom[:0], walls: make([]float32, 0, min(limit, profile.HistoryTokens)),
		decoder: s.text.Tokenizer.NewDecoder()}
	if !s.cfg.Raw {
		a.reasoning = chat.NewReasoning(rendered)
	}
	start := profile.Start{Run: run.N, Turn: s.turn(), Started: started, Held: b.held, Base: b.base, Prompt: len(ids) - b.base, MaxTokens: limit}
	if s.streamer != nil {
		start.Touches = s.arch.Info().MoELayers() * s.arch.Info().Experts.Used
	}
	if s.streamer != nil {
		s.aheadBefore = s.streamer.Ahead()
	}
	s.meter.begin(start)
	s.tellBegan(&start)
	asked := s.ask(ctx)
	stop := stopError
	err = s.prefill(ctx, ids, b)
	if err == nil {
		stop, err = s.decode(ctx, a, sampler, b.request, limit)
	}
	asked()
	if err == nil {
		err = s.state.Mark(len(s.ids)) // the next turn goes on from here
	} else if ctx.Err() != nil {
		stop, err = stopCancelled, ctx.Err() // reads fail then that a signal interrupted
	}
	s.flush(a, b.request.OnDelta)
	s.meter.end()
	if err != nil {
		run.Err = err
	}
	s.finish(run, a, b, ids, stop)
	return run, nil
}

// tellBegan tells the observers of a run, if there are any.
func (s *Session) tellBegan(start *profile.Start) {
	if len(s.observers) == 0 {
		return
	}
	var live profile.Snapshot
	s.Snapshot(&live)
	for _, o := range s.observers {
		o.Began(start, &live)
	}
}

// roomAhead is for how many tokens of an answer there is room before the first:
// what is longer grows its room as it goes.
const roomAhead = 8192

// room returns the session's memory for an answer's ids, and makes that for its
// text, so that decoding allocates nothing and a run leaves nothing of it behind.
func (s *Session) room(limit int) []int32 {
	limit = min(limit, roomAhead)
	s.idsRoom, s.textRoom = slices.Grow(s.idsRoom[:0], limit), slices.Grow(s.textRoom[:0], 8*limit)
	return s.idsRoom
}

// prefill computes what the state lacks of the prompt, a batch at a time, and leaves the
// logits of the last id.
func (s *Session) prefill(ctx context.Context, ids []int32, b *beginning) error {
	tell := func(done int) {
		if f := b.request.OnPrefill; f != nil {
			f(done, len(ids)-b.base)
		}
	}
	tell(0)
	for at := b.base; at < len(ids); {
		n := min(s.cfg.UBatch, len(ids)-at)
		var logits []float32
		if at+n == len(ids) {
			logits = s.logits
		}
		if err := s.forward(ctx, ids[at:at+n], logits); err != nil {
			return err
		}
		at += n
		s.meter.prefilled(at - b.base)
		tell(at - b.base)
	}
	return nil
}

// decode chooses tokens, passes their text on and computes the next one's logits,
// until something ends the answer: stop says what.
func (s *Session) decode(ctx context.Context, a *answer, sampler *sample.Sampler, r backend.Request, limit int) (stop string, err error) {
	s.decoding(true)
	defer s.decoding(false)
	for step := 1; ; step++ {
		id, err := sampler.Sample(s.logits)
		if err != nil {
			return stopError, fmt.Errorf("token %d: %w", step, err)
		}
		if s.text.Tokenizer.IsEOG(id) {
			if step == 1 {
				s.meter.rec.Nothing()
			}
			return stopEOS, nil
		}
		sampler.Accept(id)
		a.ids = append(a.ids, id)
		if step == 1 {
			s.meter.first()
		} else {
			s.meter.token(id, &a.record)
			for _, o := range s.observers {
				o.Token(&a.record)
			}
			if len(a.walls) < cap(a.walls) {
				a.walls = append(a.walls, float32(units.InSeconds(a.record.Wall)))
			}
		}
		s.emit(a, id, step, r.OnDelta)
		switch {
		case step == limit && limit == s.limit(r.MaxTokens):
			return stopLength, nil
		case step == limit:
			return stopContext, nil
		}
		if err := s.forward(ctx, a.ids[step-1:step], s.logits); err != nil {
			return stopError, err
		}
	}
}

// turn returns the number of the conversation's turn, from 1, dropped ones
// included.
func (s *Session) turn() int {
	n := s.dropped
	for _, m := range s.conversation.Messages {
		if m.Role == chat.User {
			n++
		}
	}
	return max(1, n)
}

// ask makes ctx the one whose end makes lanes give up reads that signals interrupt, and
// looks after reads that hang, until the function that comes back is called.
func (s *Session) ask(ctx context.Context) (done func()) {
	s.asking.Store(&ctx)
	watched := s.watch(ctx)
	return func() {
		watched()
		s.asking.Store(nil)
	}
}

// unwanted reports whether nobody waits for reads any more.
func (s *Session) unwanted() bool {
	ctx := s.asking.Load()
	return ctx != nil && (*ctx).Err() != nil
}

// forward appends ids to the state. A fault in the mapping, as when the file
// shrinks under it, is an error like any other.
func (s *Session) forward(ctx context.Context, ids []int32, logits []float32) error {
	f := &s.pass
	f.ctx, f.ids, f.logits, f.err = ctx, ids, logits, nil
	if s.streamer != nil {
		s.streamer.Tokens(ids)
	}
	if s.tracing != nil {
		s.tracing.begin(ids, len(s.ids))
		defer s.tracing.flush()
	}
	s.meter.pass(len(ids))
	if err := flashio.Guard(f.guarded); err != nil {
		return err
	}
	if f.err == nil {
		s.ids = append(s.ids, ids...)
	}
	return f.err
}

// pass is one forward pass. It is a struct of the session's so that a call
// allocates nothing.
type pass struct {
	ctx     context.Context
	ids     []int32
	logits  []float32
	err     error
	guarded func()
}

// guardedPass runs s.pass. A panic of another worker is raised again as itself,
// so that a fault there is told apart from a bug.
func (s *Session) guardedPass() {
	defer func() {
		if p := recover(); p != nil {
			if worker, ok := p.(*pool.Panic); ok && worker.Fault() {
				panic(worker.Value)
			}
			panic(p)
		}
	}()
	f := &s.pass
	f.err = s.arch.Forward(f.ctx, s.state, f.ids, f.logits)
}

// emit passes a token's text on.
func (s *Session) emit(a *answer, id int32, step int, onDelta func(backend.Delta)) {
	text := a.decoder.Push(id)
	var d backend.Delta
	if a.reasoning == nil {
		a.text = append(a.text, text...)
		d.Text = text
	} else {
		d.Reasoning, d.Text = a.reasoning.Push(text)
		d.WasThought = a.reasoning.Turned()
	}
	if onDelta == nil {
		return
	}
	d.Token = id
	if step > 1 {
		d.Record = &a.record
	}
	onDelta(d)
}

// flush passes on what the decoder and the reasoning span held back.
func (s *Session) flush(a *answer, onDelta func(backend.Delta)) {
	text := a.decoder.Flush()
	d := backend.Delta{Token: tokenizer.None}
	if a.reasoning == nil {
		a.text = append(a.text, text...)
		d.Text = text
	} else {
		r1, t1 := a.reasoning.Push(text)
		r2, t2 := a.reasoning.Flush()
		d.Reasoning, d.Text, d.WasThought = r1+r2, t1+t2, a.reasoning.Turned()
	}
	if onDelta != nil && (d.Text+d.Reasoning != "" || d.WasThought) {
		onDelta(d)
	}
}

// finish writes the result down and takes the answer into the conversation.
func (s *Session) finish(run *backend.Run, a *answer, b *beginning, ids []int32, stop string) {
	message := chat.Message{Role: chat.Assistant, Content: string(a.text)}
	if a.reasoning != nil {
		message = a.reasoning.Message()
	}
	s.ran++
	run.Sum, run.Walls = s.meter.rec.Sum(), slices.Clone(a.walls)
	r := &run.Result
	r.Text, r.Reasoning = message.Content, message.Reasoning
	r.TokenIDs = slices.Clone(a.ids)
	r.NPrompt, r.NCached, r.NGen, r.StopReason = len(ids), b.base, len(a.ids), stop
	sum := sha256.Sum256([]byte(s.text.Tokenizer.Decode(a.ids, true)))
	r.TextSHA256 = hex.EncodeToString(sum[:])
	s.fillResult(r, run)
	for _, o := range s.observers {
		o.Ended(r)
	}
	s.idsRoom, s.textRoom = a.ids, a.text
	switch {
	case s.cfg.Raw:
	case run.Err != nil && len(a.ids) == 0:
		// Nothing was said: the message can be sent again.
		s.conversation, s.dropped = *b.conversation.Clone(), b.dropped
	default:
		s.conversation.Append(message)
	}
}

// cacheIsEmpty reports whether a run starts cold.
func (s *Session) cacheIsEmpty() bool {
	if s.streamer == nil {
		return true
	}
	_, n := s.streamer.Directory().Resident()
	return n == 0
}

// startKey identifies what a run started from: the ids, how many of them the
// state held, how tokens are chosen and how many at most.
func (s *Session) startKey(b *beginning, ids []int32, limit int) string {
	h := sha256.New()
	// Integers, floats and strings: encoding cannot fail.
	key, _ := json.Marshal([]any{ids, b.base, s.cfg.Sampling, limit})
	h.Write(key)
	return hex.EncodeToString(h.Sum(nil)[:8])
}
