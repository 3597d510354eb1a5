package expert

// MaxLead is the most layers ahead for which routers can be run.
const MaxLead = 4

// byRouters guesses by the routers of the next layers, which the model runs early.
var byRouters = Predictor{Setting: "predict-prefetch", Most: MaxLead, Default: 1, Kinds: []Kind{{"1", 1, 0.78}, {"2", 2, 0.67}, {"3", 3, 0.59}, {"4", 4, 0.53}},
	Help: "read ahead what the routers of so many layers to come say early, while the drive would be idle; 0: none"}

// Lead implements model.Ahead.
func (s *Streamer) Lead() int {
	lead := s.fore.level[ByRouters]
	if lead == 0 || !s.fore.trial.on() {
		return 0
	}
	return lead
}

// Expect implements model.Ahead.
func (s *Streamer) Expect(layer, lead int, ids []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expect(s.fore.place[layer], byRouters.first+Origin(lead-1), ids)
	s.pump()
}
