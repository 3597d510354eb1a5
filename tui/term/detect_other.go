//go:build !windows

package term

import "strings"

// speaksUTF8 reads the locale as the C library does: the first of these that
// is set decides. None set is the C locale, which is ASCII.
func speaksUTF8(env map[string]string) bool {
	for _, k := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToLower(env[k]); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return false
}

func legacyConsole(map[string]string) bool { return false }
