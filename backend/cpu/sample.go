package cpu

import (
	"fmt"
	"math"
	"math/bits"
	"sync"
)

func init() {
	Register(sampling("float32", nil))
	for _, t := range narrows {
		Register(sampling(t.String(), &t))
	}
}

// sampling draws from rows of f32, or of t if it is not nil.
func sampling(word string, t *narrow) *Kernel {
	return &Kernel{
		Name: fmt.Sprint("sample_", word), Units: groupsX,
		Run: func(c *Call, w *Worker, lo, hi int) {
			n, out := c.Uint(7), c.U32(1)
			temp, topP := c.Float(2), c.Float(3)
			seed := uint64(c.Uint(5))<<32 | uint64(c.Uint(4))
			for r := lo; r < hi; r++ {
				out[r] = sample(elements(c, w, 0, r*n, n, 1, t), temp, topP, seed, uint32(c.Uint(6)), uint32(r))
			}
		},
		Cost: func(c *Call) float64 { return 100 + 10*float64(c.Uint(7)) },
	}
}

// Sample draws an index from a row of logits as the kernel sample_float32 does on every device; msl/sample.metal
// defines each step. With temp below 1e-30 it returns the lowest index of the max logit. Otherwise it draws among
// the likeliest logits with a total probability of topP. The random number depends only on seed and
// position. There are at most 2^22 logits.
func Sample(logits []float32, temp, topP float32, seed uint64, position uint32) uint32 {
	return sample(logits, temp, topP, seed, position, 0)
}

// noCode is the code of a logit that is never drawn.
const noCode = math.MaxUint32

// codes keeps memory for the codes of a row.
var codes = sync.Pool{New: func() any { return new([]uint32) }}

func sample(x []float32, temp, topP float32, seed uint64, position, row uint32) uint32 {
	best := argmaxRow(x)
	top := x[best]
	if !(temp >= 1e-30) || math.IsInf(float64(top), 0) || math.IsNaN(float64(top)) {
		return uint32(best)
	}
	memory := codes.Get().(*[]uint32)
	defer codes.Put(memory)
	if cap(*memory) < len(x) {
		*memory = make([]uint32, len(x))
	}
	c := (*memory)[:len(x)]
	for i, v := range x {
		c[i] = codeOf(v, top, temp)
	}
	cut, ties := uint32(noCode), uint32(0)
	if topP < 1 {
		cut, ties = cutOf(c, topP)
	}
	tie := weightOf(cut)
	whole, n := uint64(0), uint32(0)
	kept := func(v uint32) uint64 {
		switch {
		case v < cut:
			return weightOf(v)
		case v == cut && v != noCode && n < ties:
			n++
			return tie
		}
		return 0
	}
	for _, v := range c {
		whole += kept(v)
	}
	n = 0
	a, b := philox(position, row, seed)
	draw, _ := bits.Mul64(uint64(b)<<32|uint64(a), whole)
	at := uint64(0)
	for i, v := range c {
		if at += kept(v); draw < at {
			return uint32(i)
		}
	}
	return uint32(best) // not reached: draw < whole
}

// cutOf returns the top-p cut in the order of codes: logits with a code below cut are kept, and of those whose
// code equals cut the first `ties`.
func cutOf(c []uint32, topP float32) (cut, ties uint32) {
	prefix, before, wanted := uint32(0), uint64(0), uint64(0)
	const digit, high = 9, 27 // bits: of a digit, and of a code
	for shift := high - digit; shift >= 0; shift -= digit {
		var sums [1 << digit]uint64
		all := uint64(0)
		for _, v := range c {
			if v != noCode && v>>(shift+digit) == prefix {
				w := weightOf(v)
				sums[v>>shift&(1<<digit-1)] += w
				all += w
			}
		}
		if shift == high-digit {
			wanted = partOf(all, topP)
		}
		d := uint32(0)
		for before+sums[d] < wanted {
			before += sums[d]
			d++
		}
		prefix = prefix<<digit | d
	}
	w := weightOf(prefix)
	return prefix, uint32((wanted - before + w - 1) / w)
}

// codeOf quantizes how much less likely logit x is than the max, top; it is the function code of the kernel.
func codeOf(x, top, temp float32) uint32 {
	d := top - x
	y := d / temp
	y *= 1.44269504
	if y < 40 {
		return uint32(y * (1 << 20))
	}
	return noCode
}

// weightOf is the weight in the draw of a logit with the given code; it is the function weight of the kernel.
func weightOf(c uint32) uint64 {
	if c == noCode {
		return 0
	}
	f := uint64(c) << 12 & 0xffffffff
	m := uint64(0x5ac7)
	m = 0x4d353 - f*m>>32
	m = 0x2b8258 - f*m>>32
	m = 0x13b1537 - f*m>>32
	m = 0x71abccb - f*m>>32
	m = 0x1ebfbd53 - f*m>>32
	m = 0x58b90bf4 - f*m>>32
	m = 0x80000000 - f*m>>32
	return m << 9 >> (c >> 20)
}

// partOf is ⌊sum · p⌋, but at least 1, with p truncated to 24 fractional bits.
func partOf(sum uint64, p float32) uint64 {
	q := uint64(0)
	if p > 0 {
		q = uint64(p * (1 << 24))
	}
	return max(1, sum>>24*q+sum&0xffffff*q>>24)
}

// philox is the first half of Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy
// as 1, 2, 3, 2011) of the counter (position, row, 0, 0) and the key seed.
func philox(position, row uint32, seed uint64) (uint32, uint32) {
	c := philox10([4]uint32{position, row}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	return c[0], c[1]
}

func philox10(c [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		ah, al := bits.Mul32(0xD2511F53, c[0])
		bh, bl := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{bh ^ c[1] ^ key[0], bl, ah ^ c[3] ^ key[1], al}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return c
}
