//go:build (darwin || linux) && (amd64 || arm64)

package metal

import "time"

// at is the host's time of a time of the GPU, in seconds; the zero time of 0, which Metal says of
// what has not run.
func (c clock) at(seconds float64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return c.zero.Add(time.Duration(seconds * 1e9))
}
