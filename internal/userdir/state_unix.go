//go:build !windows

package userdir

import (
	"os"
	"path/filepath"
)

// stateFolder is where the XDG base directories put what a program wants to
// keep of its runs.
func stateFolder() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "bmoe"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "bmoe"), nil
}
