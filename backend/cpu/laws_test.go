package cpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	testsample "github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// These are laws of kernels that the conformance suite cannot test, because it sees only a device. They are tested on
// the dispatches that the suite makes of every kernel, each with one of the implementations of package simd.

// dispatched is a dispatch of the conformance suite, as its kernel sees it.
type dispatched struct {
	*conformance.Case
	k *Kernel
	s step
	m machine
	r *rand.Rand // for random choices
}

// forEachDispatch calls f with n dispatches of each family of kernels, drawn at random.
func forEachDispatch(t *testing.T, n int, f func(x *dispatched) error) {
	t.Helper()
	defer simd.Use(simd.Active())
	total := 0
	require.NoError(t, conformance.Sample(n, *seed, testsample.Choose(t, t.Name()), func(c *conformance.Case) error {
		total++
		x := &dispatched{Case: c, r: rand.New(rand.NewPCG(uint64(total), *seed))}
		impl := simd.Available()[x.r.IntN(len(simd.Available()))]
		if _, err := simd.Use(impl); err != nil {
			return err
		}
		ks := kernels{graph: c.Graph}
		scalars := 0
		var err error
		if x.s, err = ks.step(c.Graph.Nodes[0].(ir.Command), &scalars); err != nil {
			return err
		}
		x.m.params, x.m.scalars = c.Params, make([]byte, scalars)
		x.k = x.s.kernel
		if slices.Contains(x.call(c.Before).Threads[:], 0) {
			return nil // the device itself runs nothing
		}
		if err := f(x); err != nil {
			return fmt.Errorf("%s: %w", impl, err)
		}
		return nil
	}))
	t.Logf("%d dispatches", total)
}

// call returns the dispatch as a call on memories with these bytes.
func (x *dispatched) call(memories [][]byte) *Call {
	x.m.mem = memories
	x.m.arguments(&x.s, x.s.node.(*ir.Dispatch))
	x.m.grid(x.s.node.(*ir.Dispatch))
	c := x.m.call
	return &c
}

// fresh returns copies of the memories as they are before the dispatch.
func (x *dispatched) fresh() (out [][]byte) {
	for _, m := range x.Before {
		out = append(out, slices.Clone(m))
	}
	return out
}

// run runs all units on fresh copies of the memories and returns these.
func (x *dispatched) run() [][]byte {
	memories := x.fresh()
	c := x.call(memories)
	x.k.Run(c, &dirty, 0, x.k.Units(c))
	return memories
}

// dirty is a worker that all tests share: nothing that a worker caches may show in a result.
var dirty Worker

// changed returns the number of bytes that differ.
func changed(a, b [][]byte) (n int) {
	for m := range a {
		if bytes.Equal(a[m], b[m]) {
			continue
		}
		for i, v := range a[m] {
			if v != b[m][i] {
				n++
			}
		}
	}
	return n
}

