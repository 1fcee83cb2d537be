package mlxfn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// inFront is for sources. Before MLX compiles the source of a kernel that a program brings along, it puts declarations in front, which the source may
// use. These are the ones that it may expect: names of types, and where an element of an array under strides lies.
const inFront = `#include <metal_stdlib>
using namespace metal;
#define METAL_FUNC inline __attribute__((__always_inline__))
typedef half float16_t;
typedef bfloat bfloat16_t;

template <typename I = long>
inline I elem_to_loc(I element, constant const int* shape, constant const long* strides, int ndim) {
  I at = 0;
  for (int d = ndim - 1; d >= 0; d--) {
    at += element % I(shape[d]) * I(strides[d]);
    element /= I(shape[d]);
  }
  return at;
}
inline long elem_to_loc(uint element, constant const int* shape, constant const long* strides, int ndim) {
  return elem_to_loc<long>(long(element), shape, strides, ndim);
}
template <typename T, typename U>
inline T ceildiv(T n, U d) {
  return (n + d - 1) / d;
}

`

// inConstant is from how many elements on MLX passes an input in device memory.
const inConstant = 8

// customKernel records a kernel of the program's own: its source becomes a file beside the graph.
func customKernel(c *call) error {
	name, source := c.n.State[0].(string), c.n.State[1].(string)
	infos, scalars := c.n.State[4].([][3]bool), c.n.State[7].([]Variant)
	switch {
	case c.source == nil:
		return errors.New("the source of a kernel is written beside the graph, and nobody has said where")
	case c.flag(8) || len(scalars) > 0:
		return errors.New("one that is compiled for NVIDIA's GPUs")
	case len(infos) != len(c.in):
		return fmt.Errorf("%d descriptions of %d operands", len(infos), len(c.in))
	}
	k := ir.Kernel{Name: name, Function: name, Library: c.source(name, []byte(inFront+source))}
	bound := make([]func(*record.Dispatch), 0, len(c.in))
	slot := uint8(0)
	bind := func(arg ir.Arg, do func(d *record.Dispatch, slot uint8)) {
		at := slot
		arg.Slot = at
		k.Args = append(k.Args, arg)
		bound = append(bound, func(d *record.Dispatch) { do(d, at) })
		slot++
	}
	var reads []record.Tensor
	for i, v := range c.in {
		t := c.tensor(v)
		if c.flag(5) {
			t = c.packed(t)
		}
		reads = append(reads, t)
		arg := ir.Arg{Name: fmt.Sprintf("in%d", i), Access: ir.ReadArg, Type: v.typ}
		if product(v.shape) < inConstant {
			arg.Kind, arg.Access = ir.ConstantArg, 0
		}
		bind(arg, func(d *record.Dispatch, slot uint8) { d.Buffer(slot, t) })
		if len(v.shape) == 0 {
			continue
		}
		n := int32(len(v.shape))
		if infos[i][0] {
			var b []byte
			for _, d := range v.shape {
				b = binary.LittleEndian.AppendUint32(b, uint32(d))
			}
			bind(ir.Arg{Name: fmt.Sprintf("in%d_shape", i), Kind: ir.ConstantArg, Type: ir.I32, Count: n}, func(d *record.Dispatch, slot uint8) { d.Bytes(slot, b) })
		}
		if infos[i][1] {
			var b []byte
			for _, s := range t.Strides {
				b = binary.LittleEndian.AppendUint64(b, uint64(s))
			}
			bind(ir.Arg{Name: fmt.Sprintf("in%d_strides", i), Kind: ir.ConstantArg, Type: ir.I64, Count: n}, func(d *record.Dispatch, slot uint8) { d.Bytes(slot, b) })
		}
		if infos[i][2] {
			bind(ir.Arg{Name: fmt.Sprintf("in%d_ndim", i), Kind: ir.ConstantArg, Type: ir.I32, Count: 1}, func(d *record.Dispatch, slot uint8) { d.Int32(slot, n) })
		}
	}
	var results []record.Tensor
	first, filled := c.n.State[6].(float32)
	for i, v := range c.out {
		t := c.s.Scratch(v.typ, dims(v.shape)...)
		if filled {
			if !v.typ.Float() && !whole(v.typ) {
				return fmt.Errorf("a first value of %s", v.typ)
			}
			c.copyTo(t, broadcastTensor(c.constant(v.typ, float64(first)), v.shape))
		}
		results = append(results, t)
		arg := ir.Arg{Name: fmt.Sprintf("out%d", i), Access: ir.WriteArg, Type: v.typ}
		if filled {
			arg.Access = ir.ReadWriteArg
		}
		bind(arg, func(d *record.Dispatch, slot uint8) { d.Buffer(slot, t) })
		c.out[i].t, c.out[i].has = t, true
	}
	if slot > 31 {
		return fmt.Errorf("it has %d arguments", slot)
	}
	size, group := c.n.State[2].([3]int64), c.n.State[3].([3]int64)
	var grid [3]ir.Extent
	var threads [3]uint32
	for i := range size {
		if size[i] < 1 || group[i] < 1 {
			return fmt.Errorf("a grid of %v threads, in groups of %v", size, group)
		}
		grid[i], threads[i] = ir.Ext(size[i]), uint32(min(size[i], group[i]))
	}
	d := c.s.Dispatch(c.s.Kernel(k)).Op("custom_kernel").Label(name)
	for _, b := range bound {
		b(d)
	}
	d.Reads(reads...)
	if filled {
		d.Updates(results...)
	} else {
		d.Writes(results...)
	}
	d.Threads(grid, threads)
	return nil
}
