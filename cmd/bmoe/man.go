package main

import (
	"fmt"
	"strings"

	"bmoe/engine/demo"
	"bmoe/internal/cli"
	"bmoe/internal/crash"
	"bmoe/internal/userdir"
)

// roff protects a text from the formatter: a backslash begins a request within
// a line, a full stop or an apostrophe one at its start, and a hyphen that is to
// be copied into a shell is not the typographer's.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// manPage is the manual page, with the flags in the words of --help.
func manPage(sections []section) string {
	var b strings.Builder
	heading := func(s string) { fmt.Fprintf(&b, ".SH %s\n", strings.ToUpper(s)) }
	b.WriteString(".TH BMOE 1\n")
	heading("name")
	b.WriteString(`bmoe \- ` + roff(purpose) + "\n")
	heading("synopsis")
	for i, l := range usageLines {
		if i > 0 {
			b.WriteString(".br\n")
		}
		b.WriteString(roff(l[0]) + "\n")
	}
	heading("description")
	for _, l := range usageLines {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(l[0]), roff(l[1]))
	}
	b.WriteString(".PP\n" + roff(withoutModel) + "\n")
	heading("options")
	b.WriteString(roff("A switch is turned off with an equals sign: --overlap=false.") + "\n")
	for _, s := range sections {
		fmt.Fprintf(&b, ".SS %s\n", roff(s.title))
		for _, r := range s.rows() {
			name := roff(r.long)
			if r.short != "" {
				name = roff(r.short) + ", " + name
			}
			help := r.help
			if r.standard != "" {
				help += " (default " + r.standard + ")"
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", name, roff(help))
		}
	}
	heading("exit status")
	b.WriteString(roff(cli.ExitCodes) + "\n")
	heading("environment")
	for _, v := range environment {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(v[0]), roff(v[1]))
	}
	return b.String()
}

// environment is the variables that the program looks at.
var environment = [][2]string{
	{demo.DirVariable, "is the folder of the demo model"},
	{keyVariable, "is the key that goes to the server of --connect, and no variable beside it does"},
	{"NO_COLOR", "turns colours off"},
	{crash.DebugVariable + "=1", "shows the stack if the program fails within itself"},
	{userdir.StateVariable, "is the folder of sessions and of the reports of such failures"},
}
