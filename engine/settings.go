package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"bmoe/engine/backend"
	"bmoe/engine/expert"
	"bmoe/engine/expert/policy"
	"bmoe/flashio"
)

// setting is a row of the table of settings.
type setting struct {
	backend.Setting // what faces see; the value and what the field knows are filled in by rows
	field
	// idle says why the setting changes nothing beside the others; nil: it always does.
	idle func(*Config) string
	// apply puts the value that a checked configuration holds into effect, between
	// runs; nil: it is fixed once the model is open. The session's own
	// configuration is apply's to change.
	apply func(*Session, Config) (backend.Verdict, string, error)
	// step returns the value dir steps from another one; nil: as the kind goes.
	step func(s *Session, from string, dir int) string
}

// The headings of the help.
const (
	sectionPrompt    = "Prompt"
	sectionModel     = "Model"
	sectionCompute   = "Compute"
	sectionStreaming = "Streaming"
	sectionSampling  = "Sampling (defaults: the model's own settings, else greedy)"
)

// table is the settings in the order in which they are shown and applied.
type table []setting

// settings is the one place where a setting is described. Flags, help, manual,
// completion, keys, chat commands, run list, comparison and --json read it.
var settings = slices.Concat(table{
	{Setting: backend.Setting{Name: "n-predict", Flag: "n-predict", Short: "n", Section: sectionPrompt, Live: true,
		Help: "at most so many tokens in an answer; 0: until the model ends or the context is full"},
		field: whole{at: func(c *Config) *int { return &c.MaxTokens }, least: 0, most: maxTokens}, apply: (*Session).applyMaxTokens},

	{Setting: backend.Setting{Name: "model", Flag: "model", Short: "m", Section: sectionModel,
		Help: "the model, a GGUF file; the first shard of a split set is enough (default: the demo model)"},
		field: text{func(c *Config) *string { return &c.Model }, "PATH"}},
	{Setting: backend.Setting{Name: "ctx", Flag: "ctx-size", Short: "c", Section: sectionModel,
		Help: "context in tokens (default: the model's, at most 4096)"},
		field: whole{at: func(c *Config) *int { return &c.Ctx }, least: 1, most: MaxCtx, chosen: true}},
	{Setting: backend.Setting{Name: "raw", Flag: "raw", Section: sectionModel,
		Help: "give the model the prompt as it is, without its chat template"},
		field: toggle(func(c *Config) *bool { return &c.Raw })},
	{Setting: backend.Setting{Name: "chat-template", Flag: "chat-template-file", Section: sectionModel,
		Help: "a Jinja template in place of the model's own"},
		field: text{func(c *Config) *string { return &c.TemplateFile }, "PATH"}},
	{Setting: backend.Setting{Name: "parse-special", Flag: "parse-special", Section: sectionModel,
		Help: "take special tokens that a prompt or a message spells out for tokens; otherwise they are text, except with {raw=on}"},
		field: toggle(func(c *Config) *bool { return &c.ParseSpecial }), idle: rawIdle},
	{Setting: backend.Setting{Name: "no-think", Flag: "no-think", Section: sectionModel,
		Help: "ask the template for an answer without reasoning"},
		field: toggle(func(c *Config) *bool { return &c.NoThink })},

	{Setting: backend.Setting{Name: "experts-used", Flag: "n-expert-used", Section: sectionModel, Lossy: true,
		Help: "experts that a token is given in each layer (default: as the model says)"},
		field: whole{at: func(c *Config) *int { return &c.ExpertsUsed }, least: 1, most: math.MaxInt16, chosen: true}},
	{Setting: backend.Setting{Name: "drop-cold", Flag: "drop-cold-experts", Section: sectionModel, Live: true, Lossy: true,
		Help: "in an answer, leave out experts that are not in the cache and have less than this share of the token's weights; 0: none"},
		field: number{func(c *Config) *float64 { return &c.DropCold }, 0, 1, "0 to 1"}, idle: cacheIdle, apply: (*Session).applyThrift},
	{Setting: backend.Setting{Name: "drop-renorm", Flag: "drop-renorm", Section: sectionModel, Live: true, Lossy: true,
		Help: "with {drop-cold}: give the weights that are left the sum of all"},
		field: toggle(func(c *Config) *bool { return &c.DropRenorm }), idle: renormIdle, apply: (*Session).applyThrift},
	{Setting: backend.Setting{Name: "substitute", Flag: "expert-substitute", Section: sectionModel, Live: true, Lossy: true,
		Help: "in an answer, compute with the best expert in the cache in place of one that is not there, if the router's score is lower by this share at most; 0: never"},
		field: number{func(c *Config) *float64 { return &c.Substitute }, 0, 1, "0 to 1"}, idle: substituteIdle, apply: (*Session).applyThrift},
	{Setting: backend.Setting{Name: "force-route", Flag: "force-route", Section: sectionModel, Lossy: true,
		Help: "diagnostic: experts are chosen by a recorded route and not by the routers; the text means nothing then"},
		field: text{func(c *Config) *string { return &c.ForceRoute }, "TRACE"}},

	{Setting: backend.Setting{Name: "threads", Flag: "threads", Short: "t", Section: sectionCompute, Live: true,
		Help: "compute workers (default: the physical cores)"},
		field: whole{at: func(c *Config) *int { return &c.Threads }, least: 1, most: MaxThreads, chosen: true}, apply: (*Session).applyThreads},
	{Setting: backend.Setting{Name: "ubatch", Flag: "ubatch", Section: sectionCompute, Live: true,
		Help: "prompt tokens in a batch; auto: so many that a long prompt's experts are read as seldom as memory allows"},
		field: ubatch(func(c *Config) *int { return &c.UBatch }), apply: (*Session).applyUBatch},
	{Setting: backend.Setting{Name: "numerics", Flag: "numerics", Section: sectionCompute,
		Help: "fast: activations in 8 bits, as llama.cpp has them; exact: all in 32-bit floats, to compare with"},
		field: word{func(c *Config) *string { return &c.Numerics }, []string{"fast", "exact"}}},
	{Setting: backend.Setting{Name: "kv-type", Flag: "kv-type", Section: sectionCompute,
		Help: "type of the KV cache (default: f16, and f32 with {numerics=exact})"},
		field: word{func(c *Config) *string { return &c.KVType }, []string{"f32", "f16", "q8_0"}}},

	{Setting: backend.Setting{Name: "moe-stream", Flag: "moe-stream", Section: sectionStreaming,
		Help: "read experts from the drive as they are needed; without it they are computed from the file's mapping"},
		field: toggle(func(c *Config) *bool { return &c.Stream })},
	{Setting: backend.Setting{Name: "lanes", Flag: "io-threads", Section: sectionStreaming, Live: true, Main: true,
		Help: "lanes that read at once, 1 to " + strconv.Itoa(flashio.MaxLanes)},
		field: whole{at: func(c *Config) *int { return &c.Lanes }, least: 1, most: flashio.MaxLanes},
		idle:  lanesIdle, apply: (*Session).applyLanes, step: (*Session).stepLanes},
	{Setting: backend.Setting{Name: "cache", Flag: "cache-mb", Section: sectionStreaming, Live: true, Main: true,
		Help: "most that the expert cache takes, in MiB; 0: what one layer needs, and nothing is kept; or auto: what memory allows beside the rest, and for the demo model 40 % of what its experts take there"},
		field: budget(func(c *Config) *Budget { return &c.Cache }),
		idle:  cacheIdle, apply: (*Session).applyCache, step: (*Session).stepCache},
	{Setting: backend.Setting{Name: "cache-floor", Flag: "cache-floor-mb", Unit: "MiB", Section: sectionStreaming,
		Help: "least that an automatic budget is, in MiB; 0: no bound"},
		field: whole{at: func(c *Config) *int { return &c.CacheFloor }, least: 0, most: math.MaxInt32}, idle: autoIdle},
	{Setting: backend.Setting{Name: "cache-ceil", Flag: "cache-ceil-mb", Unit: "MiB", Section: sectionStreaming,
		Help: "most that an automatic budget is, in MiB; 0: no bound"},
		field: whole{at: func(c *Config) *int { return &c.CacheCeil }, least: 0, most: math.MaxInt32}, idle: autoIdle},
	{Setting: backend.Setting{Name: "force-cache", Flag: "force-cache", Section: sectionStreaming,
		Help: "take the budget even if it cannot work well"},
		field: toggle(func(c *Config) *bool { return &c.ForceCache }), idle: cacheIdle},
	{Setting: backend.Setting{Name: "cache-policy", Flag: "cache-policy", Section: sectionStreaming, Live: true, Main: true,
		Help: "which experts stay: lru: the last used; harmonic: those used often and lately; lookalike: the same, and those that followed tokens routed like this one; auto: whichever of these would have read least lately"},
		field: word{func(c *Config) *string { return &c.CachePolicy }, policy.Names()}, idle: cacheIdle, apply: (*Session).applyPolicy},
	{Setting: backend.Setting{Name: "overlap", Flag: "overlap", Section: sectionStreaming, Live: true, Main: true,
		Help: "compute the experts that are there while others are read"},
		field: toggle(func(c *Config) *bool { return &c.Overlap }), idle: streamIdle, apply: (*Session).applyOverlap},
}, predictorRows(), table{
	{Setting: backend.Setting{Name: "load-all", Flag: "load-all", Section: sectionStreaming,
		Help: "read every expert of every layer for each token and keep none: what streaming costs that does not look at the router"},
		field: toggle(func(c *Config) *bool { return &c.LoadAll }), idle: streamIdle},
	{Setting: backend.Setting{Name: "io-engine", Flag: "io-engine", Section: sectionStreaming,
		Help: "lanes: blocking reads; uring: Linux io_uring"},
		field: word{func(c *Config) *string { return &c.IOEngine }, []string{"lanes", "uring"}}, idle: lanesIdle},
	{Setting: backend.Setting{Name: "no-odirect", Flag: "no-odirect", Section: sectionStreaming,
		Help: "read through the page cache"},
		field: toggle(func(c *Config) *bool { return &c.NoDirect }), idle: lanesIdle},
	{Setting: backend.Setting{Name: "dense-weights", Flag: "dense-weights", Section: sectionStreaming, Live: true,
		Help: "weights that every token needs: in the mapping; the same, swept once into the page cache; or read into own memory"},
		field: word{func(c *Config) *string { return (*string)(&c.Dense) }, []string{string(DenseMmap), string(DenseWarm), string(DenseAnon)}}, apply: (*Session).applyDense},
	{Setting: backend.Setting{Name: "release-mmap", Flag: "release-mmap", Section: sectionStreaming, Live: true, Main: true,
		Help: "hand the file's mapping back after loading, and reopen the lanes"},
		field: toggle(func(c *Config) *bool { return &c.ReleaseMmap }), apply: (*Session).applyRelease},
	{Setting: backend.Setting{Name: "simulate-host", Flag: "simulate-host", Section: sectionStreaming,
		Help: "ntfs: reads behave as on a host that serialises those of a mapped file; figures are labelled SIMULATED"},
		field: word{func(c *Config) *string { return &c.SimulateHost }, []string{"ntfs"}}},

	{Setting: backend.Setting{Name: "temp", Flag: "temp", Section: sectionSampling, Live: true,
		Help: "temperature; 0 takes the likeliest token"},
		field: number{func(c *Config) *float64 { return &c.Sampling.Temp }, 0, math.MaxFloat64, "0 or more"}, apply: (*Session).applySampling},
	{Setting: backend.Setting{Name: "top-k", Flag: "top-k", Section: sectionSampling, Live: true,
		Help: "only so many of the likeliest; 0: all"},
		field: whole{at: func(c *Config) *int { return &c.Sampling.TopK }, least: 0, most: math.MaxInt}, apply: (*Session).applySampling},
	{Setting: backend.Setting{Name: "top-p", Flag: "top-p", Section: sectionSampling, Live: true,
		Help: "only the likeliest that make up this share; 1: all"},
		field: number{func(c *Config) *float64 { return &c.Sampling.TopP }, math.SmallestNonzeroFloat64, 1, "more than 0, up to 1"}, apply: (*Session).applySampling},
	{Setting: backend.Setting{Name: "min-p", Flag: "min-p", Section: sectionSampling, Live: true,
		Help: "only what is at least this share as likely as the likeliest; 0: all"},
		field: number{func(c *Config) *float64 { return &c.Sampling.MinP }, 0, 1, "0 to 1"}, apply: (*Session).applySampling},
	{Setting: backend.Setting{Name: "repeat-penalty", Flag: "repeat-penalty", Section: sectionSampling, Live: true,
		Help: "divide the chance of recent tokens by this; 1: no penalty"},
		field: number{func(c *Config) *float64 { return &c.Sampling.RepeatPenalty }, math.SmallestNonzeroFloat64, math.MaxFloat64, "more than 0"}, apply: (*Session).applySampling},
	{Setting: backend.Setting{Name: "repeat-last-n", Flag: "repeat-last-n", Section: sectionSampling, Live: true,
		Help: "tokens that count as recent; at most the context"},
		field: whole{at: func(c *Config) *int { return &c.Sampling.RepeatLastN }, least: 0, most: math.MaxInt}, apply: (*Session).applySampling},
	{Setting: backend.Setting{Name: "seed", Flag: "seed", Section: sectionSampling, Live: true,
		Help: "where the random numbers start"},
		field: seed(func(c *Config) *uint64 { return &c.Sampling.Seed }), apply: (*Session).applySampling},
})

