// Package userdir says where a program keeps what is the user's: what it wants to
// remember of its runs, and how it is set up.
package userdir

import (
	"fmt"
	"os"
	"path/filepath"
)

// StateVariable names the environment variable that takes the place of the user's
// state folder.
const StateVariable = "BMOE_STATE_DIR"

// State returns the folder of what is remembered of runs: sessions, prompts, reports
// of failures. It may not exist yet.
func State() (string, error) {
	if dir := os.Getenv(StateVariable); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := stateFolder()
	if err != nil {
		return "", fmt.Errorf("no folder to keep anything in: %w; set %s", err, StateVariable)
	}
	return dir, nil
}

// Config returns the folder of the user's own settings. It may not exist.
func Config() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bmoe"), nil
}
