package ab

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"bmoe/engine/backend"
	"bmoe/profile"
)

var axes = []backend.Setting{
	{Name: "release-mmap", Flag: "release-mmap", Kind: backend.Switch, Live: true},
	{Name: "lanes", Flag: "io-threads", Kind: backend.Whole, Least: 1, Most: 64, Want: "1 to 64", Live: true},
	{Name: "threads", Flag: "threads", Kind: backend.Whole, Least: 1, Most: 8, Want: "1 to 8"},
}

func TestVariantsAreEveryCombination(t *testing.T) {
	v, live, err := Variants("release-mmap=off,on; io-threads=1,4", axes)
	if err != nil || !live {
		t.Fatal(live, err)
	}
	var names []string
	for i := range v {
		names = append(names, v[i].Name)
	}
	want := []string{"release-mmap off, lanes 1", "release-mmap off, lanes 4", "release-mmap on, lanes 1", "release-mmap on, lanes 4"}
	if !slices.Equal(names, want) || !reflect.DeepEqual(v[1].Values, map[string]string{"release-mmap": "off", "lanes": "4"}) {
		t.Errorf("%q, %v", names, v[1].Values)
	}
	if v, live, err = Variants("threads=1,2", axes); err != nil || live || len(v) != 2 {
		t.Errorf("%v, live %v, %v", v, live, err)
	}
	if v, _, err = Variants("release-mmap=false,true", axes); err != nil || v[1].Values["release-mmap"] != "on" {
		t.Errorf("%v, %v", v, err)
	}
	for spec, want := range map[string]string{
		"":                         `"": want a setting and its values`,
		"lanes":                    `"lanes": want a setting and its values`,
		"lanes=":                   `"lanes=": want a setting and its values`,
		"lanes=4":                  "one combination leaves nothing to compare",
		"lanes=1,99":               `lanes "99": want 1 to 64`,
		"lanes=1,1":                "lanes has the value 1 twice",
		"lanes=1,2;io-threads=4,8": "io-threads stands twice",
		"speed=1,2":                `"speed" is no setting`,
		"lanes=1,2,3,4,5,6,7,8;threads=1,2,3,4,5": "at most 32",
	} {
		if _, _, err := Variants(spec, axes); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
}

// Generate makes the fake an engine that an experiment can open.
func (f *fake) Generate(ctx context.Context, _ backend.Request) (*backend.Run, error) {
	f.log = append(f.log, "generate")
	return f.run(ctx, true), nil
}

func (f *fake) Close() error {
	f.log = append(f.log, "close")
	return nil
}

func planOf(f *fake, spec string) *Plan {
	v, live, err := Variants(spec, append(slices.Clone(axes), backend.Setting{Name: "model"}))
	if err != nil {
		panic(err)
	}
	return &Plan{Variants: v, Live: live, Most: 12, Open: func(_ context.Context, values map[string]string) (backend.Backend, error) {
		for name, v := range values {
			f.values[name] = v
		}
		f.log = append(f.log, "open")
		return f, nil
	}}
}

func TestAnExperimentGoesBothWaysAndStopsWhenItKnows(t *testing.T) {
	f := newFake()
	x, err := planOf(f, "release-mmap=off,on").Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"open", "generate", // the warm-up
		"release-mmap off", "again", "release-mmap on", "again",
		"release-mmap on", "again", "release-mmap off", "again",
		"release-mmap off", "again", "release-mmap on", "again", "close"}
	if !reflect.DeepEqual(f.log, want) || x.Ended != "every difference is known after 3 rounds" {
		t.Errorf("%q\nended: %s", f.log, x.Ended)
	}
	d, _ := x.Difference(1)
	if d.String() != "faster +50..+50 %" || !x.SameText() || x.Excluded() != 0 {
		t.Errorf("%v, same text %v", d, x.SameText())
	}
}

func TestAnExperimentGoesOnWhileItDoesNotKnow(t *testing.T) {
	f := newFake()
	p := planOf(f, "release-mmap=off,on")
	p.Most, p.Forward = 6, true
	n := 0
	p.Each = func(c *Cell) { // the machine is restless
		n++
		c.Run.Result.DecodeTPS = profile.Some(3 + float64(n*n%7))
	}
	x, err := p.Run(context.Background())
	if err != nil || x.Rounds != 6 || x.Ended != "6 rounds were asked for" {
		t.Errorf("%d rounds, %s, %v", x.Rounds, x.Ended, err)
	}
	if d, _ := x.Difference(1); d.String() != "no clear change" {
		t.Errorf("%v", d)
	}
}

