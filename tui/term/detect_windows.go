package term

// speaksUTF8 is true: the console is written to in UTF-16 by the runtime.
func speaksUTF8(map[string]string) bool { return true }

// legacyConsole reports the console host of old, whose fonts lack the finer
// characters. Windows Terminal and the terminals of editors say who they are.
func legacyConsole(env map[string]string) bool {
	for _, k := range []string{"WT_SESSION", "TERM_PROGRAM", "TERM", "ConEmuANSI", "ALACRITTY_WINDOW_ID"} {
		if env[k] != "" {
			return false
		}
	}
	return true
}
