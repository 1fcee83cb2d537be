package host

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// room returns how many bytes a lane's operand takes at a site, and what it gets.
func room(s air.Site, d llvm.Declaration) int {
	switch s.Operation {
	case air.ThreadgroupBarrier, air.SimdgroupBarrier, air.OpTogether:
		return 1
	case air.OpAny, air.OpAll, air.OpBallot, air.OpIsFirst, air.OpActiveThreads, air.OpMultiplyAccumulate:
		return 8
	}
	return llvm.BytesOf(d.Params[0])
}

// operands returns the lines of IR text that stand before and after a site: before, they store the arguments, whose
// values are args, for the exchange; after, they load its result. The number n of the site makes their names
// unique. result is empty if the exchange has no result.
func operands(s air.Site, d llvm.Declaration, args []string, n int, result string) (before, after []string) {
	at := func(area int) string { // the address of this lane's value
		name := fmt.Sprintf("%%x%d.%d", n, area)
		stride := s.Stride
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
	switch s.Operation {
	case air.ThreadgroupBarrier, air.SimdgroupBarrier, air.OpTogether:
		return nil, nil
	case air.OpMultiplyAccumulate:
		return matrixOperands(s, d, args, n, result)
	case air.OpAny, air.OpAll, air.OpBallot, air.OpIsFirst, air.OpActiveThreads:
		// A ballot of all that are here is who is active, and who is the first of them.
		value := "1"
		if len(args) > 0 && s.Operation != air.OpIsFirst && s.Operation != air.OpActiveThreads {
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
	switch s.Operation {
	case air.OpShuffleAndFillUp, air.OpShuffleAndFillDown:
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
func matrixOperands(s air.Site, d llvm.Declaration, args []string, n int, result string) (before, after []string) {
	var at [3]string
	for i, area := range []int{exchangeA, exchangeB, exchangeC} {
		_, elem := llvm.Elements(d.Params[i])
		p := fmt.Sprintf("%%x%d.%d", n, i)
		before = append(before,
			fmt.Sprintf("  %s.off = mul nuw nsw i64 %%mlxc.index, %d", p, s.Stride),
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
