//go:build !unix

package main

// programMain is the program in a process of its own.
func programMain() { main() }
