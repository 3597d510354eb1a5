package engine

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"bmoe/engine/backend"
	"bmoe/engine/chat"
	"bmoe/internal/units"
	"bmoe/profile"
)

// What Save writes is a header, the ids that the state has seen, a checksum of
// both, and the state. Numbers are little-endian.
const keptMagic = "bmoekept1\n"

// keptHeader begins what is kept.
type keptHeader struct {
	Magic       [len(keptMagic)]byte
	Fingerprint [sha256.Size]byte
	N           uint32 // ids
}

var errOtherModel = errors.New("it was kept with another model, or with other numerics, KV type, experts or chat template")

// Chat returns the conversation.
func (s *Session) Chat() backend.Chat {
	return backend.Chat{Dropped: s.dropped, Messages: spoken(&s.conversation)}
}

// spoken returns the messages of a conversation.
func spoken(c *chat.Conversation) []backend.Message {
	var out []backend.Message
	for _, m := range c.Messages {
		out = append(out, backend.Message{Role: m.Role, Text: m.Content, Reasoning: m.Reasoning})
	}
	return out
}

// SetChat takes up a conversation. There is nothing to repeat then.
func (s *Session) SetChat(c backend.Chat) {
	s.conversation, s.dropped, s.last = chat.Conversation{}, c.Dropped, nil
	for _, m := range c.Messages {
		s.conversation.Append(chat.Message{Role: m.Role, Content: m.Text, Reasoning: m.Reasoning})
	}
	s.meter.rec.Update(func(live *profile.Snapshot) { live.DroppedTurns, live.CtxUsed = c.Dropped, 0 })
}

// NumberFrom makes the next run the one after n, where runs of several engines have
// numbers of one row.
func (s *Session) NumberFrom(n int) { s.ran = n }

// Forget empties the expert cache and what the model remembers: the next run begins
// as that of a session just opened.
func (s *Session) Forget() error {
	if s.streamer != nil {
		s.streamer.Empty()
	}
	s.last = nil
	_, err := s.rewind(0)
	return err
}

// Save writes what the model remembers: the ids it has seen, and its state.
func (s *Session) Save(to io.Writer) error {
	// A run that failed part way left positions behind that are of nothing.
	if _, err := s.rewind(len(s.ids)); err != nil {
		return err
	}
	mark, err := s.fingerprint()
	if err != nil {
		return err
	}
	h := keptHeader{Fingerprint: mark, N: uint32(len(s.ids))}
	copy(h.Magic[:], keptMagic)
	var b bytes.Buffer
	for _, v := range []any{&h, s.ids} {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			return err
		}
	}
	sum := crc32.Checksum(b.Bytes(), crc32.MakeTable(crc32.Castagnoli))
	if _, err := to.Write(binary.LittleEndian.AppendUint32(b.Bytes(), sum)); err != nil {
		return fmt.Errorf("save the state: %w", err)
	}
	return s.state.Save(to)
}

// Load takes back what Save wrote.
func (s *Session) Load(from io.Reader) error {
	if _, err := s.rewind(0); err != nil {
		return err
	}
	r := bufio.NewReaderSize(from, units.MiB)
	ids, err := s.readKept(r)
	if err == nil {
		err = s.state.Load(r)
	}
	if err == nil && s.state.Len() != len(ids) {
		_, err = s.state.Rewind(0)
		err = errors.Join(fmt.Errorf("load a state: it is damaged: it is of %d positions, and of %d ids", s.state.Len(), len(ids)), err)
	}
	if err != nil {
		return err
	}
	s.ids = append(s.ids[:0], ids...)
	s.meter.rec.Update(func(live *profile.Snapshot) { live.CtxUsed = len(ids) })
	return nil
}

// readKept reads all that stands before the state, and returns the ids.
func (s *Session) readKept(r io.Reader) ([]int32, error) {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	summed := io.TeeReader(r, sum)
	fail := func(err error) ([]int32, error) {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("it ends too early: %w", io.ErrUnexpectedEOF)
		}
		return nil, fmt.Errorf("load a state: %w", err)
	}
	var h keptHeader
	if err := binary.Read(summed, binary.LittleEndian, &h); err != nil {
		return fail(err)
	}
	mark, err := s.fingerprint()
	switch {
	case string(h.Magic[:]) != keptMagic:
		return fail(errors.New("this is no saved state"))
	case err != nil:
		return fail(err)
	case h.Fingerprint != mark:
		return fail(errOtherModel)
	case int64(h.N) > int64(s.cfg.Ctx):
		return fail(fmt.Errorf("it has %d positions, and the context %d: raise {ctx}", h.N, s.cfg.Ctx))
	}
	ids := make([]int32, h.N)
	if err := binary.Read(summed, binary.LittleEndian, ids); err != nil {
		return fail(err)
	}
	var want uint32
	if err := binary.Read(r, binary.LittleEndian, &want); err != nil {
		return fail(err)
	}
	if want != sum.Sum32() {
		return fail(errors.New("it is damaged: its checksum is another"))
	}
	for _, id := range ids {
		if id < 0 || int(id) >= s.arch.Info().Vocab {
			return fail(fmt.Errorf("it is damaged: token id %d is outside the vocabulary", id))
		}
	}
	return ids, nil
}

// Of each shard's tensors so many samples of so many bytes are in the fingerprint:
// models that were trained on from the same start differ everywhere.
const (
	fingerprintSamples = 32
	fingerprintBytes   = 4096
)

// fingerprint is of everything that the state depends on beside the ids: the
// model's headers, samples of its weights, and the settings that lead to other
// figures.
func (s *Session) fingerprint() (sum [sha256.Size]byte, err error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %d %q %q\n", s.cfg.Numerics, s.cfg.KVType, s.cfg.ExpertsUsed, s.cfg.ForceRoute, s.cfg.Template)
	for _, sh := range s.file.Shards {
		fmt.Fprintln(h, sh.Size, sh.DataOffset)
		if err := pieces(h, sh.Path, sh.DataOffset, sh.Size); err != nil {
			return sum, fmt.Errorf("fingerprint of the model: %w", err)
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// pieces passes a file's beginning on, and pieces of the rest.
func pieces(to io.Writer, path string, head, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // opened for reading: nothing is lost if closing fails
	if _, err := io.CopyN(to, f, head); err != nil {
		return err
	}
	step := max((size-head)/fingerprintSamples, fingerprintBytes)
	for at := head; at < size; at += step {
		piece := io.NewSectionReader(f, at, min(fingerprintBytes, size-at))
		if _, err := io.Copy(to, piece); err != nil {
			return err
		}
	}
	return nil
}
