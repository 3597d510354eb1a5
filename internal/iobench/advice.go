package iobench

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bmoe/engine/gguf"
	"bmoe/internal/units"

	"github.com/spf13/pflag"
)

// demand is what one token asks of the drive.
type demand struct {
	of    string // the model's name; empty if the size was given
	bytes int64  // the experts that a token uses, all layers
}

// demandOf works out what a token of a model takes. A model that was not asked
// about but is the file being read counts if it is one: else the demand is nil.
func demandOf(opt *options) (*demand, error) {
	if opt.tokenMiB > 0 {
		return &demand{bytes: int64(opt.tokenMiB * units.MiB)}, nil
	}
	path := opt.reckonFor
	if path == "" {
		path = opt.model
	}
	d, err := readDemand(path)
	if err != nil && opt.reckonFor == "" {
		return nil, nil // any file may be read from
	}
	return d, err
}

// readDemand takes the sizes from a model's header: of each layer's experts a token
// uses the same number.
func readDemand(path string) (*demand, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	arch, err := f.Meta.String("general.architecture")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	experts, err := f.Meta.IntOr(arch+".expert_count", 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	used, err := f.Meta.IntOr(arch+".expert_used_count", 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var all int64
	for _, t := range f.Tensors {
		if strings.HasSuffix(t.Name, "_exps.weight") {
			all += t.Size
		}
	}
	if all == 0 || used < 1 || used > experts {
		return nil, fmt.Errorf("%s: says of no experts how many a token uses (%s.expert_count %d, %s.expert_used_count %d)", path, arch, experts, arch, used)
	}
	return &demand{filepath.Base(path), int64(float64(all) / float64(experts) * float64(used))}, nil
}

// hitRates are the shares of a token's experts that may be in the cache, in percent.
var hitRates = []int{0, 50, 75, 90}

// atMost is the speed that a rate allows where so much is in the cache, in tokens a
// second: as if nothing but the drive took time.
func (d *demand) atMost(rate float64, hitPct int) float64 {
	return rate / (units.InMiB(d.bytes) * (1 - float64(hitPct)/100))
}

// words says what a rate in MiB/s would mean.
func (d *demand) words(rate float64) string {
	if d == nil {
		return "--for MODEL.gguf, or --for MIB, tells what that allows a model whose token takes so much"
	}
	whose := "a token"
	if d.of != "" {
		whose = "a token of " + d.of
	}
	var at []string
	for _, h := range hitRates {
		at = append(at, fmt.Sprintf("%s at %d %%", units.Short(d.atMost(rate, h)), h))
	}
	return fmt.Sprintf("%s takes %s MiB of experts: at most, in tok/s, %s of hits", whose, units.Short(units.InMiB(d.bytes)), strings.Join(at, ", "))
}

// tries are bmoe's settings that are worth a comparison after these rows. The rows
// alone do not say which is best: while a layer computes, its lanes have nothing to
// read, so an engine may gain from more of them where the drive's own curve is flat.
func (s *summary) tries() []string {
	var out []string
	for _, r := range s.rows {
		try := fmt.Sprintf("--io-threads %d", r.cell.lanes)
		if r.unavailable == "" && !slices.Contains(out, try) {
			out = append(out, try)
		}
	}
	if slices.ContainsFunc(s.rows, func(r *row) bool { return r.unavailable == "" && r.engine == "uring" }) {
		out = append(out, "--io-engine uring")
	}
	if len(out) < 2 {
		return nil // nothing to compare
	}
	return out
}

// best returns the highest peak; ok is false if nothing was measured.
func (s *summary) best() (best peak, ok bool) {
	for _, p := range s.peaks {
		if !ok || p.rate > best.rate {
			best, ok = p, true
		}
	}
	return best, ok
}

// setDemand takes --for: a size in MiB, or a model.
func (o *options) setDemand(r *raw, f *pflag.FlagSet) error {
	if !f.Changed("for") {
		return nil
	}
	n, err := strconv.ParseFloat(r.reckonFor, 64)
	switch {
	case err != nil && r.reckonFor != "":
		o.reckonFor = r.reckonFor
	case !(n > 0 && n <= math.MaxInt32):
		return fmt.Errorf("--for %q: want a model, or the MiB of experts that a token takes", r.reckonFor)
	default:
		o.tokenMiB = n
	}
	return nil
}