// predictorRows are the settings of what reads ahead.
func predictorRows() (rows table) {
	for i, p := range expert.Predictors {
		level := whole{at: func(c *Config) *int { return &c.Foresight[i] }, most: p.Most}
		r := setting{Setting: backend.Setting{Name: p.Setting, Flag: p.Setting, Section: sectionStreaming, Live: true, Main: p.Default > 0, Help: p.Help},
			field: level, idle: guessIdle, apply: (*Session).applyForesight}
		if p.Most == 1 {
			r.field = turned{level}
		}
		rows = append(rows, r)
	}
	return rows
}

// rawIdle is the reason of what only matters to a chat template.
func rawIdle(c *Config) string {
	if c.Raw {
		return "with {raw=on} special tokens are always taken for tokens"
	}
	return ""
}

// notMoE is why a dense model leaves most of this program nothing to do.
const notMoE = "not MoE: nothing to stream"

// streamIdle is the reason of what only matters while experts are streamed.
func streamIdle(c *Config) string {
	switch {
	case c.dense:
		return notMoE
	case c.Stream:
		return ""
	}
	return "nothing is streamed with {moe-stream=off}"
}

// cacheIdle is the reason of what only matters while experts are kept.
func cacheIdle(c *Config) string {
	if c.Stream && c.LoadAll {
		return "with {load-all=on} nothing is kept: there is room for one layer"
	}
	return streamIdle(c)
}

