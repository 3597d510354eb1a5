//go:build !noasm

#include "textflag.h"

// func pause()
// ISB waits for some tens of cycles; YIELD is a no-op on most cores.
TEXT ·pause(SB), NOSPLIT, $0-0
	ISB	$15
	ISB	$15
	RET
