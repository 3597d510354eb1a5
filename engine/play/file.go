// Package play writes down a session as it went (what was asked and said, the costs of
// every token, its route and what it missed, and all that the screen showed) and plays
// it back as an engine of its own, on any machine and without the model.
package play

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"bmoe/engine/backend"
	"bmoe/internal/units"
	"bmoe/profile"
)

// mark is how a recording begins; the header follows on a line of its own, then
// frames: a byte that says what it is, its length, and that many bytes.
const mark = "bmoe_recording v1\n"

// What frames are.
const (
	frameBegin = 'B' // beginning, JSON
	frameState = 'S' // time, changes of the snapshot
	frameToken = 'T' // time, id, texts, changes of the record if there is one, route, misses, experts
	frameEnd   = 'E' // ending, JSON
)

// Bounds of a recording.
const (
	mostBytes  = 512 * units.MiB
	mostHeader = 1 << 20
	mostFrame  = 1 << 24
	mostTime   = 1 << 62 // ns
	mostTokens = 1 << 24
	mostRoute  = 1 << 16 // experts of a token, all layers together
)

// header is what a recording says of what is open.
type header struct {
	Info     backend.Info      `json:"info"`
	Program  string            `json:"program"`
	Settings []backend.Setting `json:"settings"`
	Warnings []string          `json:"warnings"`
	Snapshot []string          `json:"snapshot"` // leaves
	Record   []string          `json:"record"`
	Experts  layout            `json:"experts"`
}

// beginning is what a run begins with.
type beginning struct {
	Prompt string `json:"prompt"`
}

// ending is what is left of a run when it is over.
type ending struct {
	Run    backend.Run `json:"run"`
	Failed string      `json:"failed"`
}

var (
	snapshotType = reflect.TypeFor[profile.Snapshot]()
	recordType   = reflect.TypeFor[profile.Record]()
	// The latest records are frames of their own.
	snapshotShape = shapeOf(snapshotType, "Tokens")
	recordShape   = shapeOf(recordType)
)

// token is a frame of a token.
type token struct {
	at        int64 // since the run began, ns
	id        int32
	text      string
	reasoning string
	record    *profile.Record // nil: it has none
	route     []int32         // [layers with experts x used]
	misses    []profile.Miss
	known     bool  // misses are
	experts   *told // nil: a recording of before they were told of
}

