package term

import "strings"

// Caps is what the environment says of the terminal.
type Caps struct {
	Dumb    bool // cannot move the cursor
	ASCII   bool // frames and bars in ASCII
	NotUTF8 bool // text in ASCII as well
	NoColor bool
}

// Detect reads the environment. NO_COLOR counts with any value that is not
// empty (no-color.org); the library's own check takes only booleans.
func Detect(environ []string) Caps {
	env := map[string]string{}
	for _, kv := range environ {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	t := Caps{
		Dumb:    env["TERM"] == "dumb",
		NotUTF8: !speaksUTF8(env),
		NoColor: env["NO_COLOR"] != "",
	}
	t.ASCII = t.NotUTF8 || t.Dumb || env["TERM"] == "linux" || legacyConsole(env)
	return t
}
