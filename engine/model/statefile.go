package model

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"slices"

	"bmoe/internal/units"
)

// A saved state is a header, each layer's bytes, its marks, and a checksum of all
// before it. Numbers are little-endian.
const stateMagic = "bmoestate2"

// stateHeader begins a saved state.
type stateHeader struct {
	Magic  [len(stateMagic)]byte
	Layers uint32
	N      uint64 // positions
}

// marksHeader stands before the marks. Each is its length, and its bytes.
type marksHeader struct {
	Marks uint32
	Bytes uint64 // of each
}

func (s *state) Save(to io.Writer) error {
	if s.dirty {
		return errDirty
	}
	buffer := bufio.NewWriterSize(to, units.MiB)
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	w := io.MultiWriter(buffer, sum)
	h := stateHeader{Layers: uint32(len(s.layers)), N: uint64(s.n)}
	copy(h.Magic[:], stateMagic)
	if err := binary.Write(w, binary.LittleEndian, &h); err != nil {
		return fmt.Errorf("save the state: %w", err)
	}
	var saved []byte // of one layer
	for i, l := range s.layers {
		saved = slices.Grow(saved[:0], l.savedBytes(s.n))[:l.savedBytes(s.n)]
		l.save(saved)
		err := binary.Write(w, binary.LittleEndian, uint64(len(saved)))
		if err == nil {
			_, err = w.Write(saved)
		}
		if err != nil {
			return fmt.Errorf("save the state of layer %d: %w", i, err)
		}
	}
	err := s.saveMarks(w)
	if err == nil {
		err = binary.Write(buffer, binary.LittleEndian, sum.Sum32())
	}
	if err == nil {
		err = buffer.Flush()
	}
	if err != nil {
		return fmt.Errorf("save the state: %w", err)
	}
	return nil
}

// saveMarks writes the marks.
func (s *state) saveMarks(w io.Writer) error {
	h := marksHeader{Marks: uint32(len(s.marks)), Bytes: uint64(s.markBytes)}
	err := binary.Write(w, binary.LittleEndian, &h)
	for _, m := range s.marks {
		if err == nil {
			err = binary.Write(w, binary.LittleEndian, uint64(m.n))
		}
		if err == nil {
			_, err = w.Write(m.bytes)
		}
	}
	return err
}

// loadMarks reads the marks of a state of n positions. In a context of another size
// marks may have another size: those are passed over.
func (s *state) loadMarks(r io.Reader, n int) error {
	var h marksHeader
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return err
	}
	for range h.Marks {
		var at uint64
		if err := binary.Read(r, binary.LittleEndian, &at); err != nil {
			return err
		}
		if h.Bytes != uint64(s.markBytes) || s.mostMarks == 0 || at > uint64(n) {
			if _, err := io.CopyN(io.Discard, r, int64(min(h.Bytes, math.MaxInt64))); err != nil {
				return err
			}
			continue
		}
		m := mark{n: int(at), bytes: s.freeMark()}
		if _, err := io.ReadFull(r, m.bytes); err != nil {
			s.free = append(s.free, m.bytes)
			return err
		}
		s.marks = append(s.marks, m)
	}
	return nil
}

func (s *state) Load(from io.Reader) error {
	// What is overwritten is no state of anything until the end is reached.
	if _, err := s.Rewind(0); err != nil {
		return err
	}
	s.dirty = true
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	buffer := bufio.NewReaderSize(from, units.MiB)
	n, err := s.fill(io.TeeReader(buffer, sum))
	if err == nil {
		err = s.loadMarks(io.TeeReader(buffer, sum), n)
	}
	if err == nil {
		err = checkSum(buffer, sum)
	}
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("it ends too early: %w", io.ErrUnexpectedEOF)
		}
		for _, m := range s.marks { // which may be damaged
			s.free = append(s.free, m.bytes)
		}
		s.marks = s.marks[:0]
		_, rerr := s.Rewind(0)
		return errors.Join(fmt.Errorf("load a state: %w", err), rerr)
	}
	s.n, s.dirty = n, false
	return nil
}

// fill reads all that stands before the marks.
func (s *state) fill(r io.Reader) (n int, err error) {
	var h stateHeader
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return 0, err
	}
	switch {
	case string(h.Magic[:]) != stateMagic:
		return 0, errors.New("this is no saved state")
	case int(h.Layers) != len(s.layers):
		return 0, fmt.Errorf("it has %d layers, and the model %d", h.Layers, len(s.layers))
	case h.N > uint64(s.cap):
		return 0, fmt.Errorf("it has %d positions, and there is room for %d", h.N, s.cap)
	}
	n = int(h.N)
	var saved []byte // of one layer
	for i, l := range s.layers {
		var have uint64
		if err := binary.Read(r, binary.LittleEndian, &have); err != nil {
			return 0, err
		}
		want := l.savedBytes(n)
		if have != uint64(want) {
			return 0, fmt.Errorf("its layer %d takes %d bytes, and the model's %d", i, have, want)
		}
		saved = slices.Grow(saved[:0], want)[:want]
		if _, err := io.ReadFull(r, saved); err != nil {
			return 0, err
		}
		l.load(saved, n)
	}
	return n, nil
}

// checkSum compares what was read with the checksum that follows it.
func checkSum(r io.Reader, sum hash.Hash32) error {
	want := binary.LittleEndian.AppendUint32(nil, sum.Sum32())
	have := make([]byte, len(want))
	if _, err := io.ReadFull(r, have); err != nil {
		return err
	}
	if !slices.Equal(have, want) {
		return errors.New("it is damaged: its checksum is another")
	}
	return nil
}
