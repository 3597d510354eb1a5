package iobench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"bmoe/internal/cli"
	"bmoe/internal/host"
)

// campaign measures every cell as often as asked for and reports.
type campaign struct {
	opt      *options
	subject  *subject
	cells    []*cell
	demand   *demand   // of a token of the model at hand; nil where none is
	progress io.Writer // nil unless a person watches
	said     string    // the line that stands there

	measurements []*measurement // in the order in which they were made
	unwatched    string         // why the drive cannot be watched, if so
	driveName    string
}

// run measures, writes the result to stdout, and the CSV file. A run that was
// interrupted reports what it has; one that failed too, unless its output is one
// JSON object, which is then left out.
func (c *campaign) run(ctx context.Context, stdout *cli.Output) error {
	var out report
	if c.opt.json {
		out = &jsonReport{stdout, c.demand}
	} else {
		out = newTextReport(stdout, c)
	}
	file, err := createCSV(c)
	if err != nil {
		return err
	}
	err = c.measureAll(ctx, out, file)
	if cerr := file.close(); err == nil {
		err = cerr
	}
	failed := err != nil && !errors.Is(err, context.Canceled)
	if failed && (c.opt.json || errors.Is(err, cli.ErrStdoutClosed) || len(c.measurements) == 0) {
		return err
	}
	summary := c.summarise()
	summary.complete = err == nil
	if rerr := out.end(summary); rerr != nil {
		return rerr
	}
	return err
}

// measureAll goes through the cells once per repeat.
func (c *campaign) measureAll(ctx context.Context, out report, file *csvFile) error {
	b := &bench{opt: c.opt, subject: c.subject, process: host.OpenProcess()}
	defer b.process.Close()
	c.giveProcessors()
	drive, err := host.OpenDrive(c.subject.path)
	switch {
	case c.opt.simulate:
		c.unwatched = "the host is simulated"
	case err != nil:
		c.unwatched = err.Error()
	default:
		b.drive, c.driveName = drive, drive.Name()
	}
	if drive != nil {
		defer drive.Close()
	}
	if err := out.begin(); err != nil {
		return err
	}
	for round := range c.opt.repeats {
		for i, at := range c.order(round) {
			one := c.cells[at]
			c.say(round, i, one)
			m, err := b.measure(ctx, one)
			c.clear()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("row %q at %d lanes: %w", one.name(), one.lanes, err)
			}
			c.measurements = append(c.measurements, m)
			if err := errors.Join(file.write(round, m), out.measured(m)); err != nil {
				return err
			}
		}
	}
	return nil
}

// order returns the order of the cells in one repeat: as listed if there is but
// one, else shuffled anew for each. So every cell is spread over the whole run, no
// cell always follows the same other one, and a drift of the host, its heat or a
// drive's burst allowance, falls on all alike.
func (c *campaign) order(round int) []int {
	random := rand.New(rand.NewPCG(c.opt.seed, uint64(round)))
	order := random.Perm(len(c.cells))
	if c.opt.repeats == 1 {
		slices.Sort(order)
	}
	return order
}

// say shows on the watcher's terminal what is being measured, and for how long
// yet.
func (c *campaign) say(round, i int, one *cell) {
	if c.progress == nil {
		return
	}
	done, all := round*len(c.cells)+i, c.opt.repeats*len(c.cells)
	left := time.Duration(all-done) * c.opt.duration
	c.said = fmt.Sprintf("%d/%d  %s, %s  (about %v left)", done+1, all, one.name(), laneCount(one.lanes), left.Round(time.Second))
	fmt.Fprint(c.progress, c.said)
}

// clear removes what say wrote, by means that every console understands.
func (c *campaign) clear() {
	if c.progress != nil {
		fmt.Fprint(c.progress, "\r"+strings.Repeat(" ", len(c.said))+"\r")
	}
}
