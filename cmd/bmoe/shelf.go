package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/engine/demo"
	"bmoe/engine/library"
	"bmoe/engine/remote"
	"bmoe/internal/host"
	"bmoe/internal/hub"
	"bmoe/internal/units"
	"bmoe/profile"
)

// shelf is the models that the screen can change to: those of the library and those of
// the server, if one was named.
type shelf struct {
	o       *options // as the program was started
	both    bool     // a model and a server were
	startID string   // of what it was started with
	opened  func(backend.Backend)

	mu      sync.Mutex
	paths   map[string]string // by ID: as a place has it, since a link's shards lie beside the link
	machine *library.Machine  // nil: not measured yet
	open    backend.Backend
}

var _ backend.Models = (*shelf)(nil)

// An ID is one of these, and the path of a file or a server's name for a model.
const (
	ofFile   = "file:"
	ofServer = "server:"
)

func fileID(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return ofFile + path
}

// newShelf returns what can be changed to from what was started. opened hears of every
// engine that comes of it.
func newShelf(o *options, start *opening, opened func(backend.Backend)) *shelf {
	return &shelf{o: o, both: o.connects() && o.hasModel() && o.both, startID: start.id, opened: opened, paths: map[string]string{}}
}

// file notes where a model lies, and returns its ID.
func (s *shelf) file(path string) string {
	id := fileID(path)
	s.mu.Lock()
	s.paths[id] = path
	s.mu.Unlock()
	return id
}

// path is where a model lies; false if it is no file.
func (s *shelf) path(id string) (string, bool) {
	path, ok := strings.CutPrefix(id, ofFile)
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.paths[id], path), ok
}

// took notes which engine is open, for what memory it has.
func (s *shelf) took(b backend.Backend) {
	s.mu.Lock()
	s.open = b
	s.mu.Unlock()
}

// freed is what closing the open model gives back, in bytes.
func (s *shelf) freed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		return 0
	}
	var live profile.Snapshot
	s.open.Snapshot(&live)
	return live.Cache.Arena
}

// List implements backend.Models.
func (s *shelf) List(ctx context.Context, probe bool, tell func(backend.Shelf)) error {
	cache, err := hub.CacheDir()
	if err != nil {
		cache = "" // a user without a home: the other places remain
	}
	found, notes, err := library.Scan(ctx, library.Places(s.o.modelFolders, cache))
	if err != nil {
		return err
	}
	found, err = s.always(ctx, found)
	if err != nil {
		return err
	}
	if s.o.cfg.SimulateHost != "" {
		notes = append(notes, "speeds are those of this machine, not of the simulated host")
	}
	var far []backend.Model
	if s.o.connects() {
		names, server, err := remote.Names(ctx, s.o.remoteConfig())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			notes = append(notes, s.o.worded(err).Error())
		}
		for _, n := range names {
			far = append(far, backend.Model{ID: ofServer + n, Name: n, Place: server, Far: true})
		}
	}
	s.mu.Lock()
	machine := s.machine
	s.mu.Unlock()
	told := func(m *library.Machine) {
		shelf := backend.Shelf{Notes: notes, Memory: machineMemory(), Models: slices.Clone(far)}
		if m != nil {
			shelf.Machine = m.String()
		}
		for i := range found {
			shelf.Models = append(shelf.Models, s.listed(&found[i], m))
		}
		tell(shelf)
	}
	told(machine)
	if !probe {
		return nil
	}
	if machine, err = library.Measure(ctx, found); err != nil {
		return err
	}
	if machine.Memory > 0 {
		machine.Memory = min(machine.Memory+s.freed(), machine.Total)
	}
	s.mu.Lock()
	s.machine = machine
	s.mu.Unlock()
	told(machine)
	return nil
}

