package dispatches

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Verdict is what the runs of one or more dispatches have shown, apart from errors.
type Verdict struct {
	Dispatches int  // number of dispatches
	Elements   int  // number of results that were compared with the term
	Exact      int  // how many of these had to be equal to the bit
	survived   bool // the old value of a byte of an update was kept, or mattered
	updates    bool // the declaration has an update
}

// Add adds what other runs have shown.
func (v *Verdict) Add(o Verdict) {
	v.Dispatches, v.Elements, v.Exact = v.Dispatches+o.Dispatches, v.Elements+o.Elements, v.Exact+o.Exact
	v.survived, v.updates = v.survived || o.survived, v.updates || o.updates
}

// maxLoads is the max number of elements that the interpreter loads for one valuation. If that
// is too few to compute all results, a random sample of them is compared.
const maxLoads = 4000

// check runs a dispatch on a device, for `values` valuations of its params and no more than it has, the first among
// them, and compares the memories after it with the declaration. It returns an error for the first difference.
func check(dev backend.Device, x *dispatch, values int, seed uint64) (Verdict, error) {
	c, err := newChecker(x, dev.Info().Numerics, rand.New(rand.NewPCG(seed, 77)))
	if err != nil {
		return Verdict{}, err
	}
	c.rare = rand.New(rand.NewPCG(seed, 79))
	rig, err := backend.NewRig(context.Background(), dev, c.g)
	if err != nil {
		return c.v, err
	}
	defer rig.Close()
	others := int(seed % 7)
	for i := range min(values, len(x.params)) {
		params := x.params[0]
		if i > 0 {
			params = x.params[1+(others+i)%(len(x.params)-1)]
		}
		if err := c.valuation(rig, params); err != nil {
			return c.v, fmt.Errorf("params %v: %w", params, err)
		}
	}
	return c.v, nil
}

type checker struct {
	x *dispatch
	g *ir.Graph
	r *rand.Rand
	v Verdict

	numerics backend.Numerics

	rare *rand.Rand // decides whether there are NaNs or small numbers, so that other data do not depend on it

	params []uint32
	shapes [][]int64
	offs   []int64  // offsets of the arguments' views
	roles  [][]role // by memory and byte
	before [2][][]byte
	after  [2][][]byte
	odd    oddValues
	// scale, a power of two, is what all random floats are multiplied by.
	scale float32
}

// newChecker returns a checker of a dispatch, which gets its effects.
func newChecker(x *dispatch, n backend.Numerics, r *rand.Rand) (*checker, error) {
	effects, err := x.in.Effects()
	x.node.Effects = effects
	return &checker{x: x, g: x.graph, numerics: n, r: r, scale: 1}, err
}

// role is what the kernel may do with a byte, by the declaration.
type role uint8

const (
	isRead  role = 1 << iota
	isMust       // must-written
	isMay        // may be written; its old value may matter
	nothing role = 0
)

func (c *checker) valuation(rig *backend.Rig, params []uint32) error {
	c.at(params)
	c.odd, c.scale = noOdd, 1
	if often := c.r.IntN(3) == 0; exactTerm(c.x.in.Decl) {
		if often {
			c.odd = allOdd
		}
	} else {
		switch n := c.rare.IntN(64); n % 8 {
		case 0: // rarely, since NaNs spread and hide other mistakes
			c.odd = nans
		case 1, 2: // long sums of products are else so large that exp and tanh of them are 0, 1 or infinite
			c.scale = 1 / float32(int(2)<<(n/8))
			if decodes(c.x.in.Decl) { // of random bits, most of which are large
				c.scale *= c.scale * c.scale
			}
		}
	}
	c.mark()
	c.fill()
	for run := range 2 {
		if err := c.run(rig, run); err != nil {
			return err
		}
	}
	if err := c.bytes(); err != nil {
		return err
	}
	if err := c.values(); err != nil || !c.v.updates || c.v.survived {
		return err
	}
	return c.old(rig)
}

// at sets the values of the params, and the shapes and offsets for them.
func (c *checker) at(params []uint32) {
	c.params, c.shapes = params, c.x.in.Concrete(params)
	c.offs = c.offs[:0]
	for _, v := range c.x.in.Views {
		c.offs = append(c.offs, v.Off.Eval(params))
	}
}

func (c *checker) run(rig *backend.Rig, run int) error {
	for m, data := range c.before[run] {
		if err := rig.Put(context.Background(), ir.MemID(m), data); err != nil {
			return err
		}
	}
	if _, err := rig.Run(context.Background(), c.params...); err != nil {
		if _, ok := errors.AsType[runtime.Error](err); ok {
			return fmt.Errorf("%w: the kernel is given no bytes but those of its views, which hold what the declaration says that it touches: one of the two is wrong", err)
		}
		return err
	}
	if c.after[run] == nil {
		c.after[run] = make([][]byte, len(rig.Buffers))
	}
	for m := range rig.Buffers {
		var err error
		if c.after[run][m], err = rig.Get(context.Background(), ir.MemID(m), c.after[run][m]); err != nil {
			return err
		}
	}
	return nil
}

