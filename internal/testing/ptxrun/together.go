package ptxrun

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

// sharedBase is the address of a block's shared memory.
const sharedBase = 1 << 10

const warpSize = 32

// together is an instruction that threads of a warp execute together, those of a warpgroup, or a barrier of a block.
type together struct {
	// mask returns the warp's threads that take part, as one of them names them; nil if it is not a warp's.
	mask func(t *thread, in *instruction) uint32
	do   func(warp []*thread, in *instruction) error
	// group is what four warps do; nil, as do is, for a barrier.
	group func(threads []*thread, in *instruction) error
	// reduces: a barrier of all threads, who are told whether a predicate holds for any of them.
	reduces bool
	// cluster: barrier.cluster.wait.
	cluster bool
}

// togetherOf returns how threads execute an instruction together; nil if each executes it by itself.
func togetherOf(in *instruction) *together {
	all := func(*thread, *instruction) uint32 { return math.MaxUint32 }
	named := func(i int) func(t *thread, in *instruction) uint32 {
		return func(t *thread, in *instruction) uint32 { return uint32(t.value(&in.args[i])) }
	}
	op := strings.Join(in.op, ".")
	if in.op[0] == "wgmma" {
		return wgmmaOf(in)
	}
	if m := matricesOf(in); m != nil {
		return &together{mask: all, do: m}
	}
	if c := clusterOf(op); c != nil && len(in.args) == 0 {
		return c
	}
	switch n := len(in.args); {
	case (op == "barrier.sync" || op == "bar.sync" || op == "barrier.sync.aligned") && (n == 1 || n == 2):
		return &together{}
	case op == "bar.red.or.pred" && n == 3:
		return &together{reduces: true}
	case op == "bar.warp.sync" && n == 1:
		return &together{mask: named(0), do: func(warp []*thread, _ *instruction) error {
			var here []*thread
			for _, t := range warp {
				if t != nil {
					here = append(here, t)
				}
			}
			here[0].order.meet(here, nil)
			return nil
		}}
	case op == "elect.sync" && n == 3:
		return &together{mask: named(2), do: elect}
	case (op == "shfl.sync.idx.b32" || op == "shfl.sync.bfly.b32") && n == 5:
		return &together{mask: named(4), do: shuffle}
	case op == "vote.sync.any.pred" && n == 3:
		return &together{mask: named(2), do: func(warp []*thread, in *instruction) error {
			_, some := votes(warp, in)
			for _, t := range warp {
				if t != nil {
					t.set(&in.args[0], flag(some != 0))
				}
			}
			return nil
		}}
	case op == "vote.sync.ballot.b32" && n == 3:
		return &together{mask: named(2), do: func(warp []*thread, in *instruction) error {
			_, some := votes(warp, in)
			for _, t := range warp {
				if t != nil {
					t.set(&in.args[0], uint64(some))
				}
			}
			return nil
		}}
	case op == "movmatrix.sync.aligned.m8n8.trans.b16" && n == 2:
		return &together{mask: all, do: moveMatrix}
	case strings.HasPrefix(op, "mma.sync.aligned.m16n8k16.row.col.f32.") && n == 14, strings.HasPrefix(op, "mma.sync.aligned.m16n8k8.row.col.f32.") && n == 11:
		value := map[string]func(uint64) float64{"f16": ofHalf, "bf16": ofBfloat}[in.op[7]]
		if len(in.op) != 10 || value == nil || in.op[7] != in.op[8] {
			return nil
		}
		return &together{mask: all, do: func(warp []*thread, in *instruction) error { return multiply(warp, in, value) }}
	case op == "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" && n == 14:
		return &together{mask: all, do: multiplyTF32}
	}
	return nil
}

// warp runs the threads of a warp until all have ended or wait at a barrier of the block, and returns how
// many wait.
func (p *Program) warp(threads []*thread) (waiting int, err error) {
	for {
		var at *instruction
		waiting = 0
		var left uint32
		for lane, t := range threads {
			if t.waits == nil && !t.finished && t.paused == nil {
				if err := t.run(); err != nil {
					return 0, fmt.Errorf("thread %d: %w", t.index, err)
				}
			}
			if t.finished {
				continue
			}
			left |= 1 << lane
			waiting++
		}
		if waiting == 0 {
			return 0, nil
		}
		progress := false
		for _, t := range threads {
			if t.finished || t.waits == nil || t.waits.together.mask == nil {
				continue
			}
			at = t.waits
			mask := at.together.mask(t, at)
			members := make([]*thread, warpSize)
			ready, pauses := true, false
			for lane, o := range threads {
				if mask>>lane&1 == 0 || left>>lane&1 == 0 {
					continue
				}
				members[lane] = o
				ready = ready && o.waits == at && at.together.mask(o, at) == mask
				pauses = pauses || o.paused != nil
			}
			if pauses {
				at = nil
			}
			if !ready {
				continue
			}
			err := at.together.do(members, at)
			for _, o := range members {
				if o != nil && o.fault != nil && err == nil {
					err = o.fault
				}
			}
			if err != nil {
				return 0, fmt.Errorf("warp of thread %d: line %d: %s: %w", threads[0].index, at.line, at.text, err)
			}
			for _, o := range members {
				if o != nil {
					o.waits = nil
					o.next++
				}
			}
			progress = true
			break
		}
		if progress {
			continue
		}
		if at != nil {
			return 0, fmt.Errorf("warp of thread %d: line %d: %s: not all threads that it names come to it", threads[0].index, at.line, at.text)
		}
		return waiting, nil
	}
}

