package conformance

import (
	"errors"
	"fmt"
	"hash/crc64"
	"math/rand/v2"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
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

	c *checker
}

func (c *Case) String() string { return fmt.Sprintf("%v, params %v", c.c.x, c.Params) }

// Touched returns the number of bytes from the beginning of the view at a slot to the
// last byte that the kernel touches, and whether it writes the view. It is 0 if no
// view is bound there.
func (c *Case) Touched(slot int) (bytes int64, written bool) {
	in := c.c.x.in
	for i := range in.Decl.Args {
		a := &in.Decl.Args[i]
		if int(a.Slot) != slot || a.Kind != ir.DeviceArg || a.Mode == decl.Unused || c.c.x.inline[i] {
			continue
		}
		if r, err := in.Region(i); err == nil {
			r.Runs(c.Params, func(_, hi int64) bool {
				bytes = max(bytes, hi-c.c.offs[i])
				return true
			})
		}
		return bytes, a.Mode != decl.Read
	}
	return 0, false
}

// Intact returns an error for the first byte that has changed though the declaration
// does not say that the kernel writes it.
func (c *Case) Intact(after [][]byte) error {
	for m, roles := range c.c.roles {
		for i, role := range roles {
			if role&(isMust|isMay) == 0 && after[m][i] != c.Before[m][i] {
				return fmt.Errorf("byte %d of %%%s%s changes, the declaration does not say that it is written", i, c.Graph.Memories[m].Name, c.c.owner(m, i))
			}
		}
	}
	return nil
}

// Run runs the dispatch and returns the contents of the memories after it.
func (c *Case) Run(dev backend.Device) (after [][]byte, err error) {
	rig, err := newRig(dev, c.Graph)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rig.close()) }()
	for m, data := range c.Before {
		if err := rig.put(m, data); err != nil {
			return nil, err
		}
	}
	if err := rig.run(c.Params); err != nil {
		return nil, err
	}
	for m := range c.Before {
		data, err := rig.get(nil, m)
		if err != nil {
			return nil, err
		}
		after = append(after, data)
	}
	return after, nil
}

// Sample calls f with the dispatches of witnesses, except large ones, and with n random
// dispatches of every family of kernels, which its instances share: for the functions that are
// chosen, or for all if choose is nil.
func Sample(n int, seed uint64, choose Choice, f func(*Case) error) error {
	functions := Options{Choose: choose}.functions()
	instances := families(functions)
	turn := map[string]int{}
	for _, function := range functions {
		if err := eachWitness(function, func(x *dispatch) error { return sampled(function, x, seed, f) }); err != nil {
			return err
		}
		for k, d := range msl.Declarations(function) {
			name := d.Family()
			turn[name]++
			// This instance's share of the n, so that all of them have n together.
			share := n*turn[name]/instances[name] - n*(turn[name]-1)/instances[name]
			for i := range share {
				seed := seedOf(fmt.Sprintf("%s %d %d %d", function, k, i, seed))
				x, err := random(d, rand.New(rand.NewPCG(seed, 1)))
				if err != nil {
					return err
				}
				if err := sampled(function, x, seed, f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func sampled(function string, x *dispatch, seed uint64, f func(*Case) error) error {
	effects, err := x.in.Effects()
	if err != nil {
		return err
	}
	x.node.Effects = effects
	c := &checker{x: x, g: x.graph, r: rand.New(rand.NewPCG(seed, 78))}
	c.at(x.params[c.r.IntN(len(x.params))])
	if c.r.IntN(3) == 0 {
		c.odd = allOdd
	}
	c.mark()
	c.fill()
	one := &Case{function, x.graph, c.params, c.before[0], c}
	if err := f(one); err != nil {
		return fmt.Errorf("%s: %w\n\t%v", function, err, one)
	}
	return nil
}

var crcTable = crc64.MakeTable(crc64.ECMA)

// Fingerprint runs a sample with n dispatches of every family and returns, by
// function, a hash of the contents of memories after them. Devices that promise
// the same bits, such as ones with different numbers of workers, have the same
// fingerprint.
func Fingerprint(dev backend.Device, n int) (map[string]uint64, error) {
	out := map[string]uint64{}
	err := Sample(n, 0, nil, func(c *Case) error {
		all, err := c.Run(dev)
		for _, after := range all {
			out[c.Function] = crc64.Update(out[c.Function], crcTable, after)
		}
		return err
	})
	return out, err
}
