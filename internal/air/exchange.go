package air

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// exchangeNames are the functions of simdgroups and quadgroups, without what says so before
// their name.
var exchangeNames = map[string]operation{
	"sum": opSum, "product": opProduct, "min": opMin, "max": opMax, "and": opAnd, "or": opOr, "xor": opXor,
	"prefix_inclusive_sum": opPrefixInclusiveSum, "prefix_exclusive_sum": opPrefixExclusiveSum,
	"prefix_inclusive_product": opPrefixInclusiveProduct, "prefix_exclusive_product": opPrefixExclusiveProduct,
	"shuffle": opShuffle, "broadcast": opShuffle, "shuffle_up": opShuffleUp, "shuffle_down": opShuffleDown, "shuffle_xor": opShuffleXor,
	"shuffle_rotate_up": opShuffleRotateUp, "shuffle_rotate_down": opShuffleRotateDown,
	"shuffle_and_fill_up": opShuffleAndFillUp, "shuffle_and_fill_down": opShuffleAndFillDown,
	"broadcast_first": opBroadcastFirst, "any": opAny, "all": opAll, "ballot": opBallot, "is_first": opIsFirst,
	"active_threads_mask": opActiveThreads,
}

// siteOf returns what threads exchange that call the function; suspends is false of a function
// that only depends on the thread, which is then no site.
func siteOf(d llvm.Declaration) (s site, err error) {
	name := strings.TrimPrefix(strings.Trim(d.Name, `"`), "air.")
	switch {
	case name == "wg.barrier":
		return site{operation: threadgroupBarrier, width: simdWidth}, nil
	case name == strings.TrimPrefix(togetherMarker, "air."):
		return site{operation: opTogether, width: simdWidth}, nil
	case name == "simdgroup.barrier":
		return site{operation: simdgroupBarrier, width: simdWidth}, nil
	case strings.HasPrefix(name, "simdgroup_matrix_8x8_multiply_accumulate."):
		if len(d.Params) != 3 {
			return s, fmt.Errorf("air.%s has %d parameters", name, len(d.Params))
		}
		return site{operation: opMultiplyAccumulate, width: simdWidth, count: 2}, nil
	}
	s.width = simdWidth
	rest, ok := strings.CutPrefix(name, "simd_")
	if !ok {
		if rest, ok = strings.CutPrefix(name, "quad_"); !ok {
			return s, fmt.Errorf("air.%s is not a function that is known here", name)
		}
		s.width = 4
	}
	op, suffix, _ := strings.Cut(rest, ".")
	if s.operation, ok = exchangeNames[op]; !ok {
		return s, fmt.Errorf("air.%s is not a function that is known here", name)
	}
	switch s.operation {
	case opAny, opAll, opBallot, opIsFirst, opActiveThreads:
		s.element, s.count = elementNames["u.i8"], 1
		return s, nil
	}
	if len(d.Params) == 0 {
		return s, fmt.Errorf("air.%s has no parameter", name)
	}
	if s.operation == opShuffleAndFillUp || s.operation == opShuffleAndFillDown {
		if len(d.Params) < 2 {
			return s, fmt.Errorf("air.%s has one parameter", name)
		}
	}
	// f32, s.i32, u.v2i32, v4f32
	kind, typ := "f", suffix
	if before, after, ok := strings.Cut(suffix, "."); ok {
		kind, typ = before, after
	}
	s.count = 1
	if strings.HasPrefix(typ, "v") && len(typ) > 2 {
		s.count, typ = int(typ[1]-'0'), typ[2:]
	}
	if s.element, ok = elementNames[kind+"."+typ]; !ok {
		return s, fmt.Errorf("air.%s: values of type %q are not known here", name, suffix)
	}
	if n, _ := llvm.Elements(d.Params[0]); n != s.count || llvm.BytesOf(d.Params[0]) == 0 || llvm.BytesOf(d.Params[0]) > 32 {
		return s, fmt.Errorf("air.%s has a parameter of type %s", name, d.Params[0])
	}
	return s, nil
}

// room returns how many bytes a lane's operand takes at a site, and what it gets.
func room(s site, d llvm.Declaration) int {
	switch s.operation {
	case threadgroupBarrier, simdgroupBarrier, opTogether:
		return 1
	case opAny, opAll, opBallot, opIsFirst, opActiveThreads, opMultiplyAccumulate:
		return 8
	}
	return llvm.BytesOf(d.Params[0])
}

