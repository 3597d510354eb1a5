package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"bmoe/engine/backend"
	"bmoe/internal/units"
)

// kind is a program that serves models, as far as it matters here.
type kind struct {
	name  string
	owner string // owned_by of its models
	// progress: it tells how far it is with a prompt if it is asked to. Others may
	// refuse a field that they do not know.
	progress bool
	// newLimit: the most tokens of an answer are max_completion_tokens.
	newLimit bool
	metrics  string // how its metrics are turned on, where they are off
}

// kinds are the programs that we know; the last is any other.
var kinds = []kind{
	{name: "llama-server", owner: "llamacpp", progress: true, metrics: "start it with --metrics"},
	{name: "vLLM", owner: "vllm"},
	{name: "Ollama", owner: "library"},
	{name: "LM Studio", owner: "organization_owner"},
	{name: "OpenAI", owner: "openai", newLimit: true},
	{name: "OpenAI", owner: "system", newLimit: true},
	{name: "server"},
}

// meet asks the server for its models and chooses one. Where it keeps its list to
// itself, the model that was named has to be right.
func (r *Remote) meet(ctx context.Context) error {
	r.kind = kinds[len(kinds)-1]
	body, err := r.get(ctx, r.at.api, "models")
	var status *statusError
	switch {
	case errors.As(err, &status) && (status.code == http.StatusNotFound || status.code == http.StatusMethodNotAllowed || status.code == http.StatusNotImplemented) && r.cfg.Model != "":
		r.warnings = append(r.warnings, "the server does not list its models: whether it has "+r.clean(r.cfg.Model)+" shows with the first question")
		return nil
	case err != nil:
		return r.fault(ctx, err)
	}
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Owner   string `json:"owned_by"`
			Context int    `json:"max_model_len"` // vLLM
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return r.fault(ctx, err)
	}
	for _, m := range list.Data {
		if m.ID = r.clean(m.ID); m.ID != "" && !slices.Contains(r.models, m.ID) {
			r.models = append(r.models, m.ID)
		}
		if i := slices.IndexFunc(kinds, func(k kind) bool { return k.owner == m.Owner }); i >= 0 && m.Owner != "" {
			r.kind = kinds[i]
		}
		r.context = max(r.context, m.Context)
	}
	if err := r.choose(); err != nil {
		return err
	}
	if r.kind.name == "llama-server" {
		r.context = r.slotContext(ctx)
	}
	return nil
}

// Names asks a server which models it has, and returns what to call it, too.
func Names(ctx context.Context, c Config) (names []string, server string, err error) {
	c.Model, c.AnyModel = "", true
	r, err := Open(ctx, c)
	if err != nil {
		return nil, "", err
	}
	return r.models, r.label(), r.Close()
}

// choose settles which model is asked.
func (r *Remote) choose() error {
	named := r.cfg.Model
	switch n := len(r.models); {
	case n == 0 && named == "":
		return &Fault{text: r.at.String() + ": the server has no models yet; give it one, or name one with {remote-model}"}
	case named != "" && (n == 0 || slices.Contains(r.models, named)):
	case named != "":
		// Ollama answers to a name without its tag.
		if i := slices.IndexFunc(r.models, func(m string) bool { return strings.EqualFold(m, named) || strings.TrimSuffix(m, ":latest") == named }); i >= 0 {
			r.cfg.Model = r.models[i]
			return nil
		}
		return &backend.SettingError{Setting: setModel, Value: named, Problem: "the server at " + r.at.String() + " has no such model", Remedy: "it has " + listed(r.models)}
	case n == 1:
		r.cfg.Model = r.models[0]
	case r.cfg.AnyModel:
		r.cfg.Model = r.models[0]
		r.warnings = append(r.warnings, fmt.Sprintf("the server has %s, and %s answers; {remote-model} takes another: %s", units.Plural(int64(n), "model"), r.cfg.Model, listed(r.models)))
	default:
		return &Fault{text: fmt.Sprintf("%s: the server has %s: choose one with {remote-model}: %s", r.at, units.Plural(int64(n), "model"), listed(r.models))}
	}
	return nil
}

// slotContext asks llama-server how many tokens a conversation may have; 0: it does
// not say.
func (r *Remote) slotContext(ctx context.Context) int {
	var props struct {
		Settings struct {
			Ctx int `json:"n_ctx"`
		} `json:"default_generation_settings"`
	}
	body, err := r.get(ctx, r.at.root, "props")
	if err != nil || json.Unmarshal(body, &props) != nil {
		return 0 // it is a figure to show and no more
	}
	return max(props.Settings.Ctx, 0)
}

// get fetches something.
func (r *Remote) get(ctx context.Context, from *url.URL, path string) ([]byte, error) {
	res, err := r.ask(ctx, http.MethodGet, from.String()+path, nil)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	return body, errors.Join(err, res.Body.Close())
}

// ask sends a request, with the key if there is one to send. Nothing else of the
// environment goes into it.
func (r *Remote) ask(ctx context.Context, method, url string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	req.Header.Set("User-Agent", "bmoe")
	return r.client.Do(req)
}
