package flashio

import "golang.org/x/sys/unix"

// mapNoReserve keeps reserved address space out of the commit accounting.
const mapNoReserve = unix.MAP_NORESERVE
