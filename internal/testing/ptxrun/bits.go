package ptxrun

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// pairs are operations of two halves, two bfloats, or two numbers of 16 bits, in a register.
var pairs = map[string]func(a, b, c uint64) uint64{
	"add.rn.f16x2": func(a, b, _ uint64) uint64 { return half(ofHalf(a) + ofHalf(b)) },
	"sub.rn.f16x2": func(a, b, _ uint64) uint64 { return half(ofHalf(a) - ofHalf(b)) },
	"mul.rn.f16x2": func(a, b, _ uint64) uint64 { return half(ofHalf(a) * ofHalf(b)) },
	"fma.rn.f16x2": fusedHalf,

	"add.rn.bf16x2": func(a, b, _ uint64) uint64 { return fusedBfloat(a, 0x3f80, b) },
	"sub.rn.bf16x2": func(a, b, _ uint64) uint64 { return fusedBfloat(b, 0xbf80, a) },
	"mul.rn.bf16x2": func(a, b, _ uint64) uint64 { return fusedBfloat(a, b, 0x8000) },

	"max.u16x2": func(a, b, _ uint64) uint64 { return max(a, b) },
	"min.u16x2": func(a, b, _ uint64) uint64 { return min(a, b) },
}

// fusedHalf is a·b + c of halves, rounded once.
func fusedHalf(a, b, c uint64) uint64 {
	return half(fusedOdd(float32(ofHalf(a&0xffff)), float32(ofHalf(b&0xffff)), float32(ofHalf(c&0xffff))))
}

// bitsOf returns what executes an instruction about bits, pairs of halves, or what has no effect here; nil if it is none.
func bitsOf(in *instruction) func(t *thread, in *instruction) error {
	full, n := strings.Join(in.op, "."), len(in.args)
	set := func(f func(x []uint64) uint64) func(t *thread, in *instruction) error {
		return func(t *thread, in *instruction) error {
			x := make([]uint64, 0, 4)
			for i := range in.args[1:] {
				x = append(x, t.value(&in.args[1+i]))
			}
			t.set(&in.args[0], f(x))
			return nil
		}
	}
	if f := pairs[full]; f != nil && (n == 3 && !strings.HasPrefix(full, "fma") || n == 4 && strings.HasPrefix(full, "fma")) {
		return set(func(x []uint64) uint64 {
			x = append(x, 0)
			return f(x[0]>>16&0xffff, x[1]>>16&0xffff, x[2]>>16&0xffff)<<16 | f(x[0]&0xffff, x[1]&0xffff, x[2]&0xffff)
		})
	}
	switch full {
	case "setmaxnreg.inc.sync.aligned.u32", "setmaxnreg.dec.sync.aligned.u32":
		if n == 1 && in.args[0].kind == 'n' && in.args[0].number >= 24 && in.args[0].number <= 256 && in.args[0].number%8 == 0 {
			return func(*thread, *instruction) error { return nil }
		}
	case "fence.acq_rel.cta", "fence.sc.cta", "membar.cta":
		if n == 0 {
			return func(*thread, *instruction) error { return nil }
		}
	case "nanosleep.u32":
		if n == 1 {
			return func(*thread, *instruction) error { return nil }
		}
	case "bar.arrive", "barrier.arrive", "barrier.arrive.aligned":
		if n == 2 {
			return arriveAt
		}
	case "fma.rn.f16":
		if n == 4 {
			return set(func(x []uint64) uint64 { return fusedHalf(x[0], x[1], x[2]) })
		}
	case "neg.f16x2":
		if n == 2 {
			return set(func(x []uint64) uint64 { return x[0]&math.MaxUint32 ^ 0x80008000 })
		}
	case "cvt.rn.f16x2.f32":
		if n == 3 {
			return set(func(x []uint64) uint64 { return half(float64(single(x[0])))<<16 | half(float64(single(x[1]))) })
		}
	case "shf.l.wrap.b32", "shf.r.wrap.b32", "shf.l.clamp.b32", "shf.r.clamp.b32":
		if n == 4 {
			left, wrap := in.op[1] == "l", in.op[2] == "wrap"
			return set(func(x []uint64) uint64 {
				count := min(x[2]&math.MaxUint32, 32)
				if wrap {
					count = x[2] & 31
				}
				both := x[1]<<32 | x[0]&math.MaxUint32
				if left {
					return both << count >> 32
				}
				return both >> count & math.MaxUint32
			})
		}
	case "lop3.b32":
		if n == 5 && in.args[4].kind == 'n' {
			return set(func(x []uint64) uint64 {
				var out uint32
				a, b, c, table := uint32(x[0]), uint32(x[1]), uint32(x[2]), x[3]
				for i := range 32 {
					row := a>>i&1<<2 | b>>i&1<<1 | c>>i&1
					out |= uint32(table>>row&1) << i
				}
				return uint64(out)
			})
		}
	case "prmt.b32":
		if n == 4 {
			return set(func(x []uint64) uint64 {
				var out uint64
				both := x[1]<<32 | x[0]&math.MaxUint32
				for i := range 4 {
					selector := x[2] >> (4 * i) & 15
					b := both >> (8 * (selector & 7)) & 255
					if selector&8 != 0 {
						b = 255 * (b >> 7)
					}
					out |= b << (8 * i)
				}
				return out
			})
		}
	case "clz.b32":
		if n == 2 {
			return set(func(x []uint64) uint64 { return uint64(bits.LeadingZeros32(uint32(x[0]))) })
		}
	case "brev.b32":
		if n == 2 {
			return set(func(x []uint64) uint64 { return uint64(bits.Reverse32(uint32(x[0]))) })
		}
	case "cvta.to.global.u64":
		if n == 2 {
			return set(func(x []uint64) uint64 { return x[0] })
		}
	case "mov.b64":
		if n == 5 && slices.Equal(in.lists, [][2]int{{1, 4}}) {
			return set(func(x []uint64) uint64 { return x[0]&0xffff | x[1]&0xffff<<16 | x[2]&0xffff<<32 | x[3]<<48 })
		}
		if n == 5 && slices.Equal(in.lists, [][2]int{{0, 4}}) {
			return func(t *thread, in *instruction) error {
				v := t.value(&in.args[4])
				for i := range 4 {
					t.set(&in.args[i], v>>(16*i)&0xffff)
				}
				return nil
			}
		}
	}
	return nil
}