// renormIdle is the reason of what shares out the weights of experts that are left out.
func renormIdle(c *Config) string {
	if c.Stream && c.DropCold == 0 {
		return "no expert is left out with {drop-cold=0}"
	}
	return cacheIdle(c)
}

// substituteIdle is the reason of what asks the router for another expert.
func substituteIdle(c *Config) string {
	if c.Stream && c.ForceRoute != "" {
		return "under {force-route} no router is asked"
	}
	return cacheIdle(c)
}

// autoIdle is the reason of what bounds an automatic budget.
func autoIdle(c *Config) string {
	if c.Stream && !c.LoadAll && !c.Cache.Auto {
		return "the budget is given: {cache=" + strconv.FormatInt(c.Cache.MiB(), 10) + "}"
	}
	return cacheIdle(c)
}

// guessIdle is the reason of what guesses which experts will be needed.
func guessIdle(c *Config) string {
	switch {
	case !c.Stream:
		return streamIdle(c)
	case c.LoadAll:
		return "with {load-all=on} nothing is guessed: all is read"
	case !c.Overlap:
		return "with {overlap=off} nothing is read while anything is computed"
	case c.ForceRoute != "":
		return "under {force-route} no guess means anything"
	}
	return ""
}

// lanesIdle is the reason of what decides how the drive is read.
func lanesIdle(c *Config) string {
	switch {
	case c.dense && c.Dense == DenseAnon:
		return notMoE + "; the drive is read through lanes at the start only"
	case c.dense:
		return notMoE
	case c.Stream:
		return ""
	case c.Dense == DenseAnon:
		return "with {moe-stream=off} the drive is read through lanes at the start only"
	}
	return "with {moe-stream=off} nothing is read through lanes"
}

