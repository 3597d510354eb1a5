package iobench

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParseDefaults(t *testing.T) {
	o, err := parse([]string{"--model", "m.gguf"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.lanes, []int{1, 2, 4, 8}) || !slices.Equal(o.sliceKiB, []int64{576}) || o.duration != 3*time.Second ||
		o.repeats != 1 || !slices.Equal(o.engines, []string{"lanes"}) || o.mapping != mapNone || o.simulate {
		t.Errorf("sweep: %+v", o)
	}
	o, err = parse([]string{"m.gguf", "--table"})
	if err != nil {
		t.Fatal(err)
	}
	if o.model != "m.gguf" || !slices.Equal(o.lanes, []int{1, 4}) || o.duration != 500*time.Millisecond || o.repeats != 5 {
		t.Errorf("table: %+v", o)
	}
}

func TestParseTakesListsSortedAndOnce(t *testing.T) {
	o, err := parse(strings.Fields("-m m --lanes 8,1,8,4 --slice-kb 4096,64 --io-engine uring,lanes,uring --seconds 0.25"))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.lanes, []int{1, 4, 8}) || !slices.Equal(o.sliceKiB, []int64{4096, 64}) ||
		!slices.Equal(o.engines, []string{"uring", "lanes"}) || o.duration != 250*time.Millisecond {
		t.Errorf("%+v", o)
	}
}

func TestParseMapping(t *testing.T) {
	for args, want := range map[string]mapWhen{
		"":                                      mapNone,
		"--mmap":                                mapAfter,
		"--mmap --mmap-when before":             mapBefore,
		"--mmap-when section-only":              mapSectionOnly,
		"--mmap-when old-handle --via-hardlink": mapOldHandle,
		"--mmap --reopen-lanes":                 mapAfter,
	} {
		o, err := parse(strings.Fields("-m m " + args))
		if err != nil || o.mapping != want {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

// TestParseRefuses checks that what cannot be meant is refused, with the flag's
// name in the message.
func TestParseRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"":                                          "--model is missing",
		"m n":                                       `unexpected argument "m"`,
		"-m m n":                                    `unexpected argument "n"`,
		"-m m --bogus":                              "--bogus",
		"-m m --lanes 0":                            "--lanes 0: 1 to 64",
		"-m m --lanes 10000":                        "--lanes 10000: 1 to 64",
		"-m m --lanes=-1":                           "--lanes -1",
		"-m m --lanes four":                         `--lanes "four"`,
		"-m m --lanes 1,,2":                         `--lanes ""`,
		"-m m --lanes=":                             "--lanes",
		"-m m --slice-kb 0":                         "--slice-kb 0",
		"-m m --slice-kb 99999999999999999":         "--slice-kb",
		"-m m --slice-kb 1.5":                       `--slice-kb "1.5"`,
		"-m m --seconds 0":                          "--seconds 0",
		"-m m --seconds NaN":                        "--seconds NaN",
		"-m m --seconds Inf":                        "--seconds",
		"-m m --repeats 0":                          "--repeats 0",
		"-m m --compute-load=-1":                    "--compute-load -1",
		"-m m --range-mb 0":                         "--range-mb 0",
		"-m m --range-mb=-5":                        "--range-mb -5",
		"-m m --range-mb 9223372036854775":          "--range-mb",
		"-m m --scatter 0":                          "--scatter 0",
		"-m m --io-engine threads":                  `--io-engine "threads"`,
		"-m m --io-engine=":                         "--io-engine",
		"-m m --simulate-host ext4":                 `--simulate-host "ext4"`,
		"-m m --mmap-when sometimes":                `--mmap-when "sometimes"`,
		"-m m --mmap-when=":                         "--mmap-when",
		"-m m --reopen-lanes":                       "--reopen-lanes goes with --mmap",
		"-m m --via-hardlink":                       "--via-hardlink goes with --mmap",
		"-m m --mmap-when view-only --reopen-lanes": "not view-only",
		"-m m --table --mmap":                       "--mmap does not go with --table",
		"-m m --table --small-pages":                "--small-pages does not go with --table",
		"-m m --table --buffered":                   "--buffered does not go with --table",
		"-m m --table --slice-kb 64,576":            "one --slice-kb",
	} {
		_, err := parse(strings.Fields(args))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", args, err, want)
		}
	}
}

func TestUsageNamesEveryFlag(t *testing.T) {
	text := Usage()
	for _, name := range strings.Fields("model lanes slice-kb seconds buffered compute-load range-mb fresh small-pages scatter mmap mmap-when via-hardlink reopen-lanes io-engine simulate-host seed csv json table repeats no-round") {
		if !strings.Contains(text, "--"+name) {
			t.Errorf("--help does not know --%s", name)
		}
	}
	if !strings.Contains(text, "KiB") {
		t.Error("--help does not say that --slice-kb is in KiB")
	}
}
