package host

import (
	"os"
	"path/filepath"
	"strings"
)

// thermalSource knows the files to read, in thousandths of a degree.
type thermalSource struct{ sensors []thermalSensor }

type thermalSensor struct{ name, path string }

func (s *thermalSource) open() { s.openBelow("/") }

// openBelow lists the thermal zones, and the processor's own sensors: many AMD
// laptops show the processor only among the hardware monitors.
func (s *thermalSource) openBelow(fsRoot string) {
	s.add(filepath.Join(fsRoot, "sys/class/thermal/thermal_zone*"), "type", "temp", func(string) bool { return true })
	s.add(filepath.Join(fsRoot, "sys/class/hwmon/hwmon*"), "name", "temp1_input", func(name string) bool {
		return name == "coretemp" || name == "k10temp" || name == "zenpower"
	})
}

func (s *thermalSource) add(pattern, nameFile, valueFile string, wanted func(name string) bool) {
	folders, _ := filepath.Glob(pattern) // the only error is a malformed pattern
	for _, folder := range folders {
		name, err := os.ReadFile(filepath.Join(folder, nameFile))
		if err != nil || !wanted(strings.TrimSpace(string(name))) {
			continue
		}
		s.sensors = append(s.sensors, thermalSensor{strings.TrimSpace(string(name)), filepath.Join(folder, valueFile)})
	}
}

func (s *thermalSource) read() (celsius float64, sensor string, ok bool) {
	for _, at := range s.sensors {
		milli, readable := readNumber(at.path)
		if !readable || milli <= 0 || milli > 150_000 {
			continue // a zone that is switched off reports zero or nonsense
		}
		if c := float64(milli) / 1000; !ok || c > celsius {
			celsius, sensor, ok = c, at.name, true
		}
	}
	return celsius, sensor, ok
}
