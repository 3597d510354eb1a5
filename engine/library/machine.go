package library

import (
	"context"
	"fmt"

	"bmoe/internal/host"
	"bmoe/internal/units"
	"bmoe/profile"
)

// Machine is what this machine gives, for estimates.
type Machine struct {
	Memory     int64   // bytes that could be taken now; 0: not known
	Total      int64   // bytes of physical memory; 0: not known
	MemoryRate float64 // bytes a second
	drives     map[string]profile.Maybe[float64]
}

// mostDrives bounds how many drives are measured: the probes together last about a
// second.
const mostDrives = 2

// Measure probes memory, and the drives that the models lie on by the largest of each.
func Measure(ctx context.Context, models []Model) (*Machine, error) {
	m := &Machine{drives: map[string]profile.Maybe[float64]{}}
	if mem := host.ReadMemory(); mem.Has.All(host.HasAvailable | host.HasTotal) {
		m.Memory, m.Total = mem.Available, mem.Total
	}
	var err error
	if m.MemoryRate, err = ProbeMemory(ctx); err != nil {
		return nil, err
	}
	largest := map[string]*Model{}
	for i := range models {
		if m := &models[i]; m.Problem == "" && m.Size > 0 {
			if d := drive(m.Path); largest[d] == nil || m.Size > largest[d].Size {
				largest[d] = m
			}
		}
	}
	for d, model := range largest {
		if len(m.drives) == mostDrives {
			break
		}
		rate, err := ProbeDrive(ctx, model)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		m.drives[d] = profile.Maybe[float64]{Value: rate, OK: err == nil} // a drive that cannot be measured has no figure
	}
	return m, nil
}

// drive names the drive of a file; all that the system does not know are one.
func drive(path string) string {
	d, err := host.OpenDrive(path)
	if err != nil {
		return ""
	}
	defer d.Close() // opened for its name
	return d.Name()
}

// DriveRate is what the drive of a model gives, in bytes a second.
func (m *Machine) DriveRate(of *Model) profile.Maybe[float64] { return m.drives[drive(of.Path)] }

// Speed estimates how fast a model is here.
func (m *Machine) Speed(of *Model) (Speed, bool) {
	if m.Memory == 0 {
		return Speed{}, false
	}
	return of.Speed(Rates{m.MemoryRate, m.DriveRate(of)}, m.Memory)
}

// Words says how fast a model is here, or why that cannot be said.
func (m *Machine) Words(of *Model) string {
	if of.Problem != "" {
		return "cannot be run"
	}
	if s, ok := m.Speed(of); ok {
		return s.String()
	}
	return units.NotMeasured
}

// String says what was measured.
func (m *Machine) String() string {
	text := fmt.Sprintf("memory is read at %s GB/s", units.Sig(m.MemoryRate/units.GB))
	if m.Memory > 0 {
		text = fmt.Sprintf("%s of %s of memory are free; %s", units.Size(m.Memory), units.Size(m.Total), text)
	}
	for _, rate := range m.drives {
		text += "; a drive gives " + rate.Text(units.MiBPerSecond, "")
	}
	return text
}

// Needs says what a token needs of a model.
func (m *Model) Needs() string {
	switch {
	case m.Problem != "":
		return "-"
	case !m.MoE():
		return fmt.Sprintf("%s, all of it: not MoE", units.Size(m.Active()))
	}
	return fmt.Sprintf("%s, %d of %d experts", units.Size(m.Active()), m.Used, m.Experts)
}
