package userdir

import (
	"os"
	"path/filepath"
)

// stateFolder lies in the part of the user's profile that stays on the machine.
func stateFolder() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "bmoe", "state"), nil
}
