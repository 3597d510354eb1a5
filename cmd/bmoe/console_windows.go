package main

import (
	"bufio"
	"fmt"
	"os"
	"unsafe"

	"bmoe/internal/tty"

	"golang.org/x/sys/windows"
)

var getConsoleProcessList = windows.NewLazySystemDLL("kernel32.dll").NewProc("GetConsoleProcessList")

// holdConsole waits for Enter where the console was opened for this program
// alone, by a double click: it would close before anybody has read why the
// program ended.
func holdConsole() {
	if !tty.Is(os.Stdin) || getConsoleProcessList.Find() != nil {
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
