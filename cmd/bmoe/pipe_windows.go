package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// ignoreBrokenPipe has nothing to do: there is no such signal.
func ignoreBrokenPipe() {}

// isClosedPipe reports whether a write failed because the reader has gone.
func isClosedPipe(err error) bool {
	return errors.Is(err, windows.ERROR_BROKEN_PIPE) || errors.Is(err, windows.ERROR_NO_DATA)
}

var getConsoleProcessList = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetConsoleProcessList")

// holdConsole waits for Enter where the console was opened for this program
// alone, by a double click: it would close before anybody has read why the
// program ended.
func holdConsole() {
	if !isTerminal(os.Stdin) || getConsoleProcessList.Find() != nil {
		return
	}
	var ids [2]uint32
	n, _, _ := getConsoleProcessList.Call(uintptr(unsafe.Pointer(&ids[0])), uintptr(len(ids)))
	if n != 1 {
		return
	}
	fmt.Fprint(os.Stderr, "\nPress Enter to close this window. ")
	bufio.NewReader(os.Stdin).ReadString('\n') // whatever it is
}
