package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// shells are those that --completion writes a script for.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// completed is a flag as a completion knows it.
type completed struct {
	long, short, help string
	words             []string // the values to choose from
	file              bool     // the value is a file
	value             bool     // takes one behind a space
}

func completedFlags(sections []section) []completed {
	var out []completed
	for _, s := range sections {
		s.VisitAll(func(f *pflag.Flag) {
			kind := f.Value.Type()
			c := completed{long: f.Name, short: f.Shorthand, help: f.Usage, value: f.NoOptDefVal == ""}
			switch {
			case kind == "PATH" || kind == "FILE" || kind == "DIR":
				c.file = true
			default:
				if v, ok := f.Value.(interface{ choices() []string }); ok {
					c.words = v.choices()
				}
			}
			out = append(out, c)
		})
	}
	return out
}

// completion is the script that completes the flags in a shell.
func completion(shell string, sections []section) string {
	flags := completedFlags(sections)
	switch shell {
	case "bash":
		return bashCompletion(flags)
	case "zsh":
		return zshCompletion(flags)
	case "fish":
		return fishCompletion(flags)
	}
	return powershellCompletion(flags)
}

// names are a flag's spellings.
func (c *completed) names() []string {
	if c.short == "" {
		return []string{"--" + c.long}
	}
	return []string{"--" + c.long, "-" + c.short}
}

func bashCompletion(flags []completed) string {
	var b strings.Builder
	var all, alone []string
	b.WriteString("# bash completion of bmoe: source it, or put it into bash-completion's folder.\n_bmoe() {\n" +
		"  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n  case $prev in\n")
	for _, c := range flags {
		all = append(all, c.names()...)
		switch {
		case len(c.words) > 0:
			fmt.Fprintf(&b, "  %s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", strings.Join(c.names(), "|"), strings.Join(c.words, " "))
		case c.value && !c.file:
			alone = append(alone, c.names()...)
		}
	}
	fmt.Fprintf(&b, "  %s) return ;;\n  esac\n", strings.Join(alone, "|"))
	fmt.Fprintf(&b, "  case $cur in\n  -*) COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n  *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n  esac\n}\n", strings.Join(all, " "))
	b.WriteString("complete -o filenames -F _bmoe bmoe\n")
	return b.String()
}

func zshCompletion(flags []completed) string {
	// In a specification brackets and colons separate, and quotes are the shell's.
	quote := strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`, "'", `'\''`).Replace
	var b strings.Builder
	b.WriteString("#compdef bmoe\n_arguments -s -S \\\n")
	for _, c := range flags {
		for _, name := range c.names() {
			takes := ""
			switch {
			case len(c.words) > 0:
				takes = ":value:(" + strings.Join(c.words, " ") + ")"
			case c.file:
				takes = ":file:_files"
			case c.value:
				takes = ":value:"
			}
			eq := ""
			if c.value && strings.HasPrefix(name, "--") {
				eq = "="
			}
			fmt.Fprintf(&b, "  '%s%s[%s]%s' \\\n", name, eq, quote(c.help), takes)
		}
	}
	b.WriteString("  '1:model:_files -g \"*.gguf\"'\n")
	return b.String()
}

func fishCompletion(flags []completed) string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace
	var b strings.Builder
	b.WriteString("# fish completion of bmoe\n")
	for _, c := range flags {
		b.WriteString("complete -c bmoe -l " + c.long)
		if c.short != "" {
			b.WriteString(" -s " + c.short)
		}
		switch {
		case len(c.words) > 0:
			b.WriteString(" -x -a '" + strings.Join(c.words, " ") + "'")
		case c.file:
			b.WriteString(" -r -F")
		case c.value:
			b.WriteString(" -x")
		}
		fmt.Fprintf(&b, " -d '%s'\n", quote(c.help))
	}
	return b.String()
}

func powershellCompletion(flags []completed) string {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	var b strings.Builder
	b.WriteString("# PowerShell completion of bmoe: add it to $PROFILE.\n" +
		"Register-ArgumentCompleter -Native -CommandName bmoe -ScriptBlock {\n" +
		"  param($word, $ast, $cursor)\n  $values = @{\n")
	for _, c := range flags {
		if len(c.words) > 0 {
			var quoted []string
			for _, w := range c.words {
				quoted = append(quoted, quote(w))
			}
			for _, name := range c.names() {
				fmt.Fprintf(&b, "    %s = @(%s)\n", quote(name), strings.Join(quoted, ", "))
			}
		}
	}
	b.WriteString("  }\n  $flags = [ordered]@{\n")
	for _, c := range flags {
		fmt.Fprintf(&b, "    %s = %s\n", quote("--"+c.long), quote(c.help))
	}
	b.WriteString(`  }
  $before = @($ast.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { "$_" })
  $choices = $values[$before[-1]]
  if ($choices) {
    $choices | Where-Object { $_ -like "$word*" } | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }
  } elseif ($word -like '-*') {
    $flags.Keys | Where-Object { $_ -like "$word*" } | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterName', $flags[$_]) }
  }
}
`)
	return b.String()
}
