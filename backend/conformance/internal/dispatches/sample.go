package dispatches

import (
	"fmt"
	"math/rand/v2"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// Drawn is a dispatch with values for its params, and data, which nothing has judged.
type Drawn struct {
	Graph  *ir.Graph // of this one command
	Params []uint32
	Before [][]byte // by memory: its bytes before the dispatch

	c *checker
}

func (d *Drawn) String() string { return fmt.Sprintf("%v, params %v", d.c.x, d.Params) }

// Touched returns the number of bytes from the beginning of the view at a slot to the
// last byte that the kernel touches, and whether it writes the view. It is 0 if no
// view is bound there.
func (d *Drawn) Touched(slot int) (bytes int64, written bool) {
	in := d.c.x.in
	for i := range in.Decl.Args {
		a := &in.Decl.Args[i]
		if int(a.Slot) != slot || a.Kind != ir.DeviceArg || a.Mode == decl.Unused || d.c.x.inline[i] {
			continue
		}
		if r, err := in.Region(i); err == nil {
			r.Runs(d.Params, func(_, hi int64) bool {
				bytes = max(bytes, hi-d.c.offs[i])
				return true
			})
		}
		return bytes, a.Mode != decl.Read
	}
	return 0, false
}

// Intact returns an error for the first byte that has changed though the declaration
// does not say that the kernel writes it.
func (d *Drawn) Intact(after [][]byte) error {
	for m, roles := range d.c.roles {
		for i, role := range roles {
			if role&(isMust|isMay) == 0 && after[m][i] != d.Before[m][i] {
				return fmt.Errorf("byte %d of %%%s%s changes, the declaration does not say that it is written", i, d.Graph.Memories[m].Name, d.c.owner(m, i))
			}
		}
	}
	return nil
}

// Sample draws the dispatches of `some` witnesses of each function, except large ones, and n random dispatches of every
// family, which its instances share, for the given functions.
func Sample(n, some int, seed uint64, functions []string, f func(function string, d *Drawn) error) error {
	instances := Families(functions)
	turn := map[string]int{}
	for _, function := range functions {
		if err := eachWitness(function, some, 0, func(x *dispatch) error { return drawn(function, x, seed, f) }); err != nil {
			return err
		}
		for k, d := range msl.Declarations(function) {
			name := d.Family()
			turn[name]++
			// This instance's share of the n, so that all of them have n together.
			share := n*turn[name]/instances[name] - n*(turn[name]-1)/instances[name]
			for i := range share {
				seed := SeedOf(fmt.Sprintf("%s %d %d %d", function, k, i, seed))
				x, err := random(d, rand.New(rand.NewPCG(seed, 1)), false)
				if err != nil {
					return err
				}
				if err := drawn(function, x, seed, f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func drawn(function string, x *dispatch, seed uint64, f func(function string, d *Drawn) error) error {
	c, err := newChecker(x, backend.Numerics{}, rand.New(rand.NewPCG(seed, 78)))
	if err != nil {
		return err
	}
	c.at(x.params[c.r.IntN(len(x.params))])
	if c.r.IntN(3) == 0 {
		c.odd = allOdd
	}
	c.mark()
	c.fill()
	d := &Drawn{x.graph, c.params, c.before[0], c}
	if err := f(function, d); err != nil {
		return fmt.Errorf("%s: %w\n\t%v", function, err, d)
	}
	return nil
}
