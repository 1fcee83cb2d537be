package ptxrun

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// warpgroup is how many threads execute wgmma.mma_async together.
const warpgroup = 4 * warpSize

// product is a wgmma.mma_async that has been issued.
type product struct {
	in    *instruction
	group int               // the warpgroup
	slot  int               // of its first thread, among the clocks
	known [warpgroup]uint32 // when its threads had waited for it; 0: they have not
	order *order
}

// over returns why what t does now may come before a product has read its matrices.
func (p *product) over(t *thread) error {
	for warp := range 4 {
		known := t.slot/warpSize == p.slot/warpSize+warp && p.known[t.index%warpgroup] != 0
		for lane := warp * warpSize; lane < (warp+1)*warpSize; lane++ {
			if p.known[lane] == 0 {
				return fmt.Errorf("warp %d has not waited for it", 4*p.group+warp)
			}
			known = known || t.known.at(p.slot+lane) >= p.known[lane]
		}
		if !known {
			return fmt.Errorf("no barrier lies between that warp %d has waited for it and this", 4*p.group+warp)
		}
	}
	return nil
}

// touch notes that an ordinary instruction reads or writes a register.
func (t *thread) touch(register int) {
	if n := t.busy[register]; n > t.done && t.fault == nil {
		t.fault = fmt.Errorf("a register is one of wgmma.mma_async of line %d, for which the thread has not waited", t.order.products[n-1].in.line)
	}
	t.touched[register] = t.productFences + 1
}

// productShape is the operands of a wgmma.mma_async.
type productShape struct {
	columns int // N
	bfloat  bool
	inRegs  bool // A is in registers
}

// shapeOf returns the shape of a wgmma.mma_async of 16-bit elements with sums in f32.
func shapeOf(in *instruction) (s productShape, ok bool) {
	op := in.op
	if len(op) != 8 || op[0] != "wgmma" || op[1] != "mma_async" || op[2] != "sync" || op[3] != "aligned" || op[5] != "f32" || op[6] != op[7] || op[6] != "f16" && op[6] != "bf16" {
		return s, false
	}
	shape, ok := strings.CutPrefix(op[4], "m64n")
	shape, ok2 := strings.CutSuffix(shape, "k16")
	n, err := strconv.Atoi(shape)
	if !ok || !ok2 || err != nil || n%8 != 0 || n < 8 || n > 256 || len(in.lists) == 0 || in.lists[0] != [2]int{0, n / 2} {
		return s, false
	}
	s = productShape{columns: n, bfloat: op[6] == "bf16"}
	switch {
	case len(in.args) == n/2+9 && len(in.lists) == 2 && in.lists[1] == [2]int{n / 2, 4}:
		s.inRegs = true
	case len(in.args) == n/2+7 && len(in.lists) == 1:
	default:
		return s, false
	}
	for _, a := range in.args[:n/2] {
		if a.kind != 'r' {
			return s, false
		}
	}
	tail := in.args[len(in.args)-3:] // with the scale of A: the scales and what is transposed
	if !s.inRegs {
		tail = in.args[len(in.args)-4:]
	}
	for i, a := range tail {
		if a.kind != 'n' || i < 2 && a.number != 1 && int64(a.number) != -1 || i >= 2 && a.number != 0 {
			return s, false
		}
	}
	return s, true
}

// wgmmaOf returns how threads execute an instruction of wgmma together; nil if it is none.
func wgmmaOf(in *instruction) *together {
	all := func(*thread, *instruction) uint32 { return math.MaxUint32 }
	switch op := strings.Join(in.op, "."); {
	case op == "wgmma.fence.sync.aligned" && len(in.args) == 0:
		return &together{mask: all, do: func(warp []*thread, _ *instruction) error {
			for _, t := range warp {
				if t != nil {
					t.productFences++
				}
			}
			return whole(warp)
		}}
	case op == "wgmma.commit_group.sync.aligned" && len(in.args) == 0:
		return &together{mask: all, do: func(warp []*thread, _ *instruction) error {
			for _, t := range warp {
				if t != nil {
					t.productGroups = append(t.productGroups, t.products)
					t.products = nil
				}
			}
			return whole(warp)
		}}
	case op == "wgmma.wait_group.sync.aligned" && len(in.args) == 1 && in.args[0].kind == 'n':
		return &together{mask: all, do: func(warp []*thread, in *instruction) error {
			if err := whole(warp); err != nil {
				return err
			}
			for _, t := range warp {
				for len(t.productGroups) > int(in.args[0].number) {
					for _, n := range t.productGroups[0] {
						t.done = n
						t.order.products[n-1].known[t.index%warpgroup] = t.clock
					}
					t.productGroups = t.productGroups[1:]
				}
			}
			return nil
		}}
	case strings.HasPrefix(op, "wgmma.mma_async."):
		s, ok := shapeOf(in)
		if !ok {
			return nil
		}
		return &together{group: func(threads []*thread, in *instruction) error { return multiplyAsync(threads, in, s) }}
	}
	return nil
}

