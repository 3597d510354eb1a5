//go:build !darwin

package flashio

// directKind says what a handle that was opened for direct reads really does.
func directKind(Handle) (direct, hint bool, reason string) { return true, false, "" }
