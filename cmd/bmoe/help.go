package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"bmoe/internal/cli"
)

// usageLines are the ways to call the program.
var usageLines = [][2]string{
	{"bmoe [flags] [MODEL.gguf]", "the screen"},
	{"bmoe -p TEXT [flags] [MODEL.gguf]", "one answer; the same when the prompt is piped in or the output away"},
}

// What the help and the manual page have in common.
const (
	purpose      = "chat with mixture-of-experts models bigger than memory, and see where every token's time goes"
	withoutModel = "Without a model the demo model is used."
)

// usage is the text of --help.
func usage() string {
	var b strings.Builder
	b.WriteString(strings.ToUpper(purpose[:1]) + purpose[1:] + ".\n\n")
	for _, l := range usageLines {
		fmt.Fprintf(&b, "  %-34s %s\n", l[0], l[1])
	}
	b.WriteString("\n" + withoutModel + "\n")
	const column, width = 34, 110
	for _, s := range newOptions().sections() {
		b.WriteString("\n" + s.title + "\n")
		for _, r := range s.rows() {
			left := "      " + r.long
			if r.short != "" {
				left = "  " + r.short + ", " + r.long
			}
			help := r.help
			if r.standard != "" {
				help += " (default " + r.standard + ")"
			}
			lines := wrap(help, width-column)
			if len(left) > column-2 {
				b.WriteString(left + "\n")
				left = ""
			}
			for _, l := range lines {
				fmt.Fprintf(&b, "%-*s%s\n", column, left, l)
				left = ""
			}
		}
	}
	b.WriteString("\nExit codes: " + cli.ExitCodes + "\nEnvironment:\n")
	for _, v := range environment {
		fmt.Fprintf(&b, "  %s %s\n", v[0], v[1])
	}
	return b.String()
}

// row is a flag as the help and the manual show it.
type row struct {
	short, long    string // with what the value is called
	help, standard string
}

func (s *section) rows() []row {
	var out []row
	s.VisitAll(func(f *pflag.Flag) {
		r := row{long: "--" + f.Name, help: f.Usage, standard: f.DefValue}
		if f.Shorthand != "" {
			r.short = "-" + f.Shorthand
		}
		switch f.Value.Type() {
		case "bool":
			switch f.DefValue {
			case "true":
				r.standard = "on; --" + f.Name + "=false turns it off"
			default:
				r.standard = ""
			}
		default:
			r.long += " " + f.Value.Type()
		}
		out = append(out, r)
	})
	return out
}

// wrap breaks a text into lines of at most n characters.
func wrap(text string, n int) []string {
	var out []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > n {
			out = append(out, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(out, line)
}
