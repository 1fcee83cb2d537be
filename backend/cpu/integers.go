package cpu

import "unsafe"

// integer is the type of elements of kernels for integers.
type integer interface{ int32 | uint32 }

func init() {
	registerIntegers[int32]("int32")
	registerIntegers[uint32]("uint32")
	Register(
		compareIntegers("g2_GreaterEqualuint32", func(a, b uint32) bool { return a >= b }),
		&Kernel{
			Name:  "v_copyint32float32",
			Units: func(c *Call) int { return chunks(c.Threads[0]) },
			Run: func(c *Call, _ *Worker, lo, hi int) {
				in, out := c.I32(0), c.F32(1)
				for i := lo * chunk; i < min(hi*chunk, c.Threads[0]); i++ {
					out[i] = float32(in[i])
				}
			},
			Cost: elementCost,
		},
		&Kernel{
			Name:  "v_copyuint32float32",
			Units: func(c *Call) int { return chunks(c.Threads[0]) },
			Run: func(c *Call, _ *Worker, lo, hi int) {
				in, out := c.U32(0), c.F32(1)
				for i := lo * chunk; i < min(hi*chunk, c.Threads[0]); i++ {
					out[i] = float32(in[i])
				}
			},
			Cost: elementCost,
		},
		&Kernel{
			Name:  "v_copyfloat32int32",
			Units: func(c *Call) int { return chunks(c.Threads[0]) },
			Run: func(c *Call, _ *Worker, lo, hi int) {
				in, out := c.F32(0), c.I32(1)
				for i := lo * chunk; i < min(hi*chunk, c.Threads[0]); i++ {
					out[i] = int32Of(in[i])
				}
			},
			Cost: elementCost,
		},
		&Kernel{
			Name:  "v_copyfloat32uint32",
			Units: func(c *Call) int { return chunks(c.Threads[0]) },
			Run: func(c *Call, _ *Worker, lo, hi int) {
				in, out := c.F32(0), c.U32(1)
				for i := lo * chunk; i < min(hi*chunk, c.Threads[0]); i++ {
					out[i] = uint32Of(in[i])
				}
			},
			Cost: elementCost,
		},
	)
	for _, index := range []string{"int32", "uint32"} {
		for _, name := range []string{"float32", "uint32", "float16", "bfloat16"} {
			Register(gatherFront("gather_front"+name+"_"+index+"_int_1", name, index == "int32"))
			if name == "float16" || name == "bfloat16" {
				Register(gatherFront("gather_front"+name+"_"+index+"_int_2", name, index == "int32"))
			}
		}
	}
}

func elementCost(c *Call) float64 { return 10 + float64(min(chunk, c.Threads[0]*c.Threads[1])) }

// int32Of leaves out what is behind the point. Numbers beyond the type become its least or greatest one, and NaN 0.
func int32Of(v float32) int32 {
	switch {
	case v != v:
		return 0
	case v >= 1<<31:
		return 1<<31 - 1
	case v <= -1<<31:
		return -1 << 31
	}
	return int32(v)
}

func uint32Of(v float32) uint32 {
	switch {
	case v != v || v <= 0:
		return 0
	case v >= 1<<32:
		return 1<<32 - 1
	}
	return uint32(int64(v))
}

