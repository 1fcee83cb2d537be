//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	driver "github.com/mlxc/mlxc/internal/cuda"
)

// do calls f on a thread on which the GPU's context is current. If the context was lost, by an illegal address or a
// kernel that failed, it does not call f and returns the error by which it was lost: the driver fails every later
// call with the same code, but does not say which work was the cause.
func (d *Device) do(f func() error) error {
	if err := d.Lost(); err != nil {
		return err
	}
	return d.note("", d.gpu.Do(f))
}

// note remembers the first error that loses the context, and the work that caused it.
func (d *Device) note(work string, err error) error {
	if !driver.Sticky(err) {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		d.lost = err
		if work != "" {
			d.lost = fmt.Errorf("%s: %w", work, err)
		}
	}
	return err
}

// Lost returns the error by which the GPU's context was lost, for the rest of this process; nil: it was not.
func (d *Device) Lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		return nil
	}
	return fmt.Errorf("the context of the GPU was lost before, and the program has to be started again: %w", d.lost)
}