// Settings returns the rows of a configuration: every setting with its value,
// in the order in which they are shown. It needs no session.
func Settings(c Config) []backend.Setting { return settings.rows(&c) }

func (t table) rows(c *Config) []backend.Setting {
	standard := DefaultConfig()
	out := make([]backend.Setting, len(t))
	for i := range t {
		r := &out[i]
		*r = t[i].row()
		r.Value, r.Default, r.Origin = t[i].get(c), t[i].get(&standard), c.origin(r.Name)
		if t[i].idle != nil {
			r.Idle = t[i].idle(c)
		}
	}
	return out
}

// row returns what there is to say of a setting whatever its value.
func (r *setting) row() backend.Setting {
	row := r.Setting
	r.describe(&row)
	return row
}

// find returns the row of a name, nil if there is none.
func (t table) find(name string) *setting {
	for i := range t {
		if t[i].Name == name {
			return &t[i]
		}
	}
	return nil
}

// Set gives a setting a value. A value that it cannot take is a
// *backend.SettingError, and changes nothing.
func (c *Config) Set(name, value, origin string) error { return settings.set(c, name, value, origin) }

func (t table) set(c *Config, name, value, origin string) error {
	row := t.find(name)
	if row == nil {
		return &backend.SettingError{Setting: name, Value: value, Problem: "there is no such setting"}
	}
	shown := row.row()
	if err := shown.Check(value); err != nil {
		return err
	}
	if err := row.put(c, value); err != nil {
		return &backend.SettingError{Setting: name, Value: value, Problem: err.Error()}
	}
	c.setOrigin(name, origin)
	return nil
}