// row16 are the 16 elements of a row of a matrix that a wgmma multiplies.
type row16 [16]element

// element is a finite number as a whole number times a power of two; its exponent is that of its first bit, if it is no
// subnormal.
type element struct {
	m    int32 // with its sign
	e    int16
	wild bool // infinite, or a NaN
}

func elementOf(v uint16, bfloat bool) element {
	exponent, mantissa, one, bias := int(v>>10&31), int32(v&1023), int32(1024), 15
	full := 31
	if bfloat {
		exponent, mantissa, one, bias, full = int(v>>7&255), int32(v&127), 128, 127, 255
	}
	x := element{wild: exponent == full}
	if exponent == 0 {
		exponent = 1
	} else {
		mantissa += one
	}
	x.m, x.e = mantissa, int16(exponent-bias)
	if v>>15 != 0 {
		x.m = -x.m
	}
	return x
}

// matrix reads rows of 16 elements, K-major, that a descriptor describes (PTX ISA, "Matrix Descriptor Format"): groups
// of eight rows, the stride offset from one to the next. Without swizzling, eight times 16 bytes of a group lie behind
// each other, and their other 16 bytes in the leading offset. Otherwise a row is as long as the pattern, and the
// pieces of 16 bytes of a row are exchanged as bits 7 and up of the address say.
func (o *order) matrix(threads []*thread, number int32, descriptor uint64, rows int, bfloat bool) (out []row16, raw [][16]uint16, err error) {
	start, leading, stride := int(descriptor&0x3fff)<<4, int(descriptor>>16&0x3fff)<<4, int(descriptor>>32&0x3fff)<<4
	mode := int(descriptor >> 62)
	if descriptor&^(0x3fff|0x3fff<<16|0x3fff<<32|7<<49|3<<62) != 0 {
		return nil, nil, fmt.Errorf("the descriptor 0x%x has bits that mean nothing", descriptor)
	}
	if descriptor>>49&7 != 0 {
		return nil, nil, fmt.Errorf("the descriptor 0x%x has a base offset, which is not known here", descriptor)
	}
	pitch := 16
	mask := 0
	if mode != 0 {
		pitch = 256 >> mode
		mask = pitch/16 - 1
		if start&(7*pitch) != 0 || stride%(8*pitch) != 0 {
			return nil, nil, fmt.Errorf("the descriptor 0x%x begins at 0x%x and has a stride of 0x%x: its pattern repeats every 0x%x bytes", descriptor, start, stride, 8*pitch)
		}
	}
	known := newBases(threads)
	shared := threads[0].shared
	group := int(threads[0].index) / warpgroup
	out, raw = make([]row16, rows), make([][16]uint16, rows)
	for r := range rows {
		for half := range 2 {
			at := start + r/8*stride + r%8*pitch
			if mode == 0 {
				at += half * leading
			} else {
				at += 16 * half
				at ^= at >> 7 & mask << 4
			}
			i := at - sharedBase
			if i < 0 || i+16 > len(shared) {
				return nil, nil, fmt.Errorf("16 bytes of shared memory at 0x%x, of row %d of a matrix: there are %d, from 0x%x", at, r, len(shared), sharedBase)
			}
			if err := o.visible(known, i); err != nil {
				return nil, nil, err
			}
			o.reads[i/16*o.groups+group] = number
			for j := range 8 {
				v := binary.LittleEndian.Uint16(shared[i+2*j:])
				out[r][8*half+j], raw[r][8*half+j] = elementOf(v, bfloat), v
			}
		}
	}
	return out, raw, nil
}

// bases are what threads know, each once.
type bases []clocks

func newBases(threads []*thread) (b bases) {
	var last *uint32
	for _, t := range threads {
		if len(t.known) == 0 {
			return bases{nil}
		}
		if last != &t.known[0] {
			b, last = append(b, t.known), &t.known[0]
		}
	}
	return b
}

func (b bases) at(slot int, time uint32) bool {
	for _, k := range b {
		if k.at(slot) < time {
			return false
		}
	}
	return true
}

