package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

// Two decoded tokens: of the first two steps, 1 and 3 ms long, and of the second one of
// 10 ms; reads before, in and after the first, one of them ahead, one across its end.
const (
	stepsTrace = "# compute_trace v1\nturn,phase,step,seq,layer,op,name,wall_ns,majflt,start_ns,compute_ns,mgmt_ns,stall_ns,other_ns\n" +
		"0,0,0,0,,embed,embed,9000000,,1000000,9000000,0,0,0\n" +
		"0,1,7,0,0,attention,blk.0.attention,1000000,,20000000,1000000,0,0,0\n" +
		"0,1,7,1,0,moe,blk.0.<moe>,3000000,,21000000,1000000,100000,1500000,400000\n" +
		"0,1,8,0,1,moe,blk.1.moe,10000000,,25000000,10000000,0,0,0\n"
	readsTrace = "# io_trace v1\nturn,phase,step,layer,expert,proj,lane,spec,offset,req_bytes,read_bytes,latency_ns,start_ns\n" +
		"0,0,0,0,4,0,0,0,0,4096,4096,1000000,2000000\n" +
		"0,1,7,0,5,0,0,0,0,4096,4096,1000000,21500000\n" +
		"0,1,7,1,6,0,2,1,8192,4096,4096,500000,22000000\n" +
		"0,1,8,1,7,1,1,0,16384,4096,4096,4000000,23000000\n" +
		"0,1,8,1,8,1,1,0,32768,4096,4096,1000000,28000000\n"
)

func TestTimeline(t *testing.T) {
	picture := filepath.Join(conform.TempDir(t), "t.svg")
	steps, reads := written(t, stepsTrace), written(t, readsTrace)
	code, out, errs := command("--timeline", reads, steps, "--token", "1", "--svg", picture)
	if code != 0 || errs != "" || out != "token 1 of 2: 4.00 ms, compute 2.00, cache work 0.10, waiting 1.50, sync 0.40; 3 reads in flight, 1 of them ahead of demand\n" {
		t.Fatalf("%d, %q, %q", code, out, errs)
	}
	svg, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for want, n := range map[string]int{"<title>": 5 + 3, "lane 3": 1, "lane 4": 0, "expert 6, projection 0, ahead": 1, "expert 8": 0, "blk.0.&lt;moe&gt;": 4} {
		if got := strings.Count(string(svg), want); got != n {
			t.Errorf("%q stands %d times, want %d:\n%s", want, got, n, svg)
		}
	}
	// The traces in the other order, and the token of middle length.
	if code, out, _ := command("--timeline", steps, reads, "--svg", picture); code != 0 || !strings.HasPrefix(out, "token 2 of 2: 10.00 ms") {
		t.Errorf("%d, %q", code, out)
	}
	old := written(t, strings.ReplaceAll(stepsTrace, "start_ns", "other"))
	for want, args := range map[string][]string{
		"--timeline takes two traces":            {"--timeline", reads, "--svg", picture},
		"--svg names the file":                   {"--timeline", reads, steps},
		"--budgets does nothing with --timeline": {"--timeline", reads, steps, "--svg", picture, "--budgets", "5"},
		"--token does nothing without":           {steps, "--token", "5"},
		"one of each":                            {"--timeline", reads, reads, "--svg", picture},
		"there are 2 tokens, and no 3":           {"--timeline", reads, steps, "--svg", picture, "--token", "3"},
		"record it again":                        {"--timeline", reads, old, "--svg", picture},
		"no token of an answer":                  {"--timeline", reads, written(t, strings.ReplaceAll(stepsTrace, "\n0,1", "\n# 0,1")), "--svg", picture},
	} {
		if code, out, errs := command(args...); code == 0 || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, want) {
			t.Errorf("%q: %d, %q, %q", want, code, out, errs)
		}
	}
}
