package expert

// Note is how a batch found one of its experts.
type Note struct {
	Found     Found
	Guessed   bool   // guesses were made for the layer
	Predicted bool   // and named this expert
	Origin    Origin // who named it
}

// Found says where an expert was when a batch asked for it.
type Found int8

// What an expert can be found as.
const (
	Missed Found = iota
	Hit
	Early // it was read ahead, or is on its way
)

// Annotate says whether batches note how their experts were found, for Note.
func (s *Streamer) Annotate(on bool) {
	s.notes = nil
	if on {
		s.notes = make([]Note, s.layout.Experts)
	}
}

// Note tells how the latest batch found an expert of its own.
func (s *Streamer) Note(expert int32) Note { return s.notes[expert] }

// note is told of a batch before its guesses are judged and its reads begin.
func (s *Streamer) note(layer int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var guesses []guess
	if s.fore.on() {
		guesses = s.fore.lists[s.fore.place[layer]]
	}
	first := s.shape.Key(layer, 0)
	for _, step := range s.batch.plan.Steps {
		n := Note{Guessed: len(guesses) > 0 && guesses[0].origin != Whole}
		sl := s.slotOf[step.Key]
		switch {
		case step.Hit:
			n.Found = Hit
		case sl != nil && sl.ahead && !sl.useless:
			n.Found = Early
		}
		for i := range guesses {
			if n.Guessed && guesses[i].key == step.Key {
				n.Predicted, n.Origin = true, guesses[i].origin
			}
		}
		s.notes[step.Key-first] = n
	}
}