// visible returns why a wgmma must not read 16 bytes of shared memory.
func (o *order) visible(known bases, at int) error {
	var last cell
	for i := at; i < at+16; i++ {
		c := o.cells[i]
		if i > at && c.flight == last.flight && c.writer == last.writer && c.written == last.written && c.fences == last.fences && c.mbarrier == last.mbarrier {
			continue
		}
		last = c
		switch {
		case c.flight != 0:
			return fmt.Errorf("the byte of shared memory at 0x%x is still in flight: %s", sharedBase+i, o.copies[c.flight-1].waits())
		case c.mbarrier:
			return fmt.Errorf("the byte of shared memory at 0x%x is one of an mbarrier", sharedBase+i)
		case c.writer < 0 && !known.at(c.writerOf(), c.written):
			return fmt.Errorf("the byte of shared memory at 0x%x has been written by a bulk copy, and not all threads have waited for its mbarrier", sharedBase+i)
		case c.writer > 0:
			fences := o.threads[c.writer-1].fences
			if int(c.fences) >= len(fences) {
				return fmt.Errorf("the byte of shared memory at 0x%x has been written by %s, which has not executed fence.proxy.async since", sharedBase+i, o.who(c.writer))
			}
			if !known.at(int(c.writer)-1, fences[c.fences]) {
				return fmt.Errorf("the byte of shared memory at 0x%x has been written by %s, and no barrier lies between its fence.proxy.async and this", sharedBase+i, o.who(c.writer))
			}
		}
	}
	return nil
}

// multiplyAsync is wgmma.mma_async.
func multiplyAsync(threads []*thread, in *instruction, s productShape) error {
	o := threads[0].order
	n := s.columns / 2 // registers of d
	number := int32(len(o.products) + 1)
	rest := in.args[n+1:]
	if s.inRegs {
		rest = in.args[n+4:]
	}
	first := threads[0]
	for _, t := range threads {
		for i := range rest {
			if t.value(&rest[i]) != first.value(&rest[i]) {
				return fmt.Errorf("threads %d and %d differ in a descriptor or a scale", first.index, t.index)
			}
		}
		if !s.inRegs && t.value(&in.args[n]) != first.value(&in.args[n]) {
			return fmt.Errorf("threads %d and %d differ in a descriptor or a scale", first.index, t.index)
		}
		if t.fault != nil {
			return t.fault
		}
		if t.productFences == 0 {
			return fmt.Errorf("thread %d has executed no wgmma.fence before", t.index)
		}
		for i, a := range in.args[:n] {
			r := a.index
			if t.touched[r] > t.productFences {
				return fmt.Errorf("thread %d has used a register of the sum since its last wgmma.fence", t.index)
			}
			if b := t.busy[r]; b > 0 {
				before := o.products[b-1].in
				same := before.op[4] == in.op[4] && before.op[5] == in.op[5] && i < len(before.args) && t.sums[r]
				if !same && (b > t.done || t.fencedAt[r] >= t.productFences) {
					return fmt.Errorf("thread %d has a register of the sum in wgmma.mma_async of line %d, of another shape or as a factor, and has not waited for it and executed wgmma.fence", t.index, before.line)
				}
			}
		}
		if s.inRegs {
			for _, a := range in.args[n : n+4] {
				switch {
				case a.kind != 'r':
				case t.touched[a.index] > t.productFences:
					return fmt.Errorf("thread %d has used a register of A since its last wgmma.fence", t.index)
				case t.busy[a.index] > t.done && t.sums[a.index]:
					return fmt.Errorf("thread %d has a register of A as a sum of wgmma.mma_async of line %d, for which it has not waited", t.index, o.products[t.busy[a.index]-1].in.line)
				}
			}
		}
	}
	o.products = append(o.products, &product{in: in, group: int(first.index) / warpgroup, slot: first.slot, order: o})
	b, rawB, err := o.matrix(threads, number, first.value(&rest[0]), s.columns, s.bfloat)
	if err != nil {
		return fmt.Errorf("matrix B: %w", err)
	}
	var a []row16
	var rawA [][16]uint16
	if s.inRegs {
		a, rawA = make([]row16, 64), make([][16]uint16, 64)
		for i, t := range threads {
			for j := range 8 {
				v := uint16(t.plain(&in.args[n+j/2]) >> (16 * (j & 1)))
				r, k := i/warpSize*16+i%warpSize/4+8*(j>>1&1), 2*(i%4)+j&1+8*(j>>2)
				a[r][k], rawA[r][k] = elementOf(v, s.bfloat), v
			}
		}
	} else if a, rawA, err = o.matrix(threads, number, first.value(&in.args[n]), 64, s.bfloat); err != nil {
		return fmt.Errorf("matrix A: %w", err)
	}
	accumulate := first.value(&rest[1]) != 0
	negate := int64(rest[2].number)*int64(rest[3].number) < 0
	for i, t := range threads {
		for j := range n {
			d := &in.args[j]
			row, column := i/warpSize*16+i%warpSize/4+8*(j>>1&1), 8*(j>>2)+2*(i%4)+j&1
			var c uint32
			if accumulate {
				c = uint32(t.r[d.index])
			}
			t.r[d.index] = uint64(dot(&a[row], &b[column], &rawA[row], &rawB[column], c, negate, s.bfloat))
		}
		for j := range in.args[:n] {
			r := in.args[j].index
			t.busy[r], t.sums[r], t.fencedAt[r] = number, true, t.productFences
		}
		if s.inRegs {
			for _, x := range in.args[n : n+4] {
				if x.kind == 'r' {
					t.busy[x.index], t.sums[x.index], t.fencedAt[x.index] = number, false, t.productFences
				}
			}
		}
		t.products = append(t.products, number)
	}
	return nil
}

