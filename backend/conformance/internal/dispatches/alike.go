package dispatches

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/msl/decl"
)

// Alike runs n random dispatches of a kernel whose declaration has no term on two devices, and compares
// every byte. Such kernels of our own library compute the same bits on every device; beside goldens, that
// is the only thing about their results that can be tested.
func Alike(dev, other backend.Device, d *decl.Decl, n int, name string) error {
	numerics := dev.Info().Numerics
	numerics.FlushesDenormals = numerics.FlushesDenormals || other.Info().Numerics.FlushesDenormals // both get the same bytes
	for i := range n {
		seed := SeedOf(fmt.Sprintf("%s %d", name, i))
		x, err := random(d, rand.New(rand.NewPCG(seed, 2)), false)
		if err != nil {
			return fmt.Errorf("case %d: %w", i, err)
		}
		var after [2][][]byte
		for k, on := range []backend.Device{dev, other} {
			if after[k], err = memoriesOf(on, x, seed, numerics); err != nil {
				return fmt.Errorf("case %d on %s: %w\n\t%v", i, on.Name(), err, x)
			}
		}
		for m := range after[0] {
			if !bytes.Equal(after[0][m], after[1][m]) {
				return fmt.Errorf("case %d: %%%s has other bytes on %s than on %s\n\t%v\n\t% x\n\t% x", i, x.graph.Memories[m%len(x.graph.Memories)].Name, dev.Name(), other.Name(), x, after[0][m], after[1][m])
			}
		}
	}
	return nil
}

// memoriesOf runs a dispatch for each valuation of its params and returns the memories after each run, in order.
func memoriesOf(dev backend.Device, x *dispatch, seed uint64, numerics backend.Numerics) ([][]byte, error) {
	c, err := newChecker(x, numerics, rand.New(rand.NewPCG(seed, 77)))
	if err != nil {
		return nil, err
	}
	rig, err := backend.NewRig(context.Background(), dev, c.g)
	if err != nil {
		return nil, err
	}
	defer rig.Close()
	var all [][]byte
	for _, params := range x.params {
		c.at(params)
		c.odd = allOdd
		c.mark()
		c.fill()
		if err := c.run(rig, 0); err != nil {
			return nil, err
		}
		for _, data := range c.after[0] {
			all = append(all, bytes.Clone(data))
		}
	}
	return all, nil
}