// operands are how a thread leaves what it brings to a site, and finds what it gets: IR text,
// given the values of the arguments. Values that it makes are named with the number n of the
// site. result is empty where nothing is got.
func operands(s site, d llvm.Declaration, args []string, n int, result string) (before, after []string) {
	at := func(area int) string { // the address of this lane's value
		name := fmt.Sprintf("%%x%d.%d", n, area)
		stride := s.stride
		if area == exchangeArgument {
			stride = 4
		}
		before = append(before,
			fmt.Sprintf("  %s.off = mul nuw nsw i64 %%mlxc.index, %d", name, stride),
			fmt.Sprintf("  %s.base = getelementptr i8, ptr %%mlxc.exchange, i64 %d", name, area),
			fmt.Sprintf("  %s = getelementptr i8, ptr %s.base, i64 %s.off", name, name, name))
		return name
	}
	store := func(typ, value string, area int) string {
		p := at(area)
		before = append(before, fmt.Sprintf("  store %s %s, ptr %s, align 1", typ, value, p))
		return p
	}
	switch s.operation {
	case threadgroupBarrier, simdgroupBarrier, opTogether:
		return nil, nil
	case opMultiplyAccumulate:
		return matrixOperands(s, d, args, n, result)
	case opAny, opAll, opBallot, opIsFirst, opActiveThreads:
		// A ballot of all that are here is who is active, and who is the first of them.
		value := "1"
		if len(args) > 0 && s.operation != opIsFirst && s.operation != opActiveThreads {
			before = append(before, fmt.Sprintf("  %%x%d.bit = zext i1 %s to i8", n, args[0]))
			value = fmt.Sprintf("%%x%d.bit", n)
		}
		store("i8", value, exchangeA)
		from := at(exchangeB)
		after = append(after, fmt.Sprintf("  %%x%d.got = load i64, ptr %s", n, from))
		switch d.Result {
		case "i64":
			after = append(after, fmt.Sprintf("  %s = add i64 %%x%d.got, 0", result, n))
		default:
			after = append(after, fmt.Sprintf("  %s = trunc i64 %%x%d.got to %s", result, n, d.Result))
		}
		return before, after
	}
	typ := d.Params[0]
	from := store(typ, args[0], exchangeA)
	next := 1
	switch s.operation {
	case opShuffleAndFillUp, opShuffleAndFillDown:
		store(typ, args[1], exchangeB)
		next = 2
	}
	if len(args) > next {
		// How far, or from which lane; the last argument of a fill is a modulus, which
		// stands in the upper half.
		wide := fmt.Sprintf("%%x%d.arg", n)
		before = append(before, fmt.Sprintf("  %s = zext %s %s to i32", wide, d.Params[next], args[next]))
		if len(args) > next+1 {
			before = append(before,
				fmt.Sprintf("  %s.m = zext %s %s to i32", wide, d.Params[next+1], args[next+1]),
				fmt.Sprintf("  %s.s = shl i32 %s.m, 16", wide, wide),
				fmt.Sprintf("  %s.o = or i32 %s, %s.s", wide, wide, wide))
			wide += ".o"
		}
		store("i32", wide, exchangeArgument)
	}
	after = append(after, fmt.Sprintf("  %s = load %s, ptr %s, align 1", result, typ, from))
	return before, after
}

// matrixOperands are those of d = a·b + c: the two elements that a lane has of each matrix.
func matrixOperands(s site, d llvm.Declaration, args []string, n int, result string) (before, after []string) {
	var at [3]string
	for i, area := range []int{exchangeA, exchangeB, exchangeC} {
		_, elem := llvm.Elements(d.Params[i])
		p := fmt.Sprintf("%%x%d.%d", n, i)
		before = append(before,
			fmt.Sprintf("  %s.off = mul nuw nsw i64 %%mlxc.index, %d", p, s.stride),
			fmt.Sprintf("  %s.base = getelementptr i8, ptr %%mlxc.exchange, i64 %d", p, area),
			fmt.Sprintf("  %s = getelementptr i8, ptr %s.base, i64 %s.off", p, p, p))
		for k := range 2 {
			v := fmt.Sprintf("%s.e%d", p, k)
			before = append(before, fmt.Sprintf("  %s = extractelement %s %s, i32 %d", v, d.Params[i], args[i], k))
			if elem != "float" {
				before = append(before, fmt.Sprintf("  %s.w = fpext %s %s to float", v, elem, v))
				v += ".w"
			}
			before = append(before,
				fmt.Sprintf("  %s.p%d = getelementptr float, ptr %s, i64 %d", p, k, p, k),
				fmt.Sprintf("  store float %s, ptr %s.p%d, align 4", v, p, k))
		}
		at[i] = p
	}
	_, elem := llvm.Elements(d.Result)
	last := "poison"
	for k := range 2 {
		v := fmt.Sprintf("%%x%d.r%d", n, k)
		after = append(after, fmt.Sprintf("  %s = load float, ptr %s.p%d, align 4", v, at[2], k))
		if elem != "float" {
			after = append(after, fmt.Sprintf("  %s.n = fptrunc float %s to %s", v, v, elem))
			v += ".n"
		}
		name := result
		if k == 0 {
			name = fmt.Sprintf("%%x%d.half", n)
		}
		after = append(after, fmt.Sprintf("  %s = insertelement %s %s, %s %s, i32 %d", name, d.Result, last, elem, v, k))
		last = name
	}
	return before, after
}

// matrix returns the body of a function of simdgroup matrices in which each lane does its
// part alone: IR text, given the values of the arguments. A lane l has the elements in row
// (l>>2 & 4) | (l>>1 & 3) and columns 2·((l>>2 & 2) | (l & 1)) and the next; if matrices lie by rows, in
// row l>>2 and columns 2·(l&3) and the next.
func matrix(d llvm.Declaration, args []string, n, result string, rows bool) (lines []string, err error) {
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
			emit("%s.v%d = select i1 %s.d%d, %s %s, %s %s", p, k, p, k, elem, args[0], elem, zero(elem))
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

// zero is the literal 0 of a floating type.
func zero(elem string) string {
	switch elem {
	case "half":
		return "0xH0000"
	case "bfloat":
		return "0xR0000"
	}
	return "0.0"
}
