package expert

import "bmoe/engine/expert/policy"

// Reading ahead: a slot's reads begin before a batch asks for its expert. The
// directory learns of it only when the expert is demanded, and counts a miss
// whose bytes came early, so that what is evicted never depends on guesses or on
// time. The slots for it are a part of the budget that residents do not use.

// readAhead starts the reads of an expert. It reports false if the expert has a slot
// already or the slots for reading ahead are taken.
func (s *Streamer) readAhead(k policy.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.poolOf(s.shape.Layer(k)); s.slotOf[k] != nil || len(p.aheads) == p.maxAhead {
		return false
	}
	s.startAhead(k, Whole)
	return true
}

// startAhead starts the reads of an expert as speculation, which demand overtakes in
// the reader's queue. There is a slot for it. mu is held.
func (s *Streamer) startAhead(k policy.Key, from Origin) {
	s.census.early(k, true)
	sl := s.take(k)
	sl.ahead, sl.origin, sl.place = true, from, len(sl.pool.aheads)
	sl.pool.aheads = append(sl.pool.aheads, sl)
	s.submits = s.submits[:0]
	for p := range s.layout.Layers[s.shape.Layer(k)] {
		s.prepare(sl, p, true)
	}
	s.flying += len(s.submits)
	s.reading(len(s.submits))
	s.reader.Submit(s.submits...)
}

// noLongerAhead takes a slot out of those that were read ahead. mu is held.
func (s *Streamer) noLongerAhead(sl *slot) {
	s.census.early(sl.key, false)
	list := sl.pool.aheads
	last := list[len(list)-1]
	list[sl.place], last.place = last, sl.place
	sl.pool.aheads = list[:len(list)-1]
	sl.ahead = false
}

// doneAhead notes the end of a read that no batch wants yet. A failure counts for
// nothing: the expert is read anew when it is demanded, and not before. mu is held.
func (s *Streamer) doneAhead(sl *slot, err error) {
	s.flying--
	if err != nil {
		sl.useless, s.fore.failed[sl.key] = true, true
	}
	if sl.useless && sl.pending == 0 {
		s.give(sl)
	}
	if err == nil {
		s.pump() // not after an error: a reader that closes refuses all
	}
	if s.flying == 0 {
		s.quiet.Broadcast()
	}
}

// promote makes demand of what was read ahead, and returns how many of the reads
// are not over. What failed or was taken back is read anew. mu is held.
func (s *Streamer) promote(sl *slot) int {
	sl.useless = false
	s.noLongerAhead(sl)
	n := sl.pending
	s.flying -= n
	size := s.shape.Bytes[s.shape.Layer(sl.key)]
	if n > 0 {
		s.fore.worth.Late[sl.origin] += size
	} else {
		s.fore.worth.Useful[sl.origin] += size
	}
	for p := range s.layout.Layers[s.shape.Layer(sl.key)] {
		switch {
		case sl.flying[p]:
			s.reader.Promote(&sl.reads[p]) // does nothing for a read that has begun
		case sl.there[p]: // what came early counts when it is demanded
			s.reads++
			s.windowBytes += int64(sl.reads[p].N)
		default:
			s.prepare(sl, p, false)
		}
	}
	return n
}

// cancel takes back what was read ahead for an expert: its slot is free as soon
// as reads that have begun are over. It does nothing once the expert is demanded.
func (s *Streamer) cancel(k policy.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sl := s.slotOf[k]; sl != nil && sl.ahead {
		n := s.takeBack(sl)
		s.flying -= n
		s.read(n)
		if sl.useless = true; sl.pending == 0 {
			s.give(sl)
		}
	}
}

// takeBack removes a slot's reads from the reader's queue and returns how many
// there were. mu is held.
func (s *Streamer) takeBack(sl *slot) (n int) {
	for p := range sl.reads {
		if sl.flying[p] && s.reader.Cancel(&sl.reads[p]) {
			sl.flying[p] = false
			sl.pending--
			n++
		}
	}
	return n
}

// takeAllBack takes back all that was read ahead and not demanded, as far as no lane has
// begun it, and what is guessed.
func (s *Streamer) takeAllBack() {
	s.mu.Lock()
	for place := range s.fore.lists {
		s.fore.forget(place)
	}
	s.mu.Unlock()
	for k, sl := range s.slotOf {
		if sl != nil {
			s.cancel(policy.Key(k))
		}
	}
}
