package air

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// SimdWidth is how many threads a simdgroup has.
const SimdWidth = 32

// Operation is what threads do at a site; the numbers are those of enum operation.
type Operation uint8

// The operations.
const (
	ThreadgroupBarrier Operation = iota
	SimdgroupBarrier
	OpSum
	OpProduct
	OpMin
	OpMax
	OpAnd
	OpOr
	OpXor
	OpPrefixInclusiveSum
	OpPrefixExclusiveSum
	OpPrefixInclusiveProduct
	OpPrefixExclusiveProduct
	OpShuffle
	OpShuffleUp
	OpShuffleDown
	OpShuffleXor
	OpShuffleRotateUp
	OpShuffleRotateDown
	OpShuffleAndFillUp
	OpShuffleAndFillDown
	OpBroadcastFirst
	OpAny
	OpAll
	OpBallot
	OpIsFirst
	OpActiveThreads
	OpMultiplyAccumulate
	OpJoin
	OpTogether
)

// Element is the type that an operation computes with; the numbers are those of enum element.
type Element uint8

// ElementNames are the elements by the names that functions of AIR have for them: kind and type.
var ElementNames = map[string]Element{
	"f.f32": 0, "f.f16": 1, "f.bf16": 2,
	"s.i8": 3, "s.i16": 4, "s.i32": 5, "s.i64": 6,
	"u.i8": 7, "u.i16": 8, "u.i32": 9, "u.i64": 10,
}

// Site is a place at which threads exchange.
type Site struct {
	Operation Operation
	Element   Element
	Count     int // elements of a value
	Width     int // threads that exchange
	Flags     int // of a barrier: the memory that it orders
	Line      int // of the source, 0 if unknown
	// Stride is how many bytes of the exchange each lane has for an operand, the same at all
	// sites of a kernel: a thread that goes on to another site leaves its operand there while
	// others have not yet taken what they got at this one.
	Stride int
}

// TogetherMarker is called in checked kernels where all threads of a simdgroup have to come: each does its part
// alone, and the checker looks who is there.
const TogetherMarker = "air.mlxc.together"

// exchangeNames are the functions of simdgroups and quadgroups, without what says so before
// their name.
var exchangeNames = map[string]Operation{
	"sum": OpSum, "product": OpProduct, "min": OpMin, "max": OpMax, "and": OpAnd, "or": OpOr, "xor": OpXor,
	"prefix_inclusive_sum": OpPrefixInclusiveSum, "prefix_exclusive_sum": OpPrefixExclusiveSum,
	"prefix_inclusive_product": OpPrefixInclusiveProduct, "prefix_exclusive_product": OpPrefixExclusiveProduct,
	"shuffle": OpShuffle, "broadcast": OpShuffle, "shuffle_up": OpShuffleUp, "shuffle_down": OpShuffleDown, "shuffle_xor": OpShuffleXor,
	"shuffle_rotate_up": OpShuffleRotateUp, "shuffle_rotate_down": OpShuffleRotateDown,
	"shuffle_and_fill_up": OpShuffleAndFillUp, "shuffle_and_fill_down": OpShuffleAndFillDown,
	"broadcast_first": OpBroadcastFirst, "any": OpAny, "all": OpAll, "ballot": OpBallot, "is_first": OpIsFirst,
	"active_threads_mask": OpActiveThreads,
}

