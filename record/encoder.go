package record

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/mlxc/mlxc/internal/slab"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Encoder takes dispatches as a Metal compute encoder does, and executes them
// ([Live]), records them, or both. It is for one goroutine; its counters may be
// read by any.
//
// Methods that declare or encode return no error: the first mistake is kept,
// whatever follows is ignored, and [Encoder.Finish] returns it and abandons the
// recording. [Encoder.Err] tells it earlier.
type Encoder struct {
	settings
	number uint32 // of all encoders of the process
	// g holds what was declared; its nodes are those of the recording, or of the
	// open command buffer alone where nothing is captured.
	g         *ir.Graph
	next      ir.ID
	names     map[string]ir.MemID
	functions map[functionKey]ir.KernelID
	plain     map[string]ir.KernelID // those without constants
	cache     *msl.Cache
	places    []place // by memory
	serial    uint32  // of the last allocation
	params    []uint32
	dump      string // the file that the first recording goes to
	set       []bool
	recording uint32 // counted from 1
	captured  int    // the first node of a capture that began late; -1: none

	arena
	tracking
	counters counters
	building Dispatch
	err      error
	closed   bool
	dead     error // what no Finish mends: settings, Close
	commands int   // of the open command buffer
	depth    int   // open groups
	device   *device

	strides    slab.Slab[int64]
	dispatches slab.Slab[ir.Dispatch]
	bindings   slab.Slab[ir.Binding]
	threadgrp  slab.Slab[ir.ThreadgroupMemory]
	bytes      slab.Slab[byte]
	effects    slab.Slab[ir.Effects]
	regions    slab.Slab[ir.Region]
	writes     slab.Slab[ir.Write]
}

// encoders is the number of encoders that were made.
var encoders atomic.Uint32

// NewEncoder returns an encoder called name. Without settings it captures. One that
// executes has memory of the device until [Encoder.Close].
func NewEncoder(name string, with ...Setting) *Encoder {
	e := &Encoder{}
	e.init(name, with)
	return e
}

func (e *Encoder) init(name string, with []Setting) {
	e.number = encoders.Add(1)
	e.g = &ir.Graph{Name: name}
	e.names, e.functions = map[string]ir.MemID{}, map[functionKey]ir.KernelID{}
	e.plain = map[string]ir.KernelID{}
	e.captured, e.arena.mem, e.recording = -1, ir.NoMem, 1
	for _, s := range with {
		s(&e.settings)
	}
	e.building.e = e
	if err := (&ir.Graph{Name: name}).Check(); err != nil {
		e.on, e.deferred = nil, false
		e.kill("%w", err)
	}
	if err := e.settings.err; err != nil {
		e.on, e.deferred = nil, false
		e.kill("%w", err)
	}
	if e.on != nil {
		e.device = newDevice(e.on, &e.counters)
		e.dump = claimDump(e)
	}
}

// Err returns the first mistake since the last Finish.
func (e *Encoder) Err() error { return e.err }

// kill makes every further call a mistake.
func (e *Encoder) kill(format string, args ...any) {
	e.dead = fmt.Errorf("record %s: "+format, append([]any{ir.QuoteName(e.g.Name)}, args...)...)
	if e.err == nil {
		e.err = e.dead
	}
}

func (e *Encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf("record %s: "+format, append([]any{e.g.Name}, args...)...)
	}
}

// Param adds a u32 param in [min, max]: a number that a replay may change. The
// param of that name is returned if there is one already.
func (e *Encoder) Param(name string, min, max uint32) ir.Affine {
	return e.param(ir.Param{Name: name, Type: ir.U32, Min: float64(min), Max: float64(max)})
}

func (e *Encoder) param(p ir.Param) ir.Affine {
	i, ok := e.paramID(p)
	if !ok {
		return ir.Const(0)
	}
	return ir.Linear(0, ir.Term{Param: i, Coeff: 1})
}

