package view

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"bmoe/engine/ab"
	"bmoe/engine/backend"
	"bmoe/profile"
)

// csvFigures are the columns of a run's figures, in SI units or as they are named.
var csvFigures = []struct {
	name  string
	value func(*profile.Result) profile.Maybe[float64]
}{
	{"tok_s", ab.DecodeTPS},
	{"ttft_s", TTFT},
	{"prefill_tok_s", func(r *profile.Result) profile.Maybe[float64] { return r.PrefillTPS }},
	{"wall_s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Wall }},
	{"compute_s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Compute }},
	{"mgmt_s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Mgmt }},
	{"stall_s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Stall }},
	{"other_s", func(r *profile.Result) profile.Maybe[float64] { return r.PerToken.Other }},
	{"read_p50_ms", func(r *profile.Result) profile.Maybe[float64] { return r.IO.P50 }},
	{"read_p99_ms", func(r *profile.Result) profile.Maybe[float64] { return r.IO.P99 }},
	{"read_mib_per_token", func(r *profile.Result) profile.Maybe[float64] { return r.ReadMiBPerToken }},
	{"hit_pct", HitRate},
}

// CSV returns the runs as a table, a row a run. What was not measured is empty.
func (l *Runs) CSV() []byte {
	var names []string // of settings
	for _, r := range l.All() {
		for _, v := range r.Settings {
			if !slices.Contains(names, v.Name) {
				names = append(names, v.Name)
			}
		}
	}
	head := []string{"run", "equal_to", "when", "question", "note", "engine"}
	for _, n := range names {
		head = append(head, "set_"+strings.ReplaceAll(n, "-", "_"))
	}
	for _, f := range csvFigures {
		head = append(head, f.name)
	}
	head = append(head, "evictions", "rereads", "prompt_tokens", "tokens", "stop", "flags", "text_sha256", "against", "change", "text")
	var b bytes.Buffer
	w := csv.NewWriter(&b) // it fails only where writing to b does, which does not
	w.Write(head)
	whole := func(v profile.Maybe[int64]) string {
		if !v.OK {
			return ""
		}
		return strconv.FormatInt(v.Value, 10)
	}
	for _, r := range l.All() {
		g := l.Of(r)
		row := []string{fmt.Sprint(r.N), fmt.Sprint(g.First().N), r.When.Format(time.RFC3339), r.Prompt, l.Note(r.N), ab.EngineName(r)}
		for _, n := range names {
			value := ""
			if i := slices.IndexFunc(r.Settings, func(v backend.Value) bool { return v.Name == n }); i >= 0 {
				value = r.Settings[i].Value
			}
			row = append(row, value)
		}
		for _, f := range csvFigures {
			if v := f.value(&r.Result); v.OK {
				row = append(row, strconv.FormatFloat(v.Value, 'g', -1, 64))
			} else {
				row = append(row, "")
			}
		}
		against, change, text := "", "", ""
		if base := l.against(g); base != nil && !StoppedEarly(r) {
			c := l.Compare(base, g)
			against, change, text = base.Name(), c.Difference.String(), c.Text()
		}
		row = append(row, whole(r.Result.Cache.Evictions), whole(r.Result.Cache.Rereads), fmt.Sprint(r.Result.NPrompt), fmt.Sprint(r.Result.NGen), r.Result.StopReason,
			strings.Join(r.Result.Flags, " "), r.Result.TextSHA256, against, change, text)
		w.Write(row)
	}
	w.Flush()
	return b.Bytes()
}