// elect chooses the first of the threads that take part.
func elect(warp []*thread, in *instruction) error {
	first := -1
	for lane, t := range warp {
		if t == nil {
			continue
		}
		if first < 0 {
			first = lane
		}
		t.set(&in.args[0], uint64(first))
		t.set(&in.args[1], flag(lane == first))
	}
	return nil
}

// matricesOf returns how a warp executes ldmatrix or stmatrix; nil if the instruction is none.
func matricesOf(in *instruction) func(warp []*thread, in *instruction) error {
	op := in.op
	if op[0] != "ldmatrix" && op[0] != "stmatrix" || len(op) < 7 || op[1] != "sync" || op[2] != "aligned" || op[3] != "m8n8" || op[len(op)-1] != "b16" {
		return nil
	}
	n := map[string]int{"x1": 1, "x2": 2, "x4": 4}[op[4]]
	rest := op[5 : len(op)-1]
	trans := rest[0] == "trans"
	if trans {
		rest = rest[1:]
	}
	load := op[0] == "ldmatrix"
	at, registers := 0, 1
	if load {
		at, registers = n, 0
	}
	if n == 0 || len(rest) != 1 || rest[0] != "shared" && rest[0] != "shared::cta" || len(in.args) != n+1 || in.args[at].kind != '[' || !slices.Equal(in.lists, [][2]int{{registers, n}}) {
		return nil
	}
	return func(warp []*thread, in *instruction) error {
		if err := whole(warp); err != nil {
			return err
		}
		for m := range n {
			// The addresses of the rows of matrix m are those of lanes 8·m and up.
			var rows [8]int
			for r := range rows {
				address := warp[8*m+r].address(&in.args[at])
				i, err := warp[0].place(address, 16)
				if err == nil && address%16 != 0 {
					err = fmt.Errorf("16 bytes at 0x%x are not at a multiple of their size", address)
				}
				if err != nil {
					return fmt.Errorf("lane %d: %w", 8*m+r, err)
				}
				rows[r] = i
			}
			for lane, t := range warp {
				o := &in.args[registers+m]
				v := uint64(0)
				if !load {
					v = t.value(o)
				}
				for e := range 2 {
					r, c := lane/4, 2*(lane%4)+e
					if trans {
						r, c = c, r
					}
					i := rows[r] + 2*c
					if t.order != nil {
						err := error(nil)
						if load {
							err = t.order.read(t, i, 2)
						} else {
							half := binary.LittleEndian.AppendUint16(nil, uint16(v>>(16*e)))
							err = t.order.write(t, i, t.shared[i:], half)
						}
						if err != nil {
							return fmt.Errorf("lane %d: %w", lane, err)
						}
					}
					if load {
						v |= uint64(binary.LittleEndian.Uint16(t.shared[i:])) << (16 * e)
					} else {
						binary.LittleEndian.PutUint16(t.shared[i:], uint16(v>>(16*e)))
					}
				}
				if load {
					t.set(o, v)
				}
			}
		}
		return nil
	}
}
