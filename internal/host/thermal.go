package host

// Thermal reads the machine's temperature sensors.
type Thermal struct{ source thermalSource }

// OpenThermal finds the sensors. On a host that shows none, Read answers false.
func OpenThermal() *Thermal {
	t := &Thermal{}
	t.source.open()
	return t
}

// Read returns the hottest sensor's temperature in degrees Celsius and its name,
// or false if no sensor answers.
func (t *Thermal) Read() (celsius float64, sensor string, ok bool) { return t.source.read() }