// old finds out whether old bytes of updates are kept or matter: it runs once more
// with other old bytes.
func (c *checker) old(rig *backend.Rig) error {
	for m, roles := range c.roles {
		for i, role := range roles {
			if role&isMay != 0 && role&isRead == 0 {
				c.before[1][m][i] = ^c.before[0][m][i]
			}
		}
	}
	if err := c.run(rig, 1); err != nil {
		return err
	}
	for m, roles := range c.roles {
		for i, role := range roles {
			if role&isMay != 0 && c.after[1][m][i] != c.after[0][m][i] {
				c.v.survived = true
			}
		}
	}
	return nil
}

// mark sets the role of every byte, by the effects at the params' values.
func (c *checker) mark() {
	if c.roles == nil {
		c.roles = make([][]role, len(c.g.Memories))
		for m := range c.roles {
			c.roles[m] = make([]role, c.g.Memories[m].Size)
			for run := range c.before {
				c.before[run] = append(c.before[run], make([]byte, c.g.Memories[m].Size))
			}
		}
	}
	for _, roles := range c.roles {
		clear(roles)
	}
	set := func(r ir.Region, what role) {
		r.Runs(c.params, func(lo, hi int64) bool {
			roles := c.roles[r.Mem][lo:hi]
			for b := range roles {
				roles[b] |= what
			}
			return true
		})
	}
	e := c.x.node.Effects
	for _, r := range e.Reads {
		set(r, isRead)
	}
	for _, w := range e.Writes {
		if w.Must {
			set(w.Region, isMust)
		} else {
			set(w.Region, isMay)
			c.v.updates = true
		}
	}
}

// fill makes the contents of memories before each of the two runs. Bytes that the kernel reads
// or updates are the same in both runs. All others differ in every bit, and in half of the
// cases floats made of them are NaNs.
func (c *checker) fill() {
	ones := c.r.IntN(2) == 0
	for m, data := range c.before[0] {
		if ones {
			for b := range data {
				data[b] = 0xff
			}
		} else {
			noise(data, c.r)
		}
		other := c.before[1][m][:len(data)]
		for b, v := range data {
			other[b] = ^v
		}
	}
	in := c.x.in
	for i := range in.Decl.Args {
		a := &in.Decl.Args[i]
		if a.Kind != ir.DeviceArg || a.Mode == decl.Unused || a.Mode == decl.Write || c.x.inline[i] {
			continue
		}
		v := in.Views[i]
		lo, n := v.Off.Eval(c.params), v.Len.Eval(c.params)
		raw := make([]byte, n)
		fillElements(raw, a.Elem, c.r, c.odd, c.scale)
		if a.Elem.Float() && strings.HasSuffix(a.Name, "mask") {
			takeOut(raw, a.Elem, c.r)
		}
		if c.numerics.FlushesDenormals {
			flushDenormals(raw, a.Elem)
		}
		roles, one, two := c.roles[v.Mem][lo:lo+n], c.before[0][v.Mem][lo:lo+n], c.before[1][v.Mem][lo:lo+n]
		for b, x := range raw {
			if roles[b]&(isRead|isMay) != 0 {
				one[b], two[b] = x, x
			}
		}
	}
}

// bytes checks that the two runs have changed every byte as its role says.
func (c *checker) bytes() error {
	for m := range c.roles {
		b0, b1, a0, a1 := c.before[0][m], c.before[1][m], c.after[0][m], c.after[1][m]
		for i, role := range c.roles[m] {
			name := func() string { return fmt.Sprintf("byte %d of %%%s%s", i, c.g.Memories[m].Name, c.owner(m, i)) }
			switch {
			case role&isMay != 0:
				if a0[i] != a1[i] {
					return fmt.Errorf("%s is %#x or %#x, depending on bytes that the declaration does not name", name(), a0[i], a1[i])
				}
			case role&isMust != 0 && a0[i] == b0[i] && a1[i] == b1[i] && role&isRead == 0:
				return fmt.Errorf("%s is not written, the declaration says it must be", name())
			case role&isMust != 0:
				if a0[i] != a1[i] {
					return fmt.Errorf("%s is %#x or %#x, depending on bytes that the declaration does not name", name(), a0[i], a1[i])
				}
			case a0[i] != b0[i] || a1[i] != b1[i]:
				return fmt.Errorf("%s changes from %#x to %#x, the declaration does not say that it is written", name(), b0[i], a0[i])
			}
		}
	}
	return nil
}

// SeedOf makes a seed from a name, so that a test's cases do not depend on other
// tests.
func SeedOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}

// owner returns the name of the argument whose view has a byte, for errors.
func (c *checker) owner(m, i int) string {
	for j := range c.x.in.Decl.Args {
		v := c.x.in.Views[j]
		a := &c.x.in.Decl.Args[j]
		if a.Kind == ir.DeviceArg && a.Mode != decl.Unused && !c.x.inline[j] && int(v.Mem) == m {
			if lo := v.Off.Eval(c.params); int64(i) >= lo && int64(i) < lo+v.Len.Eval(c.params) {
				return fmt.Sprintf(" (byte %d of %s)", int64(i)-lo, a.Name)
			}
		}
	}
	return ""
}

