package main

import (
	"context"
	"os"
	"runtime/debug"

	"bmoe/engine/backend"
	"bmoe/internal/cli"
	"bmoe/internal/crash"
	"bmoe/internal/interrupt"
	"bmoe/internal/tty"
	"bmoe/tui"
)

// chat shows the screen until the user quits. Ctrl+C is the screen's affair,
// except while the file's header is read: what is wrong with a file or a
// setting is said before the terminal is asked anything.
func chat(o *options, _ *cli.Output) error {
	store, resumed, err := o.kept(context.Background())
	if err != nil {
		return err
	}
	notices := make(chan string, 8)
	notice := func(text string) {
		select {
		case notices <- text:
		default: // one that is not shown is enough to know of the others
		}
	}
	o.notice, o.far.AnyModel, o.both = notice, true, true
	opening, err := o.begun()
	if err != nil {
		return err
	}
	var resume *string
	if resumed != nil {
		id := resumed.ID()
		resume = &id
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if o.plain { // without a screen, which hears all signals itself
		var stop context.CancelFunc
		ctx, stop = interrupt.Others(ctx)
		defer stop()
	}
	files, err := o.createSinks(ctx, func(err error) { notice(err.Error()) })
	if err != nil {
		return err
	}
	if !o.plain {
		defer watched()()
	}
	models := newShelf(o, opening, files.observe)
	return files.joined(tui.Run(ctx, tui.Options{
		Open: func(progress func(stage string, frac float64)) (backend.Backend, error) {
			b, err := opening.finish(ctx, progress)
			if err != nil {
				return nil, err
			}
			files.observe(b)
			models.took(b)
			return b, nil
		},
		Name: opening.name, Notices: notices, Models: models, ModelID: models.startID,
		Sessions: store, Resume: resume, Model: opening.path,
		Plain: o.plain, ASCII: o.ascii, NoMouse: o.noMouse, Theme: o.theme, Keys: o.keys,
	}))
}

// begun does what can fail before the terminal is asked anything; Ctrl+C ends it.
func (o *options) begun() (*opening, error) {
	ctx, stop := interrupt.Context(context.Background())
	defer stop()
	return o.begin(ctx)
}

// watched has the screen watched by a process that gives the terminal back
// should this one end by what it cannot catch; the function that comes back ends
// that. Without it the screen works as well.
func watched() (stop func()) {
	end, err := tty.StartWatcher(os.Stdin, os.Stdout)
	if err != nil {
		return func() {}
	}
	debug.SetTraceback("all") // into the report; on the screen it would not be seen
	return func() {
		end()
		if os.Getenv(crash.DebugVariable) == "" {
			debug.SetTraceback("none")
		}
	}
}
