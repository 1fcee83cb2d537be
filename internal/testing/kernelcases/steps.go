package kernelcases

import (
	"encoding/hex"
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Step is one of several dispatches of a case, of a kernel in a source file. It refers to arguments by their slots
// and to constants by their indices.
type Step struct {
	Kernel    string
	Constants []struct {
		Index uint16
		Type  string
		Value int64
	}
	Bind   []Bind
	Groups [3]uint32 // of the grid, in threadgroups
	Group  [3]uint32 // of a threadgroup, in threads
}

// Bind is what a step binds to a slot: bytes, a buffer from an offset on, or threadgroup memory.
type Bind struct {
	Slot        uint8
	Bytes       string // hexadecimal
	Arg         string // the name of a buffer of the case
	Offset      int64
	Threadgroup uint32
}

var constantTypes = map[string]ir.DType{"bool": ir.Bool, "i16": ir.I16, "i32": ir.I32}

// StepGraph returns a graph of the steps of cases, with the kernels of a source file. Its memories are the cases'
// buffers, in their order, each with spare more bytes at its end.
func StepGraph(library ir.Library, spare int64, cases ...*Case) (*ir.Graph, error) {
	g := &ir.Graph{Name: "cases"}
	for _, c := range cases {
		views := map[string]ir.View{}
		for i := range c.Args {
			a := &c.Args[i]
			kind := ir.Output
			if a.Rule != nil || a.Given != nil {
				kind = ir.Input
			}
			m, size := ir.MemID(len(g.Memories)), int64(a.Count*types[a.Type].size)
			g.Memories = append(g.Memories, ir.Memory{Name: fmt.Sprintf("%d.%s", m, a.Name), Kind: kind, Size: size + spare, Alias: ir.NoMem})
			views[a.Name] = ir.ViewOf(m, 0, size)
		}
		for i := range c.Steps {
			if err := c.Steps[i].dispatch(g, library, c.Name, views); err != nil {
				return nil, fmt.Errorf("%s: step %d: %w", c.Name, i, err)
			}
		}
	}
	return g, nil
}

// dispatch adds a step to a graph.
func (s *Step) dispatch(g *ir.Graph, library ir.Library, label string, views map[string]ir.View) error {
	n := len(g.Kernels)
	k := ir.Kernel{Name: fmt.Sprintf("%s_%d", s.Kernel, n), Library: library, Function: s.Kernel}
	for _, c := range s.Constants {
		typ, ok := constantTypes[c.Type]
		if !ok {
			return fmt.Errorf("constant %d has the type %q", c.Index, c.Type)
		}
		k.Constants = append(k.Constants, ir.FunctionConstant{Index: c.Index, Type: typ, Bits: uint64(c.Value) & (1<<(8*typ.Size()) - 1)})
	}
	d := &ir.Dispatch{ID: ir.ID(n), Kernel: ir.KernelID(n), GridKind: ir.Threads, Threadgroup: s.Group, Label: label}
	for i := range d.Grid {
		d.Grid[i] = ir.Ext(int64(s.Groups[i]) * int64(s.Group[i]))
	}
	for _, b := range s.Bind {
		switch {
		case b.Threadgroup > 0:
			d.ThreadgroupMemory = append(d.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: b.Slot, Bytes: b.Threadgroup})
		case b.Bytes != "":
			data, err := hex.DecodeString(b.Bytes)
			if err != nil {
				return err
			}
			d.Bindings = append(d.Bindings, ir.BytesArg(b.Slot, data))
		default:
			v, ok := views[b.Arg]
			if !ok || b.Offset < 0 || b.Offset > v.Len.Const {
				return fmt.Errorf("slot %d holds no buffer: %q from byte %d on", b.Slot, b.Arg, b.Offset)
			}
			d.Bindings = append(d.Bindings, ir.BufferArg(b.Slot, ir.ViewOf(v.Mem, b.Offset, v.Len.Const-b.Offset)))
		}
	}
	g.Kernels = append(g.Kernels, k)
	g.Nodes = append(g.Nodes, d, &ir.Barrier{})
	return nil
}
