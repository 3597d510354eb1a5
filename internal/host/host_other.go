//go:build !linux && !windows && !darwin

package host

import "errors"

// On other systems nothing is known, and everything says so.

type processSource struct{}

func (*processSource) open()            {}
func (*processSource) close() error     { return nil }
func (*processSource) counters(*Sample) {}
func (*processSource) memory(*Sample)   {}

func readMemory() Memory { return Memory{} }

func physicalCores() (int, bool) { return 0, false }

type driveSource struct{ name string }

func (*driveSource) open(string) error {
	return errors.New("this system keeps no counters of its drives that bmoe can read")
}
func (*driveSource) close() error        { return nil }
func (*driveSource) sample(*DriveSample) {}