// exactTerm reports whether all results of the declaration are determined to the bit.
func exactTerm(d *decl.Decl) bool {
	exact := true
	look := func(e *term.Expr) { exact = exact && e.Op.Exact() }
	for _, w := range d.Wheres {
		w.Body.Walk(look)
	}
	for _, r := range d.Results {
		r.Body.Walk(look)
	}
	return exact
}

// decodes reports whether the declaration takes bits of integers for floats.
func decodes(d *decl.Decl) (does bool) {
	for _, w := range d.Wheres {
		w.Body.Walk(func(e *term.Expr) { does = does || e.Op.FromBits() })
	}
	return does
}

// values compares results with the term.
func (c *checker) values() error {
	in := c.x.in
	loads := 0
	var bits uint64 // the bits of the last element that was loaded
	interp := &term.Interp{Abbrevs: in.Decl.Abbrevs(), Flushes: c.numerics.FlushesDenormals, Load: func(arg int, index []int64) (v term.Value, err error) {
		loads++
		v, bits, err = c.load(c.before[0], arg, index)
		return v, err
	}}
	for i, s := range in.Decl.Symbols {
		v := in.Symbols[i]
		switch {
		case v.Param >= 0:
			x, _ := Element(binary.LittleEndian.AppendUint32(nil, c.params[v.Param]), ir.F32, 0)
			interp.Symbols = append(interp.Symbols, x)
		case s.Kind == term.Float:
			interp.Symbols = append(interp.Symbols, term.Value{F: float64(v.F)})
		default:
			n := v.Extent.Eval(c.params)
			interp.Symbols = append(interp.Symbols, term.Value{I: n, F: float64(n)})
		}
	}
	for _, r := range in.Decl.Results {
		a := &in.Decl.Args[r.Arg]
		total := int64(1)
		for _, n := range c.shapes[r.Arg] {
			total *= n
		}
		budget := loads + maxLoads/len(in.Decl.Results)
		for k := int64(0); k < total && (loads < budget || k < 3); k++ {
			index := unravel(c.pick(k, total), c.shapes[r.Arg])
			want, err := interp.Eval(r.Body, index)
			if err != nil {
				return fmt.Errorf("%s%v: term: %w", a.Name, index, err)
			}
			got, stored, err := c.load(c.after[0], r.Arg, index)
			if err != nil {
				return err
			}
			switch {
			case r.Body.Op == term.Load:
				if stored != bits {
					return fmt.Errorf("%s%v has the bits %#x, the term copies %#x", a.Name, index, stored, bits)
				}
			case a.Elem.Float():
				if !want.Allows(got.F) && !(c.numerics.FlushesDenormals && flushed(got.F, want.F)) {
					return fmt.Errorf("%s%v = %v, the term gives %v ± %v", a.Name, index, got.F, want.F, want.Err)
				}
				if canonical := term.NaNBits(a.Elem); math.IsNaN(got.F) && stored != canonical && !c.numerics.ManyNaNs {
					return fmt.Errorf("%s%v is the NaN %#x, a store leaves %#x", a.Name, index, stored, canonical)
				}
			case got.I != want.I:
				return fmt.Errorf("%s%v = %d, the term gives %d", a.Name, index, got.I, want.I)
			}
			c.v.Elements++
			if want.Err == 0 {
				c.v.Exact++
			}
		}
	}
	return nil
}

// pick returns the k-th element to compare. The first is the last element; then come all
// elements in some order if they are few enough, else random ones.
func (c *checker) pick(k, total int64) int64 {
	switch {
	case k == 0:
		return total - 1
	case total <= 4096:
		return (k*7919 + 13) % total // this stride has no factor in common with most sizes, so a few elements are spread over all
	}
	return c.r.Int64N(total)
}

func unravel(k int64, shape []int64) []int64 {
	index := make([]int64, len(shape))
	for j := len(shape) - 1; j >= 0; j-- {
		index[j] = k % shape[j]
		k /= shape[j]
	}
	return index
}

// load returns an element of an argument, by index, from the given contents of memories.
func (c *checker) load(memories [][]byte, arg int, index []int64) (term.Value, uint64, error) {
	in := c.x.in
	a := &in.Decl.Args[arg]
	at := int64(0)
	for j, k := range index {
		if k < 0 || k >= c.shapes[arg][j] {
			return term.Value{}, 0, fmt.Errorf("%s%v is outside its shape %v", a.Name, index, c.shapes[arg])
		}
		at += k * in.Strides[arg][j]
	}
	var raw []byte
	if c.x.inline[arg] {
		raw = c.x.node.Binding(a.Slot).Bytes
	} else {
		raw = memories[in.Views[arg].Mem][c.offs[arg]:]
	}
	v, bits := Element(raw, a.Elem, at)
	return v, bits, nil
}
