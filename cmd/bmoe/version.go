package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"bmoe/engine/kernel/isa"
)

// version is the program's own.
const version = "0.1.0"

// versionText is what --version prints.
func versionText() string {
	rev := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && len(s.Value) >= 12 {
				rev = " " + s.Value[:12]
			}
		}
	}
	return fmt.Sprintf("bmoe %s%s (%s %s/%s %s)", version, rev, runtime.Version(), runtime.GOOS, runtime.GOARCH, isa.Best().String())
}
