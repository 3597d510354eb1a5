package main

import (
	"path/filepath"
	"strings"
	"testing"

	"bmoe/internal/conform"
)

// The list has what the folders have, a line each, and what cannot be run is said to be
// so.
func TestListOfModels(t *testing.T) {
	demo := filepath.Dir(demoModel(t))
	home := conform.TempDir(t)
	for _, name := range []string{"HOME", "USERPROFILE", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "OLLAMA_MODELS"} {
		t.Setenv(name, home)
	}
	t.Chdir(home)
	broken := temp(t, "broken.gguf", []byte("no model"))
	r := succeeds(t, "--models", "--models-dir", demo, "--models-dir", filepath.Dir(broken), "--models-dir", "nowhere")
	lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "qwen3moe Q8_0") || !strings.Contains(lines[1], "4 of 32 experts") || !strings.Contains(lines[1], "tok/s") ||
		!strings.Contains(lines[2], "cannot be run") || lines[3] != "" || !strings.Contains(lines[4], "GB/s") {
		t.Errorf("%q", lines)
	}
	if line := oneComplaint(t, r.stderr); !strings.Contains(line, "nowhere") {
		t.Error(line)
	}
	r = succeeds(t, "--models", "--models-dir", demo, "--json")
	var all []foundModel
	if parseJSON(t, r.stdout, &all); len(all) != 1 || !all[0].MoE || !all[0].LeastTPS.OK || all[0].LeastTPS.Value > all[0].MostTPS.Value || all[0].Problem != "" {
		t.Errorf("%+v", all)
	}
	if r = succeeds(t, "--models"); !strings.Contains(r.stdout, "no models found") {
		t.Errorf("%+v", r)
	}
}
