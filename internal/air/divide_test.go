package air

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/internal/llvm"
)

// TestDivide: a division that may have no result gets a divisor with which it has one.
func TestDivide(t *testing.T) {
	f := &llvm.Function{Lines: []string{
		"  %q = udiv i32 %a, %b, !dbg !4",
		"  %r = sdiv exact i64 %a, 8",
		"  %s = srem <2 x i16> %v, %w",
		"  %t = sdiv i32 %a, 0",
		"  %u = sdiv i32 %a, -1",
		"  %d = fdiv float %x, %y",
	}}
	divide(f)
	assert.Equal(t, []string{
		"  %mlxc.q.zero = icmp eq i32 %b, 0, !dbg !4",
		"  %mlxc.q.by = select i1 %mlxc.q.zero, i32 1, i32 %b, !dbg !4",
		"  %q = udiv i32 %a, %mlxc.q.by, !dbg !4",
		"  %r = sdiv exact i64 %a, 8",
		"  %mlxc.s.zero = icmp eq <2 x i16> %w, splat (i16 0)",
		"  %mlxc.s.minus = icmp eq <2 x i16> %w, splat (i16 -1)",
		"  %mlxc.s.least = icmp eq <2 x i16> %v, splat (i16 -32768)",
		"  %mlxc.s.over = and <2 x i1> %mlxc.s.minus, %mlxc.s.least",
		"  %mlxc.s.none = or <2 x i1> %mlxc.s.zero, %mlxc.s.over",
		"  %mlxc.s.by = select <2 x i1> %mlxc.s.none, <2 x i16> splat (i16 1), <2 x i16> %w",
		"  %s = srem <2 x i16> %v, %mlxc.s.by",
		"  %mlxc.t.zero = icmp eq i32 0, 0",
		"  %mlxc.t.minus = icmp eq i32 0, -1",
		"  %mlxc.t.least = icmp eq i32 %a, -2147483648",
		"  %mlxc.t.over = and i1 %mlxc.t.minus, %mlxc.t.least",
		"  %mlxc.t.none = or i1 %mlxc.t.zero, %mlxc.t.over",
		"  %mlxc.t.by = select i1 %mlxc.t.none, i32 1, i32 0",
		"  %t = sdiv i32 %a, %mlxc.t.by",
		"  %mlxc.u.zero = icmp eq i32 -1, 0",
		"  %mlxc.u.minus = icmp eq i32 -1, -1",
		"  %mlxc.u.least = icmp eq i32 %a, -2147483648",
		"  %mlxc.u.over = and i1 %mlxc.u.minus, %mlxc.u.least",
		"  %mlxc.u.none = or i1 %mlxc.u.zero, %mlxc.u.over",
		"  %mlxc.u.by = select i1 %mlxc.u.none, i32 1, i32 -1",
		"  %u = sdiv i32 %a, %mlxc.u.by",
		"  %d = fdiv float %x, %y",
	}, f.Lines)
}
