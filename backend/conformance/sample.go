package conformance

import (
	"context"
	"hash/crc64"
	"math"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/ir"
)

// Case is a dispatch of a kernel of the library, with values for its params and
// data, for a backend's own tests.
type Case struct {
	Function string
	Graph    *ir.Graph // a graph of this one command
	Params   []uint32
	// Before holds the bytes of every memory before the dispatch: data where the kernel
	// may read, anything elsewhere.
	Before [][]byte

	drawn *dispatches.Drawn
}

func (c *Case) String() string { return c.drawn.String() }

// Touched returns the number of bytes from the beginning of the view at a slot to the
// last byte that the kernel touches, and whether it writes the view. It is 0 if no
// view is bound there.
func (c *Case) Touched(slot int) (bytes int64, written bool) { return c.drawn.Touched(slot) }

// Intact returns an error for the first byte that has changed though the declaration
// does not say that the kernel writes it.
func (c *Case) Intact(after [][]byte) error { return c.drawn.Intact(after) }

// Run runs the dispatch and returns the contents of the memories after it.
func (c *Case) Run(dev backend.Device) (after [][]byte, err error) {
	return backend.Once(context.Background(), dev, c.Graph, c.Before, c.Params...)
}

// Sample calls f with the dispatches of witnesses, except large ones, and with n random dispatches of every family of
// kernels, which its instances share: for the functions that are chosen, and then with no more witnesses of each than
// [Run] runs, or for all if choose is nil.
func Sample(n int, seed uint64, choose Choice, f func(*Case) error) error {
	witnesses := math.MaxInt
	if choose != nil {
		witnesses = someWitnesses
	}
	return dispatches.Sample(n, witnesses, seed, Options{Choose: choose}.functions(), func(function string, d *dispatches.Drawn) error {
		return f(&Case{function, d.Graph, d.Params, d.Before, d})
	})
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// Fingerprint runs a sample with n dispatches of every family, of the functions that are chosen, and returns, by
// function, a hash of the contents of memories after them. Devices that promise
// the same bits, such as ones with different numbers of workers, have the same
// fingerprint.
func Fingerprint(dev backend.Device, n int, choose Choice) (map[string]uint64, error) {
	out := map[string]uint64{}
	err := Sample(n, 0, choose, func(c *Case) error {
		all, err := c.Run(dev)
		for _, after := range all {
			out[c.Function] = crc64.Update(out[c.Function], crcTable, after)
		}
		return err
	})
	return out, err
}