func (t *token) append(b []byte, e *encoder) []byte {
	b = binary.AppendUvarint(b, uint64(max(t.at, 0)))
	b = binary.AppendVarint(b, int64(t.id))
	for _, s := range []string{t.text, t.reasoning} {
		s = s[:min(len(s), mostText)]
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	if b = append(b, boolByte(t.record != nil)); t.record != nil {
		b = e.add(b, reflect.ValueOf(t.record).Elem())
	}
	b = binary.AppendUvarint(b, uint64(len(t.route)))
	for _, id := range t.route {
		b = binary.AppendUvarint(b, uint64(id))
	}
	b = append(b, boolByte(t.known))
	b = binary.AppendUvarint(b, uint64(len(t.misses)))
	for i := range t.misses {
		m := &t.misses[i]
		for _, v := range []uint64{uint64(m.Layer), uint64(m.Expert), uint64(m.Away), uint64(m.Behind), uint64(boolByte(m.Early)), uint64(m.Wait), uint64(m.Drive)} {
			b = binary.AppendUvarint(b, v)
		}
	}
	if t.experts != nil {
		b = t.experts.append(b)
	}
	return b
}

// readToken parses a frame; last is the record before, and becomes this one's.
func readToken(b []byte, d *decoder, last *profile.Record) (*token, error) {
	in := input{b: b}
	t := &token{at: int64(in.number(mostTime))}
	t.id = int32(in.varint())
	t.text, t.reasoning = in.text(), in.text()
	if in.byte() != 0 && in.err == nil {
		rest, err := d.apply(in.b, reflect.ValueOf(last).Elem())
		if err != nil {
			return nil, err
		}
		in.b = rest
		record := *last
		t.record = &record
	}
	t.route = make([]int32, min(in.number(mostRoute), len(in.b)))
	for i := range t.route {
		t.route[i] = int32(in.number(1 << 20))
	}
	t.known = in.byte() != 0
	t.misses = make([]profile.Miss, min(in.number(mostRoute), len(in.b)))
	for i := range t.misses {
		const two, four = 1<<16 - 1, 1<<32 - 1
		t.misses[i] = profile.Miss{Layer: uint16(in.number(two)), Expert: uint16(in.number(two)), Away: uint16(in.number(two)), Behind: uint8(in.number(1<<8 - 1)),
			Early: in.number(1) != 0, Wait: uint32(in.number(four)), Drive: uint32(in.number(four))}
	}
	if in.err == nil && len(in.b) > 0 {
		t.experts = readTold(&in)
	}
	if in.err == nil && len(in.b) > 0 {
		in.err = fmt.Errorf("%d bytes behind a token", len(in.b))
	}
	return t, in.err
}

// run is what was recorded of a run.
type run struct {
	beginning
	steps []step
	end   *ending // nil: the recording ends in the middle of it
}

// step is a moment of a run: a state, or a token.
type step struct {
	at    int64
	state []byte // changes of the snapshot; nil: it is a token
	token *token
}

// recording is a file that was read.
type recording struct {
	header
	snapshot *decoder
	runs     []*run
	tokens   int
}

// open reads a recording.
func open(path string) (*recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err == nil && len(b) > mostBytes {
		err = fmt.Errorf("longer than %d MiB", mostBytes/units.MiB)
	}
	var r *recording
	if err == nil {
		r, err = parse(b)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// parse reads a recording and checks all of it, so that playing it cannot fail. A last
// frame that was cut off, as a killed program leaves it, is left out.
func parse(b []byte) (*recording, error) {
	rest, ok := bytes.CutPrefix(b, []byte(mark))
	if !ok {
		if bytes.HasPrefix(b, []byte(strings.TrimSuffix(mark, "\n")+"\r\n")) {
			return nil, errors.New("its line ends were changed on the way, and so were the bytes between: copy it as a binary file")
		}
		if bytes.HasPrefix(b, []byte("bmoe_recording ")) {
			line, _, _ := bytes.Cut(b[:min(len(b), 40)], []byte("\n"))
			return nil, fmt.Errorf("a recording of another version: %q, this program reads %q", line, mark[:len(mark)-1])
		}
		return nil, errors.New("not a recording: --record and /record write them")
	}
	line, frames, ok := bytes.Cut(rest, []byte("\n"))
	if !ok || len(line) > mostHeader {
		return nil, errors.New("it ends within its header")
	}
	r := &recording{}
	if err := json.Unmarshal(line, &r.header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	var err error
	if r.snapshot, err = newDecoder(snapshotShape, r.Snapshot); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	records, err := newDecoder(recordShape, r.Record)
	if err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	p := parser{recording: r, records: records}
	for len(frames) > 0 {
		at := len(b) - len(frames)
		n, used := binary.Uvarint(frames[1:])
		if used < 0 || used > 0 && n > mostFrame {
			return nil, fmt.Errorf("byte %d: a frame longer than %d MiB", at, mostFrame/units.MiB)
		}
		if used == 0 || n > uint64(len(frames)-1-used) {
			break // cut off
		}
		if err := p.frame(frames[0], frames[1+used:][:n]); err != nil {
			return nil, fmt.Errorf("byte %d: %w", at, err)
		}
		frames = frames[1+used+int(n):]
	}
	if len(r.runs) == 0 {
		return nil, errors.New("nothing was recorded: no question was asked")
	}
	return r, nil
}

// parser is a recording being read.
type parser struct {
	*recording
	records *decoder
	last    profile.Record
	scratch profile.Snapshot
}

func (p *parser) frame(kind byte, b []byte) error {
	if kind == frameBegin {
		r := &run{}
		if err := json.Unmarshal(b, &r.beginning); err != nil {
			return err
		}
		p.runs = append(p.runs, r)
		return nil
	}
	if len(p.runs) == 0 {
		return fmt.Errorf("a frame of kind %q before the first question", kind)
	}
	r := p.runs[len(p.runs)-1]
	switch kind {
	case frameState:
		in := input{b: b}
		at := int64(in.number(mostTime))
		if in.err != nil {
			return in.err
		}
		rest, err := p.snapshot.apply(in.b, reflect.ValueOf(&p.scratch).Elem())
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return fmt.Errorf("%d bytes behind a state", len(rest))
		}
		if err := sane(&p.scratch); err != nil {
			return err
		}
		r.steps = append(r.steps, step{at: at, state: in.b})
	case frameToken:
		t, err := readToken(b, p.records, &p.last)
		if err != nil {
			return err
		}
		if p.tokens++; p.tokens > mostTokens {
			return fmt.Errorf("more than %d tokens", mostTokens)
		}
		r.steps = append(r.steps, step{at: t.at, token: t})
	case frameEnd:
		r.end = &ending{}
		if err := json.Unmarshal(b, r.end); err != nil {
			return err
		}
	default:
		return fmt.Errorf("a frame of kind %q", kind)
	}
	return nil
}

// sane refuses a snapshot that the screen would index by.
func sane(s *profile.Snapshot) error {
	switch {
	case s.Lanes.N < 0 || s.Lanes.N > profile.MaxLanes:
		return fmt.Errorf("%d lanes", s.Lanes.N)
	case s.Cache.WhatIfs < 0 || s.Cache.WhatIfs > profile.MostWhatIfs:
		return fmt.Errorf("%d estimates", s.Cache.WhatIfs)
	case s.Phase > profile.Decode:
		return fmt.Errorf("phase %d", uint8(s.Phase))
	}
	return nil
}
