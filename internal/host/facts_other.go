//go:build !linux && !windows && !darwin

package host

import "runtime"

func (f *Facts) read() { f.System = runtime.GOOS }

func (*FileFacts) read(string) {}
