package clock

import (
	"math/bits"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

var (
	kernel32    = windows.NewLazySystemDLL("kernel32.dll")
	procCounter = kernel32.NewProc("QueryPerformanceCounter")

	frequency = queryFrequency()
	base      = counter()
)

// queryFrequency returns the counter's ticks per second, fixed at boot.
func queryFrequency() uint64 {
	var f int64
	// Documented never to fail on Windows XP or later.
	kernel32.NewProc("QueryPerformanceFrequency").Call(uintptr(unsafe.Pointer(&f)))
	if f <= 0 {
		panic("clock: the system has no performance counter")
	}
	return uint64(f)
}

func counter() int64 {
	// SyscallN and not LazyProc.Call, which would move c and the argument list
	// to the heap: Now must not allocate.
	var c int64
	syscall.SyscallN(procCounter.Addr(), uintptr(unsafe.Pointer(&c)))
	return c
}

func now() int64 {
	// ticks * 1e9 overflows 64 bits after about 15 minutes at 10 MHz, so the
	// product is taken in 128 bits.
	hi, lo := bits.Mul64(uint64(counter()-base), 1e9)
	ns, _ := bits.Div64(hi, lo, frequency)
	return int64(ns)
}