// SiteOf returns what threads exchange that call the function; suspends is false of a function
// that only depends on the thread, which is then no site.
func SiteOf(d llvm.Declaration) (s Site, err error) {
	name := strings.TrimPrefix(strings.Trim(d.Name, `"`), "air.")
	switch {
	case name == "wg.barrier":
		return Site{Operation: ThreadgroupBarrier, Width: SimdWidth}, nil
	case name == strings.TrimPrefix(TogetherMarker, "air."):
		return Site{Operation: OpTogether, Width: SimdWidth}, nil
	case name == "simdgroup.barrier":
		return Site{Operation: SimdgroupBarrier, Width: SimdWidth}, nil
	case strings.HasPrefix(name, "simdgroup_matrix_8x8_multiply_accumulate."):
		if len(d.Params) != 3 {
			return s, fmt.Errorf("air.%s has %d parameters", name, len(d.Params))
		}
		return Site{Operation: OpMultiplyAccumulate, Width: SimdWidth, Count: 2}, nil
	}
	s.Width = SimdWidth
	rest, ok := strings.CutPrefix(name, "simd_")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "quad_"); !ok {
			return s, fmt.Errorf("air.%s is not a function that is known here", name)
		}
		s.Width = 4
	}
	op, suffix, _ := strings.Cut(rest, ".")
	if s.Operation, ok = exchangeNames[op]; !ok {
		return s, fmt.Errorf("air.%s is not a function that is known here", name)
	}
	switch s.Operation {
	case OpAny, OpAll, OpBallot, OpIsFirst, OpActiveThreads:
		s.Element, s.Count = ElementNames["u.i8"], 1
		return s, nil
	}
	if len(d.Params) == 0 {
		return s, fmt.Errorf("air.%s has no parameter", name)
	}
	if s.Operation == OpShuffleAndFillUp || s.Operation == OpShuffleAndFillDown {
		if len(d.Params) < 2 {
			return s, fmt.Errorf("air.%s has one parameter", name)
		}
	}
	// f32, s.i32, u.v2i32, v4f32
	kind, typ := "f", suffix
	if before, after, ok := strings.Cut(suffix, "."); ok {
		kind, typ = before, after
	}
	s.Count = 1
	if strings.HasPrefix(typ, "v") && len(typ) > 2 {
		s.Count, typ = int(typ[1]-'0'), typ[2:]
	}
	if s.Element, ok = ElementNames[kind+"."+typ]; !ok {
		return s, fmt.Errorf("air.%s: values of type %q are not known here", name, suffix)
	}
	if n, _ := llvm.Elements(d.Params[0]); n != s.Count || llvm.BytesOf(d.Params[0]) == 0 || llvm.BytesOf(d.Params[0]) > 32 {
		return s, fmt.Errorf("air.%s has a parameter of type %s", name, d.Params[0])
	}
	return s, nil
}

