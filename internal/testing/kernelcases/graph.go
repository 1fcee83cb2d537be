package kernelcases

import (
	"encoding/hex"
	"fmt"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// Graph returns a graph with only the case's dispatch, of the kernel k of a library. Its memories are the case's
// buffers, in the order of the arguments.
func (c *Case) Graph(library ir.Library, k *air.Kernel) (*ir.Graph, error) {
	kernel := ir.Kernel{Name: "kernel", Library: library, Function: k.Name}
	for _, f := range k.Constants {
		value, found := int64(0), false
		for _, x := range c.Constants {
			if x.Name == f.Name {
				value, found = x.Value, true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: the function constant %s has no value", c.Name, f.Name)
		}
		typ, bits := ir.I32, uint64(uint32(value))
		if f.Type == "bool" {
			typ = ir.Bool
		}
		kernel.Constants = append(kernel.Constants, ir.FunctionConstant{Index: uint16(f.Index), Name: f.Name, Type: typ, Bits: bits})
	}
	g := &ir.Graph{Name: "case"}
	d := &ir.Dispatch{ID: 1, GridKind: ir.Threads, Threadgroup: c.Group, Label: c.Name}
	for i, n := range c.Threads {
		d.Grid[i] = ir.Ext(int64(n))
	}
	slots := map[string]*air.Arg{}
	for i := range k.Args {
		if a := &k.Args[i]; a.Attribute == "" {
			slots[a.Name] = a
		}
	}
	bindings := map[int]ir.Binding{}
	for i := range c.Args {
		a := &c.Args[i]
		to := slots[a.Name]
		if to == nil {
			return nil, fmt.Errorf("%s: the kernel has no argument %s", c.Name, a.Name)
		}
		delete(slots, a.Name)
		switch {
		case a.Threadgroup > 0:
			d.ThreadgroupMemory = append(d.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: uint8(to.Index), Bytes: a.Threadgroup})
		case a.Bytes != "":
			b, err := hex.DecodeString(a.Bytes)
			if err != nil {
				return nil, err
			}
			bindings[to.Index] = ir.BytesArg(uint8(to.Index), b)
		default:
			kind := ir.Output
			if c.before(a) != nil {
				kind = ir.Input
			}
			size := int64(a.Count * types[a.Type].size)
			m := ir.MemID(len(g.Memories))
			g.Memories = append(g.Memories, ir.Memory{Name: a.Name, Kind: kind, Size: size, Alias: ir.NoMem})
			bindings[to.Index] = ir.BufferArg(uint8(to.Index), ir.ViewOf(m, 0, size))
		}
	}
	for _, a := range k.Args { // in the order of slots: every argument must have a value
		if slots[a.Name] != nil && a.Attribute == "" && !a.Unused && a.If == "" {
			return nil, fmt.Errorf("%s: argument %d, %s, has no value", c.Name, a.Index, a.Name)
		}
	}
	for slot := range 31 {
		if b, ok := bindings[slot]; ok {
			d.Bindings = append(d.Bindings, b)
		}
	}
	g.Kernels = []ir.Kernel{kernel}
	g.Nodes = []ir.Node{d}
	return g, nil
}