// votes returns the lanes that take part, and those of them for which a predicate holds.
func votes(warp []*thread, in *instruction) (here, some uint32) {
	for lane, t := range warp {
		if t == nil {
			continue
		}
		here |= 1 << lane
		if t.value(&in.args[1]) != 0 {
			some |= 1 << lane
		}
	}
	return here, some
}

// shuffle is shfl.sync.idx and shfl.sync.bfly of whole warps.
func shuffle(warp []*thread, in *instruction) error {
	var got [warpSize]uint64
	for lane, t := range warp {
		if t == nil {
			continue
		}
		// Bits 8 to 12 are those of a lane's number that say which part of the warp it is in.
		clamp := t.value(&in.args[3])
		part := int(clamp >> 8 & 31)
		if n := 32 - part; clamp&^(31<<8) != 31 || n&(n-1) != 0 || in.op[2] == "bfly" && part != 0 {
			return fmt.Errorf("lanes are divided by 0x%x, which is not known", clamp)
		}
		number := int(t.value(&in.args[2]) & 31)
		if in.op[2] == "bfly" {
			number ^= lane
		} else {
			number = lane&part | number&^part
		}
		from := warp[number]
		if from == nil {
			return fmt.Errorf("lane %d asks for the value of one that does not take part", lane)
		}
		got[lane] = typ{'b', 32}.low(from.value(&in.args[1]))
	}
	for lane, t := range warp {
		if t != nil {
			t.set(&in.args[0], got[lane])
		}
	}
	return nil
}

// whole returns an error if a thread of the warp does not take part.
func whole(warp []*thread) error {
	for lane, t := range warp {
		if t == nil {
			return fmt.Errorf("lane %d does not take part", lane)
		}
	}
	return nil
}

// moveMatrix is movmatrix: lane l has the elements in row l>>2 and columns 2·(l&3) and 2·(l&3)+1, of the matrix and
// of its transpose.
func moveMatrix(warp []*thread, in *instruction) error {
	if err := whole(warp); err != nil {
		return err
	}
	var x [8][8]uint64
	for lane, t := range warp {
		for e := range 2 {
			x[lane>>2][2*(lane&3)+e] = t.value(&in.args[1]) >> (16 * e) & 0xffff
		}
	}
	for lane, t := range warp {
		t.set(&in.args[0], x[2*(lane&3)][lane>>2]|x[2*(lane&3)+1][lane>>2]<<16)
	}
	return nil
}

// multiply is mma.sync.m16n8k8 and m16n8k16 (PTX ISA, "Matrix fragments for mma").
func multiply(warp []*thread, in *instruction, value func(uint64) float64) error {
	if err := whole(warp); err != nil {
		return err
	}
	depth := (len(in.args) - 8) / 3 // in eights
	var a [16][16]float64
	var b [16][8]float64
	for lane, t := range warp {
		group, in4 := lane>>2, lane&3
		for e := range 2 {
			part := func(i int) float64 { return value(t.value(&in.args[i]) >> (16 * e) & 0xffff) }
			for k := range depth {
				for r := range 2 {
					a[group+8*r][8*k+2*in4+e] = part(4 + 2*k + r)
				}
				b[8*k+2*in4+e][group] = part(4 + 2*depth + k)
			}
		}
	}
	for lane, t := range warp {
		var d [4]uint64
		for i := range d {
			row, column := lane>>2+8*(i/2), 2*(lane&3)+i%2
			sum := float64(single(t.value(&in.args[4+3*depth+i])))
			for k := range depth {
				var products [8]float64
				for j := range products {
					products[j] = a[row][8*k+j] * b[8*k+j][column]
				}
				sum = added(sum, products)
			}
			d[i] = ofSingle(float32(sum))
		}
		for i := range d {
			t.set(&in.args[i], d[i])
		}
	}
	return nil
}

// added is the sum of c and eight exact products, as GPUs of compute capability 8.0 compute it: all are truncated 24
// bits below the largest, and the sum to 24 bits. No GPU that has these instructions is less exact.
func added(c float64, products [8]float64) float64 {
	greatest, plain := math.Abs(c), c
	for _, p := range products {
		greatest = max(greatest, math.Abs(p))
		plain += p
	}
	if greatest == 0 || plain != plain || math.IsInf(plain, 0) {
		return plain
	}
	_, e := math.Frexp(greatest)
	unit := math.Ldexp(1, max(e-1-24, -149))
	sum := math.Trunc(c / unit)
	for _, p := range products {
		sum += math.Trunc(p / unit)
	}
	// Truncated to 24 bits.
	if n := bits.Len64(uint64(math.Abs(sum))); n > 24 {
		cut := math.Ldexp(1, n-24)
		sum = math.Trunc(sum/cut) * cut
	}
	if sum *= unit; math.Abs(sum) > math.MaxFloat32 {
		return math.Inf(int(math.Copysign(1, sum)))
	}
	return sum
}

func ofBfloat(x uint64) float64 { return float64(single(x << 16)) }

// bfloat rounds a float to the nearest bfloat, ties to even.
func bfloat(x uint64) uint64 {
	if f := single(x); f != f {
		return 0x7fff
	}
	x &= math.MaxUint32
	return (x + 0x7fff + x>>16&1) >> 16
}