// MatrixLines returns the body of a function of simdgroup matrices in which each lane does its
// part alone: IR text, given the values of the arguments. A lane l has the elements in row
// (l>>2 & 4) | (l>>1 & 3) and columns 2·((l>>2 & 2) | (l & 1)) and the next; if matrices lie by rows, in
// row l>>2 and columns 2·(l&3) and the next.
func MatrixLines(d llvm.Declaration, args []string, n, result string, rows bool) (lines []string, err error) {
	name := strings.TrimPrefix(strings.Trim(d.Name, `"`), "air.simdgroup_matrix_8x8_")
	op, _, _ := strings.Cut(name, ".")
	emit := func(format string, a ...any) { lines = append(lines, "  "+fmt.Sprintf(format, a...)) }
	p := "%x" + n
	typ := d.Result
	if op == "store" && len(d.Params) > 0 {
		typ = d.Params[0]
	}
	_, elem := llvm.Elements(typ)
	if strings.HasPrefix(op, "init_") && len(args) != 1 {
		return nil, fmt.Errorf("air.simdgroup_matrix_8x8_%s has %d arguments", op, len(args))
	}
	switch op {
	case "init_filled":
		emit("%s.h = insertelement %s poison, %s %s, i32 0", p, typ, elem, args[0])
		emit("%s = insertelement %s %s.h, %s %s, i32 1", result, typ, p, elem, args[0])
		return lines, nil
	}
	if rows {
		emit("%s.row = lshr i64 %%mlxc.index, 2", p)
		emit("%s.ch = and i64 %%mlxc.index, 3", p)
	} else {
		emit("%s.l2 = lshr i64 %%mlxc.index, 2", p)
		emit("%s.r4 = and i64 %s.l2, 4", p, p)
		emit("%s.l1 = lshr i64 %%mlxc.index, 1", p)
		emit("%s.r3 = and i64 %s.l1, 3", p, p)
		emit("%s.row = or i64 %s.r4, %s.r3", p, p, p)
		emit("%s.c2 = and i64 %s.l2, 2", p, p)
		emit("%s.c1 = and i64 %%mlxc.index, 1", p)
		emit("%s.ch = or i64 %s.c2, %s.c1", p, p, p)
	}
	emit("%s.col = shl i64 %s.ch, 1", p, p)
	switch op {
	case "init_diag":
		last := "poison"
		for k := range 2 {
			emit("%s.k%d = add i64 %s.col, %d", p, k, p, k)
			emit("%s.d%d = icmp eq i64 %s.row, %s.k%d", p, k, p, p, k)
			emit("%s.v%d = select i1 %s.d%d, %s %s, %s %s", p, k, p, k, elem, args[0], elem, Zero(elem))
			name := result
			if k == 0 {
				name = p + ".h"
			}
			emit("%s = insertelement %s %s, %s %s.v%d, i32 %d", name, typ, last, elem, p, k, k)
			last = name
		}
		return lines, nil
	case "load", "store":
		i := 0
		if op == "store" {
			i = 1
		}
		if len(args) != i+4 {
			return nil, fmt.Errorf("air.simdgroup_matrix_8x8_%s has %d arguments", op, len(args))
		}
		pointer := d.Params[i]
		emit("%s.ox = extractelement <2 x i64> %s, i32 0", p, args[i+2])
		emit("%s.oy = extractelement <2 x i64> %s, i32 1", p, args[i+2])
		last := "poison"
		for k := range 2 {
			emit("%s.k%d = add i64 %s.col, %d", p, k, p, k)
			emit("%s.y%d = select i1 %s, i64 %s.k%d, i64 %s.row", p, k, args[i+3], p, k, p)
			emit("%s.x%d = select i1 %s, i64 %s.row, i64 %s.k%d", p, k, args[i+3], p, p, k)
			emit("%s.yo%d = add i64 %s.y%d, %s.oy", p, k, p, k, p)
			emit("%s.xo%d = add i64 %s.x%d, %s.ox", p, k, p, k, p)
			emit("%s.m%d = mul i64 %s.yo%d, %s", p, k, p, k, args[i+1])
			emit("%s.i%d = add i64 %s.m%d, %s.xo%d", p, k, p, k, p, k)
			emit("%s.a%d = getelementptr %s, %s %s, i64 %s.i%d", p, k, elem, pointer, args[i], p, k)
			if op == "store" {
				emit("%s.v%d = extractelement %s %s, i32 %d", p, k, typ, args[0], k)
				emit("store %s %s.v%d, %s %s.a%d", elem, p, k, pointer, p, k)
				continue
			}
			emit("%s.v%d = load %s, %s %s.a%d", p, k, elem, pointer, p, k)
			name := result
			if k == 0 {
				name = p + ".h"
			}
			emit("%s = insertelement %s %s, %s %s.v%d, i32 %d", name, typ, last, elem, p, k, k)
			last = name
		}
		return lines, nil
	}
	return nil, fmt.Errorf("air.simdgroup_matrix_8x8_%s is not a function that is known here", name)
}

// Zero is the literal 0 of a floating type.
func Zero(elem string) string {
	switch elem {
	case "half":
		return "0xH0000"
	case "bfloat":
		return "0xR0000"
	}
	return "0.0"
}

// Alone reports whether each thread does its part of the function alone.
func Alone(d llvm.Declaration) bool {
	name := strings.Trim(d.Name, `"`)
	return strings.HasPrefix(name, "air.simdgroup_matrix_8x8_") && !strings.HasPrefix(name, "air.simdgroup_matrix_8x8_multiply_accumulate.")
}

// MoveName is the name of a function of LLVM that copies or fills memory.
var MoveName = regexp.MustCompile(`^llvm\.(memcpy|memmove|memset)\.`)
