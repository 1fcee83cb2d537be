//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	driver "github.com/mlxc/mlxc/internal/cuda"
)

// do does something new on the GPU, on a thread on which its context is current. If the context was lost, which
// an address outside or a kernel that ended with an error brings about, it does nothing and says what that
// was: the driver itself says the same of every call from then on, but not whose fault it is.
func (d *Device) do(f func() error) error {
	if err := d.Lost(); err != nil {
		return err
	}
	return d.note("", d.gpu.Do(f))
}

// note keeps the first error by which the context is lost, and which work it came of.
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

// Lost says by what the GPU's context was lost, for good as far as this process is concerned; nil: it was not.
func (d *Device) Lost() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lost == nil {
		return nil
	}
	return fmt.Errorf("the context of the GPU was lost before, and the program has to be started again: %w", d.lost)
}