func (e *Encoder) paramID(p ir.Param) (ir.ParamID, bool) {
	if i, ok := e.g.ParamNamed(p.Name); ok {
		if e.g.Params[i] != p {
			e.fail("param $%s is a %s in [%v, %v] already, not a %s in [%v, %v]", ir.QuoteName(p.Name), e.g.Params[i].Type, e.g.Params[i].Min, e.g.Params[i].Max, p.Type, p.Min, p.Max)
		}
		return i, true
	}
	if !e.valid(&ir.Graph{Params: []ir.Param{p}}) {
		return 0, false
	}
	e.g.Params = append(e.g.Params, p)
	e.params, e.set = append(e.params, 0), append(e.set, false)
	i := len(e.g.Params) - 1
	if p.Min == p.Max {
		e.params[i], e.set[i] = paramBits(p, p.Min), true
	}
	e.renewTracker()
	return ir.ParamID(i), true
}

// valid reports whether a graph of what is being declared, alone, passes Check.
// What does not is a mistake now, and not in every recording from now on.
func (e *Encoder) valid(g *ir.Graph) bool {
	g.Name = e.g.Name
	err := g.Check()
	if err != nil {
		e.fail("%w", err)
	}
	return err == nil
}

// unused returns a name that no memory has.
func (e *Encoder) unused(name string) string {
	for base, n := name, 2; ; n++ {
		if _, ok := e.names[name]; !ok {
			return name
		}
		name = fmt.Sprintf("%s.%d", base, n)
	}
}

// Require adds the constraint lhs ≤ max.
func (e *Encoder) Require(lhs ir.Affine, max int64) {
	c := ir.Constraint{LHS: lhs.AddConst(-lhs.Const), Max: max - lhs.Const}
	for _, have := range e.g.Constraints {
		if have.Max == c.Max && have.LHS.Equal(c.LHS) {
			return
		}
	}
	if !e.valid(&ir.Graph{Params: e.g.Params, Constraints: append(slices.Clone(e.g.Constraints), c)}) {
		return
	}
	e.g.Constraints = append(e.g.Constraints, c)
	e.renewTracker()
}

// SetParam sets the value of a param for what is executed from now on. A
// recording has one value of each param: between two recordings only.
func (e *Encoder) SetParam(name string, v float64) {
	if e.err != nil {
		return
	}
	i, ok := e.g.ParamNamed(name)
	switch {
	case e.on == nil:
		e.fail("SetParam %s: nothing is executed here, the param stays a symbol: give its value to the replay", ir.QuoteName(name))
	case !ok:
		e.fail("there is no param $%s", ir.QuoteName(name))
	case len(e.g.Nodes) > 0 || len(e.device.pending) > 0:
		e.fail("param $%s can change between two recordings only: Finish first", ir.QuoteName(name))
	case !(v >= e.g.Params[i].Min && v <= e.g.Params[i].Max):
		e.fail("param $%s = %v is outside its bound [%v, %v]", ir.QuoteName(name), v, e.g.Params[i].Min, e.g.Params[i].Max)
	case e.g.Params[i].Type == ir.U32 && v != math.Trunc(v), e.g.Params[i].Type == ir.F32 && float64(float32(v)) != v:
		e.fail("param $%s = %v is no %s", ir.QuoteName(name), v, e.g.Params[i].Type)
	default:
		e.params[i], e.set[i] = paramBits(e.g.Params[i], v), true
	}
}

func paramBits(p ir.Param, v float64) uint32 {
	if p.Type == ir.F32 {
		return math.Float32bits(float32(v))
	}
	return uint32(v)
}

