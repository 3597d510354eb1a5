package main

import (
	"context"
	"path/filepath"

	"bmoe/tui"
)

// chat shows the screen until the user quits. Ctrl+C is the screen's affair.
func chat(o *options) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	name := "the demo model"
	if o.cfg.Model != "" {
		name = filepath.Base(o.cfg.Model)
	}
	return tui.Run(ctx, tui.Options{
		Open: func(progress func(stage string, frac float64)) (tui.Engine, error) {
			s, err := o.open(ctx, progress)
			if err != nil {
				return nil, err // not a nil session in an interface
			}
			return s, nil
		},
		Name: name, MaxTokens: o.maxTokens,
		Plain: o.plain, ASCII: o.ascii, NoMouse: o.noMouse,
	})
}
