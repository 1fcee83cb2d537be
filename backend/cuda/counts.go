//go:build linux && (amd64 || arm64)

package cuda

import "time"

// Kernels counts where the code of a device's kernels has come from so far, and what time that took.
type Kernels struct {
	Prebuilt  int // compiled when this program was made
	Generated int // emitted from their terms, without a compiler
	Cached    int // compiled by clang before, and kept in the cache folder
	Compiled  int // compiled by clang now
	// Stale is how many had to be compiled because their prebuilt code is of another state of the source; Why
	// explains one.
	Stale int
	Why   string
	// Find is the time to get their PTX, and JIT the driver's time to compile it for the GPU, or to find the result
	// in its own cache (docs/kernels.md). Both are sums over concurrent threads.
	Find, JIT time.Duration
	// Slowest is the longest that the driver took for one kernel.
	Slowest time.Duration
}

// jit is what the driver took for kernels.
type jit struct{ sum, slowest time.Duration }

// loaded notes how long the driver took for a kernel.
func (d *Device) loaded(took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.jit.sum += took
	d.jit.slowest = max(d.jit.slowest, took)
}

// Kernels returns the counts for all kernels that were asked for so far.
func (d *Device) Kernels() Kernels {
	c := d.code.Counts()
	d.mu.Lock()
	defer d.mu.Unlock()
	return Kernels{
		Prebuilt: c.Prebuilt, Generated: c.Generated, Cached: c.Cached, Compiled: c.Compiled, Stale: c.Stale, Why: c.Why,
		Find: c.Time, JIT: d.jit.sum, Slowest: d.jit.slowest,
	}
}
