//go:build linux && (amd64 || arm64)

package cuda

import "time"

// Kernels says where the code of a device's kernels came from until now, and what it took.
type Kernels struct {
	Prebuilt  int // compiled when this program was made
	Generated int // written from their terms
	Cached    int // compiled by clang before, and kept in the cache folder
	Compiled  int // compiled by clang now
	// Stale is how many had to be compiled because the prebuilt code was of another source; Why says it
	// of one.
	Stale int
	Why   string
	// Find is the time that it took to have their PTX, and JIT that in which the driver made code for the
	// GPU of it, or took that from its own cache (docs/kernels.md). Both are sums over the threads that worked
	// side by side.
	Find, JIT time.Duration
	// Slowest is the longest that the driver took for one.
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

// Kernels returns what is known of the kernels that were asked for.
func (d *Device) Kernels() Kernels {
	c := d.code.Counts()
	d.mu.Lock()
	defer d.mu.Unlock()
	return Kernels{
		Prebuilt: c.Prebuilt, Generated: c.Generated, Cached: c.Cached, Compiled: c.Compiled, Stale: c.Stale, Why: c.Why,
		Find: c.Time, JIT: d.jit.sum, Slowest: d.jit.slowest,
	}
}
