package engine

import (
	"bmoe/engine/backend"
	"bmoe/engine/model"
)

// thrift is what the session does in decoding about experts that are not in the cache.
// It counts over all runs.
type thrift struct{ model.Thrift }

// on reports whether experts may give way.
func (t *thrift) on() bool { return t.Drop > 0 || t.Substitute > 0 }

// economise puts the settings into effect.
func (s *Session) economise() {
	t := &s.thrift
	t.Drop, t.Renorm, t.Substitute = float32(s.cfg.DropCold), s.cfg.DropRenorm, float32(s.cfg.Substitute)
	if s.forced != nil {
		t.Substitute = 0
	}
	if s.streamer == nil || s.cfg.LoadAll {
		t.Drop, t.Substitute = 0, 0
		return
	}
	dir, shape := s.streamer.Directory(), s.shape
	t.Resident = func(layer int, expert int32) bool { return dir.IsResident(shape.Key(layer, expert)) }
}

// decoding says whether the passes that follow are of an answer: a prompt is never
// computed with less than the router chose, so that it does not depend on its batches.
func (s *Session) decoding(on bool) {
	s.compute.Thrift = nil
	if on && s.thrift.on() {
		s.compute.Thrift = &s.thrift.Thrift
	}
}

func (s *Session) applyThrift(c Config) (backend.Verdict, string, error) {
	s.cfg.DropCold, s.cfg.DropRenorm, s.cfg.Substitute = c.DropCold, c.DropRenorm, c.Substitute
	s.economise()
	return backend.Applied, "", nil
}