// anySplit is the law that results do not depend on the number of workers: the units, split into any ranges, run in
// any order on any workers, give the bits of a single run, and no two ranges write the same byte.
func (x *dispatched) anySplit() error {
	want := x.run()
	units := x.k.Units(x.call(want))
	cuts := []int{0, units}
	for range x.r.IntN(6) {
		cuts = append(cuts, x.r.IntN(units+1))
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	got := x.fresh()
	written := 0
	workers := []*Worker{&dirty, {}}
	for _, i := range x.r.Perm(len(cuts) - 1) {
		x.k.Run(x.call(got), workers[x.r.IntN(2)], cuts[i], cuts[i+1])
		alone := x.fresh()
		x.k.Run(x.call(alone), &dirty, cuts[i], cuts[i+1])
		written += changed(x.Before, alone)
	}
	if changed(want, got) > 0 {
		return fmt.Errorf("ranges between %v give other bits than one run", cuts)
	}
	if n := changed(x.Before, want); n != written {
		return fmt.Errorf("ranges between %v change %d bytes, one run %d", cuts, written, n)
	}
	return x.Intact(want)
}

func TestAnySplit(t *testing.T) {
	testsample.Seldom(t)
	forEachDispatch(t, 8, func(x *dispatched) error {
		c := x.call(x.Before)
		units, cost := x.k.Units(c), x.k.Cost(c)
		if units <= 0 || !(cost > 0) || cost*float64(units) > 1e9 {
			return fmt.Errorf("%d units of %v ns", units, cost)
		}
		return x.anySplit()
	})
}

// shortView is the law that keeps a kernel within its arguments: if a view lacks the last element that the kernel
// touches, the kernel fails, unless its result does not depend on that element. It never reads or writes past
// the end.
func (x *dispatched) shortView() error {
	var slots []int
	for slot := range maxSlots {
		if n, _ := x.Touched(slot); n > 0 {
			slots = append(slots, slot)
		}
	}
	if len(slots) == 0 {
		return nil
	}
	slot := slots[x.r.IntN(len(slots))]
	touched, written := x.Touched(slot)
	want := x.run()
	memories := x.fresh()
	c := x.call(memories)
	// After the view, and within its capacity, are bytes that the kernel must not touch, as for a view into a larger
	// memory.
	less := int(touched) - min(int(touched), 4)
	data := append(slices.Clone(c.Device[slot][:less]), bytes.Repeat([]byte{0xff}, 256)...)
	c.Device[slot] = data[:less]
	stopped := func() (stopped bool) {
		defer func() { stopped = recover() != nil }()
		x.k.Run(c, &Worker{}, 0, x.k.Units(c))
		return false
	}()
	for i, b := range data[less:] {
		if b != 0xff {
			return fmt.Errorf("argument %d, 4 bytes too short: byte %d behind its end is written", slot, i)
		}
	}
	switch {
	case stopped:
		return x.Intact(memories)
	case written: // its result is not in memories; an update may leave the end as it is
		if !bytes.Equal(x.call(want).Device[slot][less:touched], x.call(x.Before).Device[slot][less:touched]) {
			return fmt.Errorf("argument %d, 4 bytes too short, is no error, though its end is written", slot)
		}
	case changed(want, memories) > 0:
		return fmt.Errorf("argument %d, 4 bytes too short, is no error, and changes the result", slot)
	}
	return nil
}

func TestShortViewPanics(t *testing.T) {
	testsample.Seldom(t)
	forEachDispatch(t, 8, (*dispatched).shortView)
}

// TestLawsNotice: kernels with bugs break the laws above.
func TestLawsNotice(t *testing.T) {
	testsample.Seldom(t)
	var last byte   // a result of an earlier range, wrongly kept outside of the call
	var in, out int // the slots of an argument that is read and of one that is written
	anySplit, shortView := (*dispatched).anySplit, (*dispatched).shortView
	faults := []struct {
		name string
		law  func(*dispatched) error
		run  func(k *Kernel, c *Call, w *Worker, lo, hi int)
	}{
		{"forgets the first unit of a range", anySplit, func(k *Kernel, c *Call, w *Worker, lo, hi int) {
			k.Run(c, w, min(hi, lo+min(lo, 1)), hi)
		}},
		{"does a unit of the range before", anySplit, func(k *Kernel, c *Call, w *Worker, lo, hi int) { k.Run(c, w, max(0, lo-1), hi) }},
		{"writes what an earlier range left", anySplit, func(k *Kernel, c *Call, w *Worker, lo, hi int) {
			k.Run(c, w, lo, hi)
			c.Device[out][0], last = last, c.Device[out][0]
		}},
		{"writes another argument", anySplit, func(k *Kernel, c *Call, w *Worker, lo, hi int) {
			k.Run(c, w, lo, hi)
			c.Device[in][0] ^= 1
		}},
		{"runs past the end", shortView, func(k *Kernel, c *Call, w *Worker, lo, hi int) {
			longer := *c
			for i, d := range c.Device {
				longer.Device[i] = d[:min(len(d)+4, cap(d))]
			}
			k.Run(&longer, w, lo, hi)
		}},
		{"leaves out what it has no room for", shortView, func(k *Kernel, c *Call, w *Worker, lo, hi int) {
			defer func() { _ = recover() }()
			k.Run(c, w, lo, hi)
		}},
	}
	noticed := make([]int, len(faults))
	const enough = 200
	tried := 0
	forEachDispatch(t, 8, func(x *dispatched) error {
		k := x.k
		in, out = -1, -1
		for slot := range maxSlots {
			switch n, written := x.Touched(slot); {
			case n == 0:
			case written:
				out = slot
			default:
				in = slot
			}
		}
		if c := x.call(x.Before); in < 0 || out < 0 || tried == enough || &c.Device[in][0] == &c.Device[out][0] {
			return nil
		}
		tried++
		for i, fault := range faults {
			broken := *k
			broken.Run = func(c *Call, w *Worker, lo, hi int) { fault.run(k, c, w, lo, hi) }
			if x.k = &broken; fault.law(x) != nil {
				noticed[i]++
			}
		}
		return nil
	})
	for i, n := range noticed {
		t.Logf("a kernel that %s: noticed in %d of %d dispatches", faults[i].name, n, enough)
		assert.Greater(t, n, enough/4, "a kernel that %s", faults[i].name)
	}
}

// TestRunsWithoutAllocating: a kernel allocates nothing, except in a first run, which may
// grow the worker's scratch.
func TestRunsWithoutAllocating(t *testing.T) {
	var w Worker
	forEachDispatch(t, 3, func(x *dispatched) error {
		c := x.call(x.Before)
		run := func() { x.k.Run(c, &w, 0, x.k.Units(c)) }
		run()
		if n := testing.AllocsPerRun(3, run); n > 0 {
			return fmt.Errorf("a run allocates %v times", n)
		}
		return nil
	})
}

func i32(v int) []byte     { return binary.LittleEndian.AppendUint32(nil, uint32(int32(v))) }
func f32(v float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(v)) }
func i64(v ...int) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint64(b, uint64(int64(x)))
	}
	return b
}