func registerIntegers[T integer](name string) {
	for op, f := range map[string]func(a, b T) T{
		"Add": func(a, b T) T { return a + b }, "Subtract": func(a, b T) T { return a - b }, "Multiply": func(a, b T) T { return a * b },
		"Maximum": func(a, b T) T { return max(a, b) }, "Minimum": func(a, b T) T { return min(a, b) },
		"BitwiseAnd": func(a, b T) T { return a & b }, "BitwiseOr": func(a, b T) T { return a | b }, "BitwiseXor": func(a, b T) T { return a ^ b },
		"LeftShift": func(a, b T) T { return a << (uint32(b) & 31) }, "RightShift": func(a, b T) T { return a >> (uint32(b) & 31) },
	} {
		Register(binaryIntegers("g2_"+op+name, f))
	}
	for op, f := range map[string]func(a, b T) bool{
		"Less": func(a, b T) bool { return a < b }, "Equal": func(a, b T) bool { return a == b }, "NotEqual": func(a, b T) bool { return a != b },
	} {
		Register(compareIntegers("g2_"+op+name, f))
	}
	s := strided{2, 3}
	Register(&Kernel{
		Name: "g2_Select" + name, Units: s.units,
		Run: func(c *Call, _ *Worker, lo, hi int) {
			condition, a, b, out := c.Bytes(0), wordsOf[T](c, 1), wordsOf[T](c, 2), wordsOf[T](c, 3)
			s.each(c, lo, hi, func(p, n int, at, step [3]int) {
				for i := range n {
					if condition[at[0]+i*step[0]] != 0 {
						out[p+i] = a[at[1]+i*step[1]]
					} else {
						out[p+i] = b[at[2]+i*step[2]]
					}
				}
			})
		},
		Cost: elementCost,
	})
}

// wordsOf returns the elements of device argument slot.
func wordsOf[T integer](c *Call, slot int) []T {
	w := c.U32(slot)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(w))), len(w))
}

// binaryIntegers is a kernel of two operands under strides; the result may be one of them.
func binaryIntegers[T integer](name string, op func(a, b T) T) *Kernel {
	s := strided{2, 2}
	return &Kernel{
		Name: name, Units: s.units,
		Run: func(c *Call, _ *Worker, lo, hi int) {
			a, b, out := wordsOf[T](c, 0), wordsOf[T](c, 1), wordsOf[T](c, 2)
			s.each(c, lo, hi, func(p, n int, at, step [3]int) {
				for i := range n {
					out[p+i] = op(a[at[0]+i*step[0]], b[at[1]+i*step[1]])
				}
			})
		},
		Cost: elementCost,
	}
}

// compareIntegers is binaryIntegers with a boolean result.
func compareIntegers[T integer](name string, op func(a, b T) bool) *Kernel {
	s := strided{2, 2}
	return &Kernel{
		Name: name, Units: s.units,
		Run: func(c *Call, _ *Worker, lo, hi int) {
			a, b, out := wordsOf[T](c, 0), wordsOf[T](c, 1), c.Bytes(2)
			s.each(c, lo, hi, func(p, n int, at, step [3]int) {
				for i := range n {
					out[p+i] = 0
					if op(a[at[0]+i*step[0]], b[at[1]+i*step[1]]) {
						out[p+i] = 1
					}
				}
			})
		},
		Cost: elementCost,
	}
}

// gatherFront copies rows, bit by bit. Arguments: 0 the table [size, stride], 1 indices [n], of which those below zero count
// from the end if they are signed, 2 the rows [n, stride]; 3 stride, i64, 4 size, i32. A unit is a row.
func gatherFront(name, of string, signed bool) *Kernel {
	width := 4
	if of == "float16" || of == "bfloat16" {
		width = 2
	}
	return &Kernel{
		Name:  name,
		Units: func(c *Call) int { return c.Threads[1] },
		Run: func(c *Call, _ *Worker, lo, hi int) {
			from, ids, to := c.Bytes(0), c.U32(1), c.Bytes(2)
			n, size := width*c.Long(3, 0), c.Int(4)
			for t := lo; t < hi; t++ {
				row := int(ids[t])
				if signed {
					row = int(int32(ids[t]))
				}
				if row < 0 {
					row += size
				}
				row = min(max(row, 0), size-1)
				copy(to[t*n:(t+1)*n], from[row*n:(row+1)*n])
			}
		},
		Cost: func(c *Call) float64 { return 10 + 0.05*float64(c.Long(3, 0)) },
	}
}
