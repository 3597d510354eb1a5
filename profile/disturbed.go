package profile

import "strings"

// Disturbed says what else went on while a run was measured, so that its figures
// are not those of the run alone. What the host cannot tell is not measured.
type Disturbed struct {
	Drive     Maybe[bool] // others moved bytes on the drive
	CPU       Maybe[bool] // others kept our threads from running
	Throttled Maybe[bool] // the processor slowed itself down for its temperature
}

// Any reports whether anything is known to have disturbed the run.
func (d Disturbed) Any() bool { return d.Drive.Value || d.CPU.Value || d.Throttled.Value }

// Known reports whether the host could tell of anything.
func (d Disturbed) Known() bool { return d.Drive.OK || d.CPU.OK || d.Throttled.OK }

// String returns "disturbed: CPU", "disturbed: drive, CPU" and the like, empty
// for a run that nothing is known to have disturbed.
func (d Disturbed) String() string {
	var by []string
	for _, f := range []struct {
		by string
		is Maybe[bool]
	}{{"drive", d.Drive}, {"CPU", d.CPU}, {"CPU throttled", d.Throttled}} {
		if f.is.Value {
			by = append(by, f.by)
		}
	}
	if by == nil {
		return ""
	}
	return "disturbed: " + strings.Join(by, ", ")
}

// Or adds what another part of the run found: disturbed in any part is disturbed.
func (d Disturbed) Or(o Disturbed) Disturbed {
	or := func(a, b Maybe[bool]) Maybe[bool] { return Maybe[bool]{a.Value || b.Value, a.OK || b.OK} }
	return Disturbed{or(d.Drive, o.Drive), or(d.CPU, o.CPU), or(d.Throttled, o.Throttled)}
}

// The flags of a result that say what disturbed it.
const (
	flagDrive     = "contended"
	flagCPU       = "disturbed_cpu"
	flagThrottled = "throttled"
)

// Flags returns what disturbed the run as flags of a result.
func (d Disturbed) Flags() []string {
	var out []string
	for _, f := range []struct {
		flag string
		is   Maybe[bool]
	}{{flagDrive, d.Drive}, {flagCPU, d.CPU}, {flagThrottled, d.Throttled}} {
		if f.is.Value {
			out = append(out, f.flag)
		}
	}
	return out
}