// A disturbed cell is made once more, and then left out and counted.
func TestDisturbedCellsAreRepeatedAndLeftOut(t *testing.T) {
	f := newFake()
	p := planOf(f, "release-mmap=off,on")
	p.Most = 4
	p.Gate = func(context.Context) error {
		f.disturb = f.n >= 1 && f.n <= 3 // of the first round both tries of one, and one of the other
		return nil
	}
	x, err := p.Run(context.Background())
	if err != nil || x.Excluded() != 3 || len(x.Cells) != 1+8+2 {
		t.Fatalf("%d excluded of %d, %v", x.Excluded(), len(x.Cells), err)
	}
	r := x.Report(true, "bmoe test")
	if r.Variants[0].Cells != 3 || r.Variants[1].Cells != 4 || r.Variants[1].Change.Pairs != 3 {
		t.Errorf("%+v", r.Variants)
	}
}

func TestEveryRunOpensWhereASettingIsFixed(t *testing.T) {
	f := newFake()
	p := planOf(f, "threads=1,2")
	p.Most = 1
	x, err := p.Run(context.Background())
	if err != nil || len(x.Cells) != 3 {
		t.Fatal(len(x.Cells), err)
	}
	if want := []string{"open", "generate", "close", "open", "generate", "close", "open", "generate", "close"}; !reflect.DeepEqual(f.log, want) {
		t.Errorf("%q", f.log)
	}
}

func TestAnExperimentThatCannotGoOn(t *testing.T) {
	f := newFake()
	f.refuse = "on"
	x, err := planOf(f, "release-mmap=off,on").Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "release-mmap on: {release-mmap=on} was declined: no") || len(x.Cells) != 2 {
		t.Errorf("%d cells, %v", len(x.Cells), err)
	}
	f = newFake()
	ctx, cancel := context.WithCancel(context.Background())
	f.stop, f.stopIn = cancel, 4
	x, err = planOf(f, "release-mmap=off,on").Run(ctx)
	if !errors.Is(err, context.Canceled) || len(x.Cells) != 3 || f.log[len(f.log)-1] != "close" {
		t.Errorf("%d cells, %v, %q", len(x.Cells), err, f.log)
	}
}

func TestReportsOfAnExperiment(t *testing.T) {
	f := newFake()
	x, err := planOf(f, "release-mmap=off,on").Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	x.Cells[3].Run.Result.Cache.HitPct = profile.Some(60.9)
	r := x.Report(true, "bmoe test")
	var md bytes.Buffer
	if err := r.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"|  | release-mmap off | release-mmap on |", "| decode_tps, tokens/s | 3.33 | 5.00 |", "| stall_s, s | n/a | n/a |",
		"| change of speed | base | faster +50..+50 % (3 pairs) |", "All runs gave the same text. 0 runs were disturbed and left out. Every difference is known after 3 rounds; bmoe test."} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("%q is missing:\n%s", want, md.String())
		}
	}
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"decode_tps":{"median":5`) || !strings.Contains(string(text), `"stall_s":{"median":null,"low":null,"high":null}`) {
		t.Errorf("%s, %v", text, err)
	}
	var table bytes.Buffer
	if err := x.CSV(&table, true); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&table).ReadAll()
	if err != nil || len(rows) != 8 || rows[1][3] != "warm-up" || rows[2][2] != "release-mmap off" {
		t.Errorf("%q, %v", rows, err)
	}
	if at := slices.Index(rows[0], "stall_s"); at < 0 || rows[2][at] != "" {
		t.Errorf("what was not measured is %q", rows[2])
	}
}

func TestNothingCountsInABusyRoom(t *testing.T) {
	f := newFake()
	f.disturb = true
	x, err := planOf(f, "release-mmap=off,on").Run(context.Background())
	if err != nil || x.Rounds != 3 || x.Ended != "nothing counted in 3 rounds: close other programs and try again" {
		t.Errorf("%d rounds, %s, %v", x.Rounds, x.Ended, err)
	}
	if r := x.Report(true, ""); r.Variants[1].Change.Verdict != "not comparable: fewer than three undisturbed pairs" {
		t.Errorf("%+v", r.Variants[1].Change)
	}
}
