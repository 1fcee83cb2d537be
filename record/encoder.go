package record

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record/internal/routes"
)

// Encoder takes dispatches as a Metal compute encoder does, and executes them
// ([Live]), records them, or both. It belongs to one goroutine, but any goroutine may read
// its counters.
//
// Methods that declare or encode return no error. The first mistake is kept, calls after it
// are ignored, and [Encoder.Finish] returns it and abandons the recording. [Encoder.Err]
// returns it earlier.
type Encoder struct {
	settings
	stream
	memories
	values   paramValues
	counters counters
	device   *device // nil: nothing is executed
	g        *ir.Graph
	number   uint32 // which of all encoders of the process this is

	functions map[functionKey]ir.KernelID
	plain     map[string]ir.KernelID // functions without constants
	building  Dispatch
	dump      string // the file to which the first recording is written; "" if none

	err    error // the first mistake of the recording
	closed bool
	dead   error // a mistake that stays after Finish: wrong settings, or a use after Close
	made
}

// made holds the allocators of what is recorded.
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

// encoders counts the encoders of the process.
var encoders atomic.Uint32

// NewEncoder returns an encoder whose graphs are called name. Without settings it only
// captures. An encoder that executes holds memory of the device until [Encoder.Close].
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
	e.chip, e.version = usualChip, routes.Release0_32_4
	for _, s := range with {
		s(&e.settings)
	}
	e.settings.environment()
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
		// A file that cannot be written is reported before the engine does any work.
		if _, err := atomicfile.Try(e.dump); err != nil {
			e.dump = ""
			e.fail("%s: %w", DumpVariable, err)
		}
	}
}

// SetContext sets the context of all calls and all executed commands from now on. When ctx
// ends, even in the middle of a long command, the recording is abandoned, and Finish returns
// the cause. The contents of everything that its command buffers write, states included, are
// undefined then. To go on afterwards, set another context, such as [context.Background].
func (e *Encoder) SetContext(ctx context.Context) { e.ctx = ctx }

// aborted makes the end of the context a mistake of the recording, and reports whether
// there is any mistake.
func (e *Encoder) aborted() bool {
	if e.ctx.Err() != nil {
		e.fail("%w", context.Cause(e.ctx))
	}
	return e.err != nil
}

// Err returns the first mistake since the last Finish, with the line of the call
// that made it.
func (e *Encoder) Err() error { return e.err }

// kill sets a mistake that stays: Finish does not clear it.
func (e *Encoder) kill(format string, args ...any) {
	e.dead = e.mistake(format, args)
	if e.err == nil {
		e.err = e.dead
	}
}

// fail keeps the first mistake. It is not inlined, so that its callers stay small.
//
//go:noinline
func (e *Encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = e.mistake(format, args)
	}
}

// ok makes err, if it is not nil, a mistake of the recording, and reports whether it is nil.
func (e *Encoder) ok(err error) bool {
	if err != nil {
		e.fail("%w", err)
	}
	return err == nil
}

// mistake returns the error for a wrong call into this package. Only now is the line of
// that call looked up, so that calls without mistakes do not pay for it.
func (e *Encoder) mistake(format string, args []any) error {
	return fmt.Errorf("%srecord %s: "+format, append([]any{callerLine(), ir.QuoteName(e.g.Name)}, args...)...)
}

// valid reports whether g, which holds nothing but what is being declared, passes Check.
// If not, the declaration is a mistake and is not kept, where it would spoil all later
// recordings too.
func (e *Encoder) valid(g *ir.Graph) bool {
	g.Name = e.g.Name
	err := g.Check()
	if err != nil {
		e.fail("%w", err)
	}
	return err == nil
}

// Group opens a labelled group of commands, and [Encoder.EndGroup] closes it. Groups only
// structure the graph for readers; they do not order commands. A group may contain commits,
// but must be closed before the end of the recording. ([Encoder.Groups] is about something
// else: the commands between two barriers.)
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