// Kernel adds a kernel of a library of your own: its code, and the table of its
// arguments, by which every dispatch is checked. The same kernel, given again, is
// the one that is there.
func (e *Encoder) Kernel(k ir.Kernel) ir.KernelID {
	if at := slices.IndexFunc(e.g.Kernels, func(have ir.Kernel) bool { return have.Name == k.Name }); at >= 0 {
		if !sameKernel(&e.g.Kernels[at], &k) {
			e.fail("there is another kernel @%s: rename one", k.Name)
		}
		return ir.KernelID(at)
	}
	if !e.valid(&ir.Graph{Kernels: []ir.Kernel{k}}) {
		return -1
	}
	e.g.Kernels = append(e.g.Kernels, k)
	return ir.KernelID(len(e.g.Kernels) - 1)
}

// Function returns a function of the kernel library (docs/kernels.md),
// specialized by function constants.
func (e *Encoder) Function(function string, constants ...ir.FunctionConstant) ir.KernelID {
	id, _ := e.kernel(function, constants)
	return id
}

// functionKey is a function and the constants that specialize it.
type functionKey struct {
	function  string
	constants [8]constantKey
}

type constantKey struct {
	index uint16
	t     ir.DType
	bits  uint64
}

// kernel returns the IR kernel of a library function, specialized.
func (e *Encoder) kernel(function string, constants []ir.FunctionConstant) (ir.KernelID, bool) {
	if len(constants) == 0 {
		if id, ok := e.plain[function]; ok {
			return id, true
		}
	}
	key := functionKey{function: function}
	for i, c := range constants {
		if i < len(key.constants) {
			key.constants[i] = constantKey{c.Index, c.Type, c.Bits}
		}
	}
	if id, ok := e.functions[key]; ok && len(constants) <= len(key.constants) {
		return id, true
	}
	name := function
	for _, c := range constants { // rope_float32.forward.traditional: the flags that are set
		switch {
		case c.Bits == 0:
		case c.Type == ir.Bool:
			name += "." + c.Name
		default:
			name += fmt.Sprintf(".%s_%d", c.Name, c.Bits)
		}
	}
	ds := msl.Declarations(function)
	if len(ds) == 0 {
		e.fail("the kernel library has no function %q", function)
		return 0, false
	}
	k := ds[0].Kernel(name, constants...)
	at := slices.IndexFunc(e.g.Kernels, func(have ir.Kernel) bool { return sameKernel(&have, &k) })
	id := ir.KernelID(at)
	if at < 0 { // not from a graph that was encoded
		k.Name = e.unusedKernel(name) // other values of constants that the name leaves out
		id = e.Kernel(k)
	}
	e.functions[key] = id
	if len(constants) == 0 {
		e.plain[function] = id
	}
	return id, true
}

// unusedKernel returns a name that no kernel has.
func (e *Encoder) unusedKernel(name string) string {
	for base, n := name, 2; slices.ContainsFunc(e.g.Kernels, func(k ir.Kernel) bool { return k.Name == name }); n++ {
		name = fmt.Sprintf("%s.%d", base, n)
	}
	return name
}

// Group opens a labelled group of commands; EndGroup closes it. Groups are for
// people: they order nothing.
// They may reach over commits, but not over the end of a recording. Not those that
// [Encoder.Groups] counts.
func (e *Encoder) Group(label string) {
	if e.err != nil {
		return
	}
	g := &ir.GroupBegin{Label: label}
	e.follow(g)
	e.note(g)
	e.g.Nodes = append(e.g.Nodes, g)
	e.depth++
}

// EndGroup closes the innermost open group.
func (e *Encoder) EndGroup() {
	switch {
	case e.err != nil:
	case e.depth == 0:
		e.fail("EndGroup: no group is open")
	default:
		e.follow(theGroupEnd)
		e.note(theGroupEnd)
		e.g.Nodes = append(e.g.Nodes, theGroupEnd)
		e.depth--
	}
}

func (e *Encoder) format(shape []ir.Affine) string {
	s := "["
	for i, d := range shape {
		if i > 0 {
			s += ", "
		}
		s += e.g.FormatAffine(d)
	}
	return s + "]"
}