// origin says where a value comes from.
func (c *Config) origin(name string) string {
	if o := c.Origins[name]; o != "" {
		return o
	}
	return backend.FromDefault
}

// setOrigin notes where a value comes from. Copies of a configuration share the
// map, so it is replaced.
func (c *Config) setOrigin(name, origin string) {
	m := maps.Clone(c.Origins)
	if m == nil {
		m = map[string]string{}
	}
	m[name] = origin
	c.Origins = m
}

// check refuses what no model can work with, whoever made the configuration.
func (t table) check(c *Config) error {
	standard := DefaultConfig()
	for i := range t {
		v := t[i].get(c)
		if _, ok := t[i].field.(budget); ok && c.Cache.Bytes >= 0 || v == t[i].get(&standard) {
			continue // of bytes there are more budgets than of MiB
		}
		row := t[i].row()
		if err := row.Check(v); err != nil {
			return err
		}
	}
	return nil
}

// MarshalJSON writes every setting under its flag's name, with underscores.
func (c Config) MarshalJSON() ([]byte, error) { return settings.json(&c) }

func (t table) json(c *Config) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := range t {
		v, err := json.Marshal(t[i].json(c))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Quote(strings.ReplaceAll(t[i].Flag, "-", "_")) + ":")
		b.Write(v)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
