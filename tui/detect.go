package tui

import "strings"

// terminal is what the environment says of the terminal.
type terminal struct {
	dumb    bool // cannot move the cursor
	ascii   bool // frames and bars in ASCII
	notUTF8 bool // text in ASCII as well
	noColor bool
}

// detect reads the environment. NO_COLOR counts with any value that is not
// empty (no-color.org); the library's own check takes only booleans.
func detect(environ []string) terminal {
	env := map[string]string{}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	t := terminal{
		dumb:    env["TERM"] == "dumb",
		notUTF8: !speaksUTF8(env),
		noColor: env["NO_COLOR"] != "",
	}
	t.ascii = t.notUTF8 || t.dumb || env["TERM"] == "linux" || legacyConsole(env)
	return t
}
