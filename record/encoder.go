package record

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/ir"
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
	stream
	memories
	values   paramValues
	counters counters
	device   *device // nil: nothing is executed
	g        *ir.Graph
	number   uint32 // of all encoders of the process

	functions map[functionKey]ir.KernelID
	plain     map[string]ir.KernelID // those without constants
	building  Dispatch
	dump      string // the file that the first recording goes to

	err    error
	closed bool
	dead   error // what no Finish mends: settings, Close
	made
}

// made is where what is recorded is allocated.
type made struct {
	strides    bump.Allocator[int64]
	dispatches bump.Allocator[ir.Dispatch]
	bindings   bump.Allocator[ir.Binding]
	threadgrp  bump.Allocator[ir.ThreadgroupMemory]
	bytes      bump.Allocator[byte]
	effects    bump.Allocator[ir.Effects]
	regions    bump.Allocator[ir.Region]
	writes     bump.Allocator[ir.Write]
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
	e.memories = memories{graph: e.g, names: map[string]ir.MemID{}, arena: arena{mem: ir.NoMem}}
	e.stream = stream{settings: &e.settings, counters: &e.counters, ctx: context.Background(), g: e.g, captured: -1}
	e.functions, e.plain = map[functionKey]ir.KernelID{}, map[string]ir.KernelID{}
	for _, s := range with {
		s(&e.settings)
	}
	e.building.e = e
	if e.inOrder {
		e.g.Ordering = ir.Serial
	}
	err := e.g.Check()
	switch {
	case err != nil:
	case e.settings.err != nil:
		err = e.settings.err
	case e.inOrder && e.manual:
		err = errors.New("Serial and ManualBarriers: a serial recording needs no barriers")
	case e.on != nil:
		e.device, err = newDevice(e)
	}
	if err != nil {
		e.on, e.deferred, e.device = nil, false, nil
		e.kill("%w", err)
	}
	if e.on == nil {
		return
	}
	e.stream.device = e.device
	if e.dump = claimDump(e); e.dump != "" {
		// Before there is something to lose.
		if _, err := atomicfile.Try(e.dump); err != nil {
			e.dump = ""
			e.fail("%s: %w", DumpVariable, err)
		}
	}
}

// SetContext has what is given, executed and waited for from now on end with ctx, also in the
// middle of a long command: the recording that is aborted so is abandoned, and Finish returns
// the cause. What its command buffers write is undefined then, states too. Before the next
// recording it takes another context, or none: [context.Background].
func (e *Encoder) SetContext(ctx context.Context) { e.ctx = ctx }

// aborted reports, as the error of the recording, that its context has ended.
func (e *Encoder) aborted() bool {
	if e.ctx.Err() != nil {
		e.fail("%w", context.Cause(e.ctx))
	}
	return e.err != nil
}

// Err returns the first mistake since the last Finish, with the line of the call
// that made it.
func (e *Encoder) Err() error { return e.err }

// kill makes every further call a mistake.
func (e *Encoder) kill(format string, args ...any) {
	e.dead = e.mistake(format, args)
	if e.err == nil {
		e.err = e.dead
	}
}

// fail keeps the first mistake. It is not inlined, so that who asks whether there is
// one stays small.
//
//go:noinline
func (e *Encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = e.mistake(format, args)
	}
}

// ok keeps an error of what encodes or executes, and reports whether there was none.
func (e *Encoder) ok(err error) bool {
	if err != nil {
		e.fail("%w", err)
	}
	return err == nil
}

// mistake is the error of a call into this package. The line of the call is
// looked for now, when there is a mistake: a recording without any pays nothing.
func (e *Encoder) mistake(format string, args []any) error {
	return fmt.Errorf("%srecord %s: "+format, append([]any{callerLine(), ir.QuoteName(e.g.Name)}, args...)...)
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
	e.mark(g)
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
		e.mark(theGroupEnd)
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
