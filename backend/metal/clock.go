//go:build (darwin || linux) && (amd64 || arm64)

package metal

import "time"

// at converts a GPUStartTime or GPUEndTime, in seconds, to the host's time. Of 0, which Metal returns for
// a command buffer that has not run, it returns the zero time.
func (c clock) at(seconds float64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return c.zero.Add(time.Duration(seconds * 1e9))
}
