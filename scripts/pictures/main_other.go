//go:build !unix

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "pictures: this system has no pseudo terminals that it knows; run it on Linux or macOS")
	os.Exit(1)
}