// plain is the value of an operand that an instruction may use while others must not.
func (t *thread) plain(o *operand) uint64 {
	if o.kind == 'r' {
		return t.r[o.index]
	}
	return t.value(o)
}

// extra is how many bits behind the 24 of an f32 a wgmma keeps of what it adds.
const extra = 2

// dot is c and the sum of 16 products, as GPUs of compute capability 9.0 compute it: the products are exact, all are
// truncated to the same last place, that of a number of 26 bits with the greatest exponent, and the sum is truncated to
// 24 bits. The exponent of a product is the sum of those of its factors.
func dot(a, b *row16, rawA, rawB *[16]uint16, c uint32, negate, bfloat bool) uint32 {
	var products [16]int64
	var exponents [16]int
	greatest := math.MinInt
	wild := c>>23&255 == 255
	for k := range a {
		x, y := &a[k], &b[k]
		if x.wild || y.wild {
			wild = true
			break
		}
		p := int64(x.m) * int64(y.m)
		if p == 0 {
			continue
		}
		products[k], exponents[k] = p, int(x.e)+int(y.e)
		greatest = max(greatest, exponents[k])
	}
	if wild {
		return uint32(dotWild(rawA, rawB, c, negate, bfloat))
	}
	exponent, mantissa := int(c>>23), int64(c&(1<<23-1))
	exponent &= 255
	if exponent == 0 {
		exponent = 1
	} else {
		mantissa |= 1 << 23
	}
	exponent -= 127
	if mantissa != 0 {
		greatest = max(greatest, exponent)
	}
	if greatest == math.MinInt { // all are zeros: the sum is −0 if c is and all products are
		negative := c>>31 != 0
		for k := range rawA {
			negative = negative && (rawA[k]^rawB[k])>>15 != 0 != negate
		}
		return uint32(flag(negative)) << 31
	}
	behind := 20 // places of a product behind the point
	if bfloat {
		behind = 14
	}
	var sum int64
	for k, p := range products {
		if p == 0 {
			continue
		}
		sum += shifted(p, 23+extra-behind-(greatest-exponents[k]))
	}
	if negate {
		sum = -sum
	}
	if c>>31 != 0 {
		mantissa = -mantissa
	}
	sum += shifted(mantissa, extra-(greatest-exponent))
	if sum == 0 {
		return 0
	}
	var sign uint32
	if sum < 0 {
		sum, sign = -sum, 1<<31
	}
	// sum · 2^(greatest − 23 − extra), truncated.
	length := bits.Len64(uint64(sum))
	e := greatest - 23 - extra + length - 1 // of the first bit
	last := max(e-23, -149)                 // of the last one that an f32 has
	if shift := last - (greatest - 23 - extra); shift > 0 {
		sum >>= min(shift, 63)
	} else {
		sum <<= -shift
	}
	switch {
	case e > 127:
		return sign | 0x7f800000
	case e < -126:
		return sign | uint32(sum)
	}
	return sign | uint32(e+127)<<23 | uint32(sum)&(1<<23-1)
}

// shifted is a number times 2^n, truncated.
func shifted(x int64, n int) int64 {
	switch {
	case n >= 0:
		return x << n
	case n < -62:
		return 0
	case x < 0:
		return -(-x >> -n)
	}
	return x >> -n
}

// dotWild is the sum where not all is finite.
func dotWild(a, b *[16]uint16, c uint32, negate, bfloat bool) uint64 {
	value := ofHalf
	if bfloat {
		value = ofBfloat
	}
	sum := float64(single(uint64(c)))
	for k := range a {
		p := value(uint64(a[k])) * value(uint64(b[k]))
		if negate {
			p = -p
		}
		sum += p
	}
	if sum != sum {
		return nan32
	}
	return ofSingle(float32(math.Inf(int(math.Copysign(1, sum)))))
}
