//go:build unix

package main

// holdConsole does nothing: a terminal stays when its program ends.
func holdConsole() {}
