package synth

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bmoe/internal/conform"
	"bmoe/internal/crash"
)

// faultVariable names the model that a process of the test is to fail at.
const faultVariable = "BMOE_SYNTH_TEST_FAULT"

const caught = 17 // an exit code that nothing else has

// A panic on a writer's goroutine comes to the program's handler.
func TestAFaultOnAWriterIsCaught(t *testing.T) {
	if path := os.Getenv(faultVariable); path != "" {
		crash.Handle(func(p *crash.Panic) {
			if p.Where == "writer" {
				os.Exit(caught)
			}
		})
		m, err := New(small(t))
		must(t, err)
		must(t, m.Write(context.Background(), path, func(int64) { panic("a fault") }))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAFaultOnAWriterIsCaught$")
	cmd.Env = append(os.Environ(), faultVariable+"="+filepath.Join(conform.TempDir(t), "m.gguf"))
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != caught {
		t.Errorf("%v: %s", err, out)
	}
}
