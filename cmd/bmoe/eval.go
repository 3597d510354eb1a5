package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"bmoe/engine"
	"bmoe/internal/cli"
	"bmoe/internal/crash"
)

// eval runs the model over given ids. It prints the likeliest token after each
// position, and writes the logits if a file is named.
func eval(ctx context.Context, o *options, out *cli.Output) error {
	c, err := o.config(ctx)
	if err != nil {
		return err
	}
	s, err := engine.Open(ctx, c, nil) // logits are of this program's own engine only
	if err != nil {
		return err
	}
	giveProcessors(s)
	logits, err := s.Eval(ctx, o.evalTokens, o.evalDecode)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	vocab := len(logits) / len(o.evalTokens)
	if o.saveLogits != "" {
		if err := writeFile(ctx, o.saveLogits, func(w io.Writer) error { return writeFloats(w, logits) }); err != nil {
			return fmt.Errorf("logits: %w", err)
		}
	}
	best := make([]int, len(o.evalTokens))
	for i := range best {
		row := logits[i*vocab:][:vocab]
		for j, v := range row {
			if v > row[best[i]] {
				best[i] = j
			}
		}
	}
	return out.Line("", struct {
		Tokens int   `json:"n_tokens"`
		Vocab  int   `json:"n_vocab"`
		Argmax []int `json:"argmax"`
	}{len(o.evalTokens), vocab, best})
}

// writeFile creates a file, or truncates it, and fills it. If that fails, or ctx
// ends meanwhile, no half of a file stays. A pipe may have nobody who reads it: when
// ctx ends, it is left behind.
func writeFile(ctx context.Context, path string, fill func(io.Writer) error) error {
	info, err := os.Stat(path)
	special := err == nil && !info.Mode().IsRegular()
	done := make(chan error, 1)
	go func() {
		defer crash.Catch("writing")
		done <- createFile(ctx, path, special, fill)
	}()
	ended := ctx.Done()
	if !special {
		ended = nil // it comes to an end by itself, and cleans up
	}
	select {
	case err := <-done:
		return err
	case <-ended:
		return ctx.Err()
	}
}

func createFile(ctx context.Context, path string, special bool, fill func(io.Writer) error) error {
	// For writing alone: a pipe opened for reading too would be its own reader.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	err = fill(stoppable{ctx, f})
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil && !special {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// stoppable writes until ctx ends.
type stoppable struct {
	ctx context.Context
	w   io.Writer
}

func (s stoppable) Write(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.w.Write(b)
}

// writeFloats writes little-endian float32.
func writeFloats(w io.Writer, v []float32) error {
	const batch = 16384
	b := make([]byte, 0, 4*batch)
	for len(v) > 0 {
		n := min(batch, len(v))
		b = b[:0]
		for _, f := range v[:n] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		v = v[n:]
	}
	return nil
}