// always adds the demo model, and the one that the program was started with, wherever
// they lie.
func (s *shelf) always(ctx context.Context, found []library.Model) ([]library.Model, error) {
	has := func(id string) bool {
		return slices.ContainsFunc(found, func(m library.Model) bool { return fileID(m.Path) == id })
	}
	if path, ok := s.path(s.startID); ok && !has(s.startID) {
		m := library.Describe(path)
		m.Place = "command line"
		found = append(found, m)
	}
	path, err := demo.Path(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil { // it cannot be written: then it is none to change to
		return found, nil
	}
	id := fileID(path)
	if !has(id) {
		found = append(found, library.Describe(path))
	}
	for i := range found {
		if m := &found[i]; fileID(m.Path) == id {
			m.Name, m.Place = "the demo model", "built in"
		}
	}
	return found, nil
}

func machineMemory() int64 {
	if m := host.ReadMemory(); m.Has.All(host.HasTotal) {
		return m.Total
	}
	return 0
}

// listed is a model of the library as the screen shows it.
func (s *shelf) listed(m *library.Model, on *library.Machine) backend.Model {
	out := backend.Model{ID: s.file(m.Path), Name: m.Name, Place: m.Place, Arch: m.Arch, Quant: m.Quant, Bytes: m.Size, Why: m.Problem,
		Experts: m.Experts, Used: m.Used, Active: m.Active()}
	if on != nil {
		if speed, ok := on.Speed(m); ok {
			out.Least, out.Most = profile.Some(speed.Least), profile.Some(speed.Most)
		}
	}
	return out
}

// options are those that a model is opened with.
func (s *shelf) options(ctx context.Context, id string) *options {
	if id == s.startID {
		return s.o
	}
	o := *s.o
	o.both, o.resume = s.both, ""
	o.given = func(name string) bool { // these were for the model that was named
		return name != "chat-template-file" && name != "resume" && s.o.given(name)
	}
	if name, ok := strings.CutPrefix(id, ofServer); ok {
		o.far.Model, o.engine = name, backend.Elsewhere
		return &o
	}
	o.hf, o.engine = "", backend.Local
	o.cfg.Model, _ = s.path(id)
	if path, err := demo.Path(ctx); err == nil && fileID(path) == id && !s.o.connects() {
		o.cfg.Model = "" // it is opened as it is without a name
	}
	return &o
}

// Prepare implements backend.Models.
func (s *shelf) Prepare(ctx context.Context, id string) (*backend.Opening, error) {
	for _, name := range []string{"csv", "route-trace", "io-trace", "compute-trace", "record", "force-route"} {
		if s.o.given(name) && id != s.startID {
			return nil, fmt.Errorf("the model stays while --%s is given: it is about the runs of one", name)
		}
	}
	o := s.options(ctx, id)
	begun, err := o.begin(ctx)
	if err != nil {
		return nil, s.o.worded(err)
	}
	return &backend.Opening{ID: id, Name: begun.name, Path: begun.path, Finish: func(ctx context.Context, progress func(string, float64)) (backend.Backend, error) {
		b, err := begun.finish(ctx, progress)
		if err != nil {
			return nil, s.o.worded(err)
		}
		s.opened(b)
		s.took(b)
		return b, nil
	}}, nil
}

// Facts implements backend.Models.
func (s *shelf) Facts(ctx context.Context, id string) ([]backend.Fact, error) {
	path, ok := s.path(id)
	if !ok {
		return []backend.Fact{{Name: "runs", Value: "on the server: nothing of it is read here"}}, nil
	}
	m := library.Describe(path)
	if m.Problem != "" {
		return nil, errors.New(m.Problem)
	}
	o := s.options(ctx, id)
	c, err := o.config(ctx)
	if err != nil {
		return nil, err
	}
	f, err := engine.Foresee(ctx, c, s.freed())
	if err != nil {
		return nil, s.o.worded(err)
	}
	facts := []backend.Fact{
		{Name: "file", Value: path},
		{Name: "tensors", Value: fmt.Sprintf("mostly %s, %s", m.Quant, units.Plural(int64(m.Layers), "layer"))},
		{Name: "context", Value: fmt.Sprintf("%d positions of %d, %s when full", f.Length, f.Trained, units.Size(f.Context))},
		{Name: "a token", Value: "reads " + m.Needs()},
	}
	if !f.Streams {
		return append(facts, backend.Fact{Name: "memory", Value: "not MoE: all weights have to fit, nothing is streamed"}), nil
	}
	facts = append(facts, backend.Fact{Name: "experts", Value: fmt.Sprintf("%d a layer, %d of them a token; all of them take %s MiB, those of a token %s MiB", m.Experts, m.Used, units.Mebibytes(f.Experts), units.Mebibytes(f.Cycle))})
	budget := units.NotMeasured
	if f.Budget > 0 {
		budget = fmt.Sprintf("%s MiB, %s of all experts", units.Mebibytes(f.Budget), units.Share(float64(f.Budget)/float64(max(f.Experts, 1))))
	}
	return append(facts, backend.Fact{Name: "auto", Value: "a cache of " + budget}), nil
}

// Offer implements backend.Models.
func (s *shelf) Offer(ctx context.Context, name string) (*backend.Offer, error) {
	spec, err := hub.ParseSpec(name)
	if err != nil {
		return nil, err
	}
	h, err := hub.FromEnvironment()
	if err != nil {
		return nil, err
	}
	if path, ok := h.Cached(spec); ok {
		return &backend.Offer{Name: name, ID: s.file(path), Lines: []string{"it is here already: " + path}}, nil
	}
	p, err := h.Plan(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &backend.Offer{Name: name, Plan: p, Lines: []string{planText(p, host.ReadMemory()), s.expected(p)}}, nil
}

// expected says how fast a model may be of which nothing is here yet.
func (s *shelf) expected(p *hub.Plan) string {
	m := library.Unseen(p.Set.Name(), p.Set.Size())
	m.Path = there(p.Dir)
	basis := "if a token needs all of it; if it is MoE, faster"
	if m.MoE() {
		basis = "by its name, and until its header is here"
	}
	s.mu.Lock()
	machine := s.machine
	s.mu.Unlock()
	if machine != nil {
		if speed, ok := machine.Speed(&m); ok {
			return "expected here: " + speed.String() + ", " + basis
		}
	}
	return "expected speed: " + units.NotMeasured + ", because what the drive gives is not known"
}

// there is a folder, or the nearest one above it that is there.
func there(dir string) string {
	for {
		up := filepath.Dir(dir)
		if _, err := os.Stat(dir); err == nil || up == dir {
			return dir
		}
		dir = up
	}
}

// Download implements backend.Models.
func (s *shelf) Download(ctx context.Context, offer *backend.Offer, tell func(backend.Download)) (string, error) {
	if offer.ID != "" {
		return offer.ID, nil
	}
	h, err := hub.FromEnvironment()
	if err != nil {
		return "", err
	}
	path, err := h.Download(ctx, offer.Plan.(*hub.Plan), func(p hub.Progress) {
		tell(backend.Download{Name: cmp.Or(p.Name, offer.Name), Done: p.Done, Total: p.Total, Rate: p.Rate, Left: p.Left, Checking: p.Checking})
	})
	if err != nil {
		return "", err
	}
	return s.file(path), nil
}
