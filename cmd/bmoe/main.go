// Command bmoe chats with mixture-of-experts models bigger than memory, and
// shows live where every token's time goes. With a prompt on the command line,
// or without a terminal, it answers once and ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"

	"bmoe/engine"
	"bmoe/engine/backend"
	"bmoe/engine/demo"
	"bmoe/internal/cli"
	"bmoe/internal/crash"
	"bmoe/internal/tty"
	"bmoe/internal/units"
	"bmoe/internal/userdir"
	"bmoe/tui"
)

func main() {
	if tty.Watch(versionText()) {
		return
	}
	if os.Getenv(crash.DebugVariable) == "" {
		debug.SetTraceback("none") // what ends the program without having been caught
	}
	crash.Handle(func(p *crash.Panic) { os.Exit(fail(p)) })
	cli.IgnoreBrokenPipe()
	code := run(os.Args[1:])
	if code != cli.Done && code != cli.Interrupted {
		holdConsole()
	}
	os.Exit(code)
}

// run is the program.
func run(args []string) (code int) {
	defer func() {
		if v := recover(); v != nil {
			code = fail(crash.New("program", v, debug.Stack()))
		}
	}()
	opt, err := parse(args)
	out := cli.NewOutput(os.Stdout)
	if err == nil {
		for _, n := range opt.notices {
			warnOf(n)
		}
	}
	if err == nil && opt.mode().opens() {
		var notice string
		notice, err = opt.readConfig()
		warnOf(notice)
	}
	if err == nil {
		err = dispatch(opt, out)
	} else if errors.Is(err, errHelp) {
		err = out.Text(usage())
	}
	if p := new(tui.PanicError); errors.As(err, p) {
		return fail(p.Panic)
	}
	code = exitCode(err)
	if err != nil {
		err = opt.worded(err)
	}
	if code == cli.Failed || code == cli.Usage {
		if opt.progress && !opt.json {
			// Whoever reads the lines learns of the error from them too.
			if perr := out.Line("BMOE_ERROR", errorLine{Fatal: true, Msg: err.Error()}); perr != nil && !errors.Is(perr, cli.ErrStdoutClosed) && !errors.Is(err, perr) {
				err = errors.Join(err, perr)
			}
		}
	}
	cli.Tell(os.Stderr, "bmoe", err, code)
	return code
}

// words puts the settings that a text of the engine's mentions in the words of
// the command line.
func (o *options) words(text string) string { return backend.Mention(text, o.settings, backend.AsFlag) }

// worded is an error in the words of the command line.
func (o *options) worded(err error) error {
	text := err.Error()
	var refused *backend.SettingError
	if errors.As(err, &refused) {
		text = refused.Words(o.settings, backend.AsFlag)
	}
	if text = o.words(text); text == err.Error() {
		return err
	}
	return wordedError{text, err}
}

// wordedError is an error in other words.
type wordedError struct {
	text string
	error
}

func (e wordedError) Error() string { return e.text }

func (e wordedError) Unwrap() error { return e.error }

// exitCode returns the exit code for what ended the program.
func exitCode(err error) int {
	code := cli.ExitCode(err)
	switch {
	case code != cli.Failed:
		return code
	case errors.Is(err, tui.ErrInterrupted):
		return cli.Interrupted
	case errors.As(err, new(*engine.UsageError)), errors.As(err, new(*backend.SettingError)):
		return cli.Usage
	}
	return code
}

// modelPath returns the model's path: the demo's if none was given.
func (o *options) modelPath(ctx context.Context) (string, error) {
	switch {
	case o.cfg.Model != "":
		return o.cfg.Model, nil
	case o.hf != "":
		return o.hubModel(ctx)
	}
	return demo.Path(ctx)
}

// config returns the configuration to open the engine with.
func (o *options) config(ctx context.Context) (engine.Config, error) {
	c := o.cfg
	var err error
	if c.Template, err = o.readTemplate(ctx); err != nil {
		return c, err
	}
	if c.Model == "" && o.hf == "" && c.Origins["cache"] == "" {
		c.Cache.Share = demo.CacheShare
	}
	if dir, err := userdir.State(); err == nil { // else engines do not see each other
		c.Locks = filepath.Join(dir, "drives")
	}
	c.Model, err = o.modelPath(ctx)
	return c, err
}

// readTemplate returns the text of --chat-template-file, or nothing.
func (o *options) readTemplate(ctx context.Context) (string, error) {
	if !o.given("chat-template-file") {
		return "", nil
	}
	return readFile(ctx, o.cfg.TemplateFile, "chat template", false)
}

// maxInput bounds what is read from a file that is not a model.
const maxInput = 64 * units.MiB

// readFile reads a text file whole. It may be a pipe only where that is said:
// one that nobody writes to would hold up whoever named it by mistake.
func readFile(ctx context.Context, path, what string, pipe bool) (string, error) {
	return readAll(ctx, what, func() (io.ReadCloser, error) {
		if info, err := os.Stat(path); err == nil && !pipe && !info.IsDir() && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("open %s: not a regular file", path)
		}
		return os.Open(path)
	})
}

// readAll opens a text and reads it to its end. A terminal or a pipe may never come
// to one, nor to its beginning: when ctx ends, it is left behind.
func readAll(ctx context.Context, what string, open func() (io.ReadCloser, error)) (string, error) {
	var b []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer crash.Catch("reading")
		defer close(done)
		var r io.ReadCloser
		if r, err = open(); err != nil {
			return
		}
		defer r.Close() // opened for reading: nothing is lost if closing fails
		b, err = io.ReadAll(io.LimitReader(r, maxInput+1))
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case <-done:
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if len(b) > maxInput {
		return "", fmt.Errorf("%s: longer than %d MiB", what, maxInput/units.MiB)
	}
	return string(b), nil
}
