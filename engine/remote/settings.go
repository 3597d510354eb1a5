package remote

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	"bmoe/engine/backend"
	"bmoe/profile"
)

// Config is what a server is opened with. The key is no part of it that is ever
// shown or written.
type Config struct {
	URL       string
	Model     string // empty: the only one that the server has
	Insecure  bool   // send the key though others can read it on the way
	Temp      profile.Maybe[float64]
	Seed      uint64
	MaxTokens int // 0: until the model ends
	// AnyModel takes the first model where the server has several and none was named.
	AnyModel bool
	Key      string
	// Notice hears what the user should know while an answer is under way; nil:
	// nobody does. It must return quickly.
	Notice func(string)
	// Origins says where values come from, by setting; what is not in it is a default.
	Origins map[string]string
}

// MarshalJSON writes the settings under their flags' names, with underscores.
func (c Config) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		URL       string                 `json:"connect"`
		Model     string                 `json:"remote_model"`
		Temp      profile.Maybe[float64] `json:"temp"`
		Seed      uint64                 `json:"seed"`
		MaxTokens int                    `json:"n_predict"`
	}{c.URL, c.Model, c.Temp, c.Seed, c.MaxTokens})
}

// The settings' names.
const (
	setConnect  = "connect"
	setModel    = "remote-model"
	setInsecure = "connect-insecure"
	setTemp     = "temp"
	setSeed     = "seed"
	setMax      = "n-predict"

	// serversOwn is the temperature of a server that is told none.
	serversOwn = "server"
	section    = "Remote"
	mostTokens = 1 << 30
)

// Settings returns the rows of a configuration, in the order in which they are
// shown. models are those that the server is known to have.
func Settings(c Config, models ...string) []backend.Setting {
	rows := []backend.Setting{
		{Name: setConnect, Flag: "connect", Section: section, Unit: "URL", Kind: backend.Text, Want: "an address", Value: c.URL,
			Help: "chat with the OpenAI-compatible server at this address, as llama-server, vLLM, Ollama or LM Studio; a key for it is read from OPENAI_API_KEY"},
		{Name: setModel, Flag: "remote-model", Section: section, Unit: "NAME", Kind: backend.Text, Want: "the name of a model", Words: models, Value: c.Model, Live: true, Main: true,
			Help: "model of the server (default: the only one that it has)"},
		{Name: setInsecure, Flag: "connect-insecure", Section: section, Kind: backend.Switch, Want: "on or off", Default: backend.Off, Value: backend.OnOff(c.Insecure),
			Help: "send the key though it can be read on the way: to another machine by http"},
		{Name: setTemp, Flag: "temp", Section: section, Kind: backend.Number, Words: []string{serversOwn}, Least: 0, Most: math.MaxFloat64, Want: "0 or more, or " + serversOwn,
			Default: serversOwn, Value: c.Temp.Text(decimal, ""), Live: true, Main: true, Help: "temperature; 0 takes the likeliest token; " + serversOwn + ": what the server is set to"},
		{Name: setSeed, Flag: "seed", Section: section, Kind: backend.Whole, Least: 0, Most: math.MaxInt64, Want: "0 or more",
			Value: strconv.FormatUint(c.Seed, 10), Live: true, Help: "where the random numbers start"},
		{Name: setMax, Flag: "n-predict", Section: section, Kind: backend.Whole, Least: 0, Most: mostTokens, Want: "0 or more", Default: "0",
			Value: strconv.Itoa(c.MaxTokens), Live: true, Help: "at most so many tokens in an answer; 0: until the model ends"},
	}
	for i := range rows {
		r := &rows[i]
		if r.Origin = c.Origins[r.Name]; r.Origin == "" {
			r.Origin = backend.FromDefault
		}
		if r.Name == setTemp && !c.Temp.OK {
			r.Value = serversOwn
		}
	}
	return rows
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// Set gives a setting a value.
func (c *Config) Set(name, value, origin string) error {
	row := backend.Find(Settings(*c), name)
	if row == nil {
		return &backend.SettingError{Setting: name, Value: value, Problem: "there is no such setting"}
	}
	if err := row.Check(value); err != nil {
		return err
	}
	switch name { // what Check let pass can be read
	case setConnect:
		c.URL = value
	case setModel:
		c.Model = value
	case setInsecure:
		c.Insecure = value == backend.On
	case setTemp:
		f, err := strconv.ParseFloat(value, 64)
		c.Temp = profile.Maybe[float64]{Value: f, OK: err == nil}
	case setSeed:
		c.Seed, _ = strconv.ParseUint(value, 10, 64)
	case setMax:
		c.MaxTokens, _ = strconv.Atoi(value)
	}
	c.Origins = maps.Clone(c.Origins) // copies of a configuration share the map
	if c.Origins == nil {
		c.Origins = map[string]string{}
	}
	c.Origins[name] = origin
	return nil
}

// Settings returns every setting with the value in force.
func (r *Remote) Settings() []backend.Setting { return Settings(r.cfg, r.models...) }

// Apply changes settings; the next request has them.
func (r *Remote) Apply(wishes map[string]string) []backend.Outcome {
	var out []backend.Outcome
	for _, row := range r.Settings() {
		value, ok := wishes[row.Name]
		if !ok {
			continue
		}
		o := backend.Outcome{Setting: row.Name, Verdict: backend.Applied}
		var err error
		switch {
		case !row.Live:
			o.Verdict, o.Reason = backend.Declined, "it is fixed once the server is connected"
		case row.Name == setModel && len(r.models) > 0 && !slices.Contains(r.models, value):
			o.Verdict, o.Reason = backend.Declined, "the server has no model of that name; it has "+listed(r.models)
		default:
			err = r.cfg.Set(row.Name, value, backend.FromKey)
		}
		if err != nil {
			o.Verdict, o.Reason = backend.Declined, err.Error()
		}
		o.Value = backend.Find(r.Settings(), row.Name).Shown()
		out = append(out, o)
	}
	r.describe()
	return out
}

// Step returns the value dir steps from another one: the next model of the server,
// a tenth of the temperature, the next seed, twice or half the tokens.
func (r *Remote) Step(name, from string, dir int) string {
	n, err := strconv.ParseFloat(from, 64)
	switch name {
	case setModel:
		if i := slices.Index(r.models, from) + dir; len(r.models) > 0 {
			return r.models[min(max(i, 0), len(r.models)-1)]
		}
	case setTemp:
		switch tenths := math.Round(10*n) + float64(dir); {
		case err != nil && dir > 0:
			return "0"
		case err == nil && tenths < 0:
			return serversOwn
		case err == nil:
			return decimal(min(tenths, 20) / 10)
		}
	case setSeed:
		if n += float64(dir); err == nil && n >= 0 {
			return strconv.FormatUint(uint64(n), 10)
		}
	case setMax:
		switch {
		case dir > 0:
			return strconv.Itoa(int(min(max(2*n, 16), mostTokens)))
		case n > 16:
			return strconv.Itoa(int(n / 2))
		}
		return "0"
	}
	return from
}
