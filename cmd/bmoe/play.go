package main

import (
	"context"
	"os"
	"path/filepath"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/engine/play"
	"bmoe/internal/cli"
	"bmoe/internal/interrupt"
	"bmoe/internal/tty"
	"bmoe/tui"
)

// playBack shows a recorded session as it went: on the screen, or in lines where there
// is none. What is wrong with the file is said before the terminal is asked anything.
func playBack(o *options, _ *cli.Output) error {
	b, err := play.Open(o.play)
	if err != nil {
		return err
	}
	plain := o.plain || !tty.Is(os.Stdin) || !tty.Is(os.Stdout)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if plain {
		var stop context.CancelFunc
		ctx, stop = interrupt.Others(ctx)
		defer stop()
	} else {
		defer watched()()
	}
	return tui.Run(ctx, tui.Options{
		Open:  func(func(stage string, frac float64)) (backend.Backend, error) { return b, nil },
		Name:  filepath.Base(o.play),
		Plain: plain, ASCII: o.ascii, NoMouse: o.noMouse, Theme: o.theme,
	})
}

// recorded makes a session one that /record can have written down, and has it written
// down from its beginning if that is asked for.
func (o *options) recorded(s *engine.Session) (backend.Backend, error) {
	r := play.Wrap(s, versionText(), func(err error) {
		if o.notice != nil {
			o.notice(err.Error())
		}
	})
	if o.record == "" {
		return r, nil
	}
	if err := r.Record(o.record); err != nil {
		s.Close() // the error that matters is the first
		return nil, err
	}
	return r, nil
}
