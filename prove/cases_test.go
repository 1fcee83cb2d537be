package prove_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/prove"
)

// caseHead is the head of the graphs of TestChecks.
const caseHead = `mlxt 1

graph g {
  param $n u32 in [1, 8]
  param $p f32 in [0, 1]
  param $q f32 in [0, 1]
  memory %x input 2048
  memory %s weight 256 f32[64] = random seed 1
  memory %ones weight 256 f32[64] = fill 0x3f800000
  memory %twos weight 256 f32[64] = fill 0x40000000
  memory %y output 2048
  memory %t scratch 2048
  memory %u scratch 2048
  kernel @looped builtin "rms_loopedfloat32" args(0 x: device f32 read, 1 w: device f32 read, 2 out: device f32 write, 3 eps: constant f32, 4 axis_size: constant u32, 5 w_stride: constant u32)
  kernel @mul builtin "vv_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @add builtin "vv_Addfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)
  kernel @silu builtin "v_Silufloat32float32" args(0 in: device f32 read, 1 out: device f32 write)
  kernel @bmul builtin "g2_Multiplyfloat32" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write, 3 a_strides: constant i64[2], 4 b_strides: constant i64[2])
  kernel @user source "user.metal" sha256 0000000000000000000000000000000000000000000000000000000000000000 "user_kernel" args(0 src: device f32 read, 1 dst: device f32 write, 0 shared: threadgroup f32)
  kernel @other source "user.metal" sha256 0000000000000000000000000000000000000000000000000000000000000000 "user_kernel" args(0 src: device f32 read, 1 dst: device i32 write, 0 shared: threadgroup f32)
  kernel @const source "user.metal" sha256 0000000000000000000000000000000000000000000000000000000000000000 "const_kernel" args(0 src: device f32 read, 1 dst: device f32 write, 2 c: constant f32)
  kernel @two source "user.metal" sha256 0000000000000000000000000000000000000000000000000000000000000000 "two_kernel" constants(0: u32 1) args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)

`

// sometimes is a dispatch that writes the first 8 to 64 bytes of a memory, or the first 8 and rows behind them, and binds 32 bytes of it elsewhere too.
func sometimes(memory string, at int, rows ...string) string {
	writes := append(rows, "0:8*$n")[0]
	if len(rows) > 0 {
		writes = "0:8], must %t[" + writes
	}
	return strings.NewReplacer("%t", "%"+memory, "FROM", fmt.Sprint(at), "TO", fmt.Sprint(at+32)).Replace(
		"  #0 @two (a = %x[0:256], b = %t[FROM:TO], c = %t[0:64])" + one + "\n      effects complete reads %x[0:256] writes must %t[" + writes + "]\n" +
			"  barrier\n  #1 copy %t[0:8] -> %y[0:8]\n  barrier\n")
}

func caseGraph(t *testing.T, text string) *ir.Graph {
	if !strings.HasPrefix(text, "mlxt") {
		text = caseHead + text
	}
	m, err := mlxt.Parse(context.Background(), "test", []byte(text+"}\n"))
	require.NoError(t, err, text)
	require.NoError(t, m.Graphs[0].Check(), text)
	return m.Graphs[0]
}

// Parts of the commands in the cases: grids, and the effects of a kernel without
// declaration.
const (
	row  = " grid threads [64, 1, 1] of [64, 1, 1]"
	one  = " grid threadgroups [1, 1, 1] of [32, 1, 1]"
	loop = " grid threadgroups [1, 1, 1] of [64, 1, 1]"
)

// lots returns n commands of unknown effects in one epoch. They come in pairs, whose
// second command is moved to another place if separate is set.
func lots(n int, separate bool) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  #%d @user (src = %%x[0:256], dst = %%y[0:256])%s\n", i, one)
		if separate && i%2 == 1 {
			b.WriteString("  barrier\n")
		}
	}
	return b.String()
}

// One case for each check: a pair of graphs that would be proved, or answered with
// other words, without that check.
func TestChecks(t *testing.T) {
	const (
		mulT     = "  #0 @mul (a = %x[0:256], b = %s[0:256], c = %t[0:256])" + row + "\n"
		barrier  = "  barrier\n"
		many     = "  param $k u32 in [0, 3500000]\n"
		rare     = many + "  memory %args argument 3500016 = values(3400001: u32 9)\n"
		readsY   = "\n      effects complete reads %x[0:256] writes must %y[0:256]\n"
		writesY  = "\n      effects complete writes must %y[0:256]\n"
		user     = "  #0 @user (src = %x[0:256], "
		readsT   = "\n      effects complete reads %x[0:256] writes must %t[0:256]\n"
		reads1   = "\n      effects complete reads %x[0:256] writes must %t[0:256]\n"
		unknown  = "@user (src = %t[0:256], dst = %y[0:256])" + one
		chainOf  = "  require $a1 - $i <= 0\n  require $a2 - $a1 <= 0\n  require -$a2 <= -2\n  require $b1 - $j <= 0\n  require $b2 - $b1 <= 0\n  require -$b2 <= -1\n"
		sixParam = "  param $i u32 in [0, 4]\n  param $j u32 in [0, 4]\n  param $a1 u32 in [0, 4]\n  param $a2 u32 in [0, 4]\n  param $b1 u32 in [0, 4]\n  param $b2 u32 in [0, 4]\n"
		rows     = "  #0 @bmul (a = %x[0:256*$i + 256*$j - 512], b = %s[0:256], c = %y[0:256*$i + 256*$j - 512], a_strides = [64, 1], b_strides = [0, 1]) grid threads [64, $i + $j - 2, 1] of [64, 1, 1]\n"
	)
	withParams := func(more string) string {
		return strings.Replace(caseHead, "  memory %x", sixParam+more+"  memory %x", 1) + rows
	}
	for _, c := range []struct {
		name          string
		before, after string
		want          prove.Verdict
		point         prove.Point
		text          string
	}{
		{"another number of params", "", strings.Replace(caseHead, "  memory %x", "  param $more u32 in [0, 1]\n  memory %x", 1), prove.Refused, prove.Interface, "3 params before, 4 after"},
		{"a copy made a computation", "  #0 copy %x[0:256] -> %y[0:256]\n", "  #0 @silu (in = %x[0:256], out = %y[0:256])" + row + "\n", prove.Refused, prove.Interface, "another kind of command"},
		{"a computation made a copy", "  #0 @silu (in = %x[0:256], out = %y[0:256])" + row + "\n", "  #0 copy %x[0:256] -> %y[0:256]\n", prove.Refused, prove.Interface, "another kind of command"},
		{"other threadgroup memory", "  #0 @user (src = %x[0:256], dst = %t[0:256]) threadgroup(0 = 16)" + one + reads1 + "  #1 copy %t[0:256] -> %y[0:256]\n",
			"  #0 @user (src = %x[0:256], dst = %t[0:256]) threadgroup(0 = 32)" + one + reads1 + "  barrier\n  #1 copy %t[0:256] -> %y[0:256]\n", prove.Refused, prove.Interface, "other threadgroup memory"},
		{"another slot", "  #0 @two (a = %x[0:256], c = %y[0:256])" + one + "\n      effects complete reads %x[0:256] writes must %y[0:256]\n",
			"  #0 @two (b = %x[0:256], c = %y[0:256])" + one + "\n      effects complete reads %x[0:256] writes must %y[0:256]\n", prove.Refused, prove.Interface, "other bindings"},
		{"a copy of another length", "  #0 copy %x[0:256] -> %y[0:256]\n", "  #0 copy %x[0:128] -> %y[0:128]\n", prove.Refused, prove.Interface, "another length"},
		{"a fill of another length", "  #0 fill %y[0:256] 0x01\n", "  #0 fill %y[0:128] 0x01\n", prove.Refused, prove.Interface, "another length"},
		{"a fill of another value", "  #0 fill %y[0:256] 0x01\n", "  #0 fill %y[0:256] 0x02\n", prove.Refused, prove.Interface, "another value"},
		{"a fill made a copy", "  #0 fill %y[0:256] 0x01\n", "  #0 copy %x[0:256] -> %y[0:256]\n", prove.Refused, prove.Interface, "another kind of command"},
		{"a view of another length", user + "dst = %y[0:256])" + one + "\n", "  #0" + strings.Replace(user[4:], "256", "128", 1) + "dst = %y[0:256])" + one + "\n", prove.Refused, prove.Interface, "a view of another length"},
		{"an argument that nobody can compare", rare + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %args[$k:$k + 4])" + one + "\n", rare + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = 0.0)" + one + "\n", prove.CannotTell, prove.Interface, "for all values of the params"},
		{"a grid that nobody can compare", many + user + "dst = %y[0:256]) grid threadgroups [ceildiv($k + 1, 1000000), 1, 1] of [32, 1, 1]\n", many + user + "dst = %y[0:256]) grid threadgroups [ceildiv($k + 2, 1000000), 1, 1] of [32, 1, 1]\n", prove.CannotTell, prove.Interface, "for all values of the params"},
		{"a grid written otherwise", many + user + "dst = %y[0:256]) grid threadgroups [ceildiv($k, 2), 1, 1] of [32, 1, 1]\n  barrier\n", many + user + "dst = %y[0:256]) grid threadgroups [ceildiv(2*$k, 4), 1, 1] of [32, 1, 1]\n  barrier\n", prove.Proved, 0, ""},
		{"bytes for a view", "  #0 @two (a = %x[0:256], b = [1.0], c = %y[0:256])" + one + "\n", "  #0 @two (a = %x[0:256], b = %s[0:4], c = %y[0:256])" + one + "\n", prove.Refused, prove.Interface, "other bindings"},
		{"other bytes", "  #0 @two (a = %x[0:256], b = [1.0], c = %y[0:256])" + one + "\n", "  #0 @two (a = %x[0:256], b = [2.0], c = %y[0:256])" + one + "\n", prove.Refused, prove.Interface, "another argument value"},
		{"another scalar", "  #0 @two (a = %x[0:256], b = $p, c = %y[0:256])" + one + "\n", "  #0 @two (a = %x[0:256], b = $q, c = %y[0:256])" + one + "\n", prove.Refused, prove.Interface, "another argument value"},
		{"a binding that the effects leave out, of another memory", "  #0 @two (a = %x[0:256], b = %x[256:512], c = %y[0:256])" + one + readsY, "  #0 @two (a = %x[0:256], b = %s[0:256], c = %y[0:256])" + one + readsY, prove.Refused, prove.Interface, "binds %s[0:256], which its effects leave out"},
		{"a binding that the effects leave out, further on", "  #0 @two (a = %x[0:256], b = %x[256:512], c = %y[0:256])" + one + readsY, "  #0 @two (a = %x[0:256], b = %x[512:768], c = %y[0:256])" + one + readsY, prove.Refused, prove.Interface, "binds %x[512:768], which its effects leave out"},
		{"a binding that the effects leave out, of which a constant is part", "  #1 fill %t[0:4] 0x01\n" + barrier + "  #0 @const (src = %t[0:256], dst = %y[0:256], c = %t[0:4])" + one + writesY + barrier, "  #1 fill %t[0:4] 0x01\n" + barrier + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + writesY + barrier, prove.Refused, prove.Interface, "binds %x[0:256], which its effects leave out"},
		{"a binding that the effects leave out, perhaps further on", many + "  #0 @two (a = %x[0:256], b = %x[256:512], c = %y[0:256])" + one + readsY, many + "  #0 @two (a = %x[0:256], b = %x[256 + 4*$n - 4*$n:512 + 4*$n - 4*$n], c = %y[0:256])" + one + readsY + "  barrier\n", prove.Proved, 0, ""},
		{"a binding that the effects leave out for some values of a param", sometimes("t", 32), sometimes("u", 32), prove.Refused, prove.Interface, "binds %u[32:64], which its effects leave out"},
		{"a binding in which rows lie, of which there may be none", sometimes("t", 32, "32:34; $n - 1 x 4"), sometimes("u", 32, "32:34; $n - 1 x 4"), prove.Refused, prove.Interface, "binds %u[32:64], which its effects leave out"},
		{"a binding in which rows lie, of which there are some", sometimes("t", 32, "32:34; $n x 4"), sometimes("u", 32, "32:34; $n x 4"), prove.Proved, 0, ""},
		{"a binding in which effects lie for all values of a param", sometimes("t", 0), sometimes("u", 0), prove.Proved, 0, ""},
		{"constants that the effects leave out, of another value", "  #1 fill %t[0:4] 0x01\n" + barrier + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + readsY + barrier, "  #2 fill %t[0:4] 0x02 from #7\n" + barrier + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + readsY + barrier, prove.Refused, prove.Coverage, "implements no command"},
		{"constants that the effects leave out, overwritten", "  #1 fill %t[0:4] 0x01\n" + barrier + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + readsY + barrier + "  #2 fill %t[0:4] 0x02\n" + barrier + "  #3 copy %t[0:4] -> %y[256:260]\n" + barrier,
			"  #1 fill %t[0:4] 0x01\n" + barrier + "  #2 fill %t[0:4] 0x02\n" + barrier + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + readsY + barrier + "  #3 copy %t[0:4] -> %y[256:260]\n" + barrier, prove.Refused, prove.Values, "gets its value from elsewhere"},
		{"constants that the effects leave out, perhaps overwritten", "  #1 fill %t[0:4] 0x01\n" + barrier + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + readsY + barrier + "  #2 fill %t[0:4*$n - 4] 0x02\n" + barrier + "  #3 copy %t[0:4] -> %y[256:260]\n" + barrier,
			"  #1 fill %t[0:4] 0x01\n" + barrier + "  #2 fill %t[0:4*$n - 4] 0x02\n" + barrier + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + readsY + barrier + "  #3 copy %t[0:4] -> %y[256:260]\n" + barrier, prove.CannotTell, prove.Values, "may get its value from elsewhere"},
		{"constants that the effects leave out, not ordered", "  #1 fill %t[0:4] 0x01\n" + barrier + "  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + readsY + barrier, "  #1 fill %t[0:4] 0x01\n  #0 @const (src = %x[0:256], dst = %y[0:256], c = %t[0:4])" + one + readsY + barrier, prove.Refused, prove.Order, "both touch %t[0:4]"},
		{"another argument table", "  #0 @user (src = %x[0:256], dst = %y[0:256])" + one + "\n      effects complete reads %x[0:256] writes must %y[0:256]\n",
			"  #0 @other (src = %x[0:256], dst = %y[0:256])" + one + "\n      effects complete reads %x[0:256] writes must %y[0:256]\n", prove.Refused, prove.Interface, "argument table"},

		{"a command of nobody, of unknown effects", "  #0 copy %x[0:256] -> %y[0:256]\n", "  #0 copy %x[0:256] -> %y[0:256]\n  barrier\n  #9 @user (src = %x[0:256], dst = %u[0:256])" + one + "\n", prove.Refused, prove.Coverage, "implements no command"},
		{"a command of nobody, of effects that only after stores", "  #0 copy %x[0:256] -> %y[0:256]\n", "  #0 copy %x[0:256] -> %y[0:256]\n  barrier\n  #9 @user (src = %x[0:256], dst = %u[0:256])" + one + "\n      effects complete reads %x[0:256] writes must %u[0:256]\n", prove.Refused, prove.Coverage, "what it touches only after says"},
		{"one command run twice", mulT + barrier + "  #1 @add (a = %t[0:256], b = %s[0:256], c = %y[0:256])" + row + "\n  #2 @add (a = %t[0:256], b = %t[0:256], c = %y[256:512])" + row + "\n" + barrier,
			mulT + "  #3 @mul (a = %x[0:256], b = %s[0:256], c = %u[0:256])" + row + " from #0\n" + barrier + "  #1 @add (a = %t[0:256], b = %s[0:256], c = %y[0:256])" + row + "\n  #2 @add (a = %u[0:256], b = %u[0:256], c = %y[256:512])" + row + "\n" + barrier,
			prove.Proved, 0, ""},
		{"a kernel that nobody declares run twice", user + "dst = %t[0:256])" + one + readsT + barrier + "  #1 @add (a = %t[0:256], b = %s[0:256], c = %y[0:256])" + row + "\n  #2 @add (a = %t[0:256], b = %t[0:256], c = %y[256:512])" + row + "\n" + barrier,
			user + "dst = %t[0:256])" + one + readsT + "  #3" + user[4:] + "dst = %u[0:256])" + one + " from #0\n" + strings.Replace(readsT, "%t", "%u", 1) + barrier + "  #1 @add (a = %t[0:256], b = %s[0:256], c = %y[0:256])" + row + "\n  #2 @add (a = %u[0:256], b = %u[0:256], c = %y[256:512])" + row + "\n" + barrier,
			prove.Refused, prove.Coverage, "implemented twice"},
		{"one of two that compute the same left out", user + "dst = %t[0:256])" + one + readsT + "  #3" + user[4:] + "dst = %u[0:256])" + one + strings.Replace(readsT, "%t", "%u", 1) + barrier + "  #1 @two (a = %t[0:256], b = %u[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %u[0:256] writes must %y[0:256]\n" + barrier,
			user + "dst = %t[0:256])" + one + readsT + barrier + "  #1 @two (a = %t[0:256], b = %t[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %t[0:256] writes must %y[0:256]\n" + barrier, prove.Proved, 0, ""},
		{"one of two that compute the same put in", user + "dst = %t[0:256])" + one + readsT + barrier + "  #1 @two (a = %t[0:256], b = %t[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %t[0:256] writes must %y[0:256]\n" + barrier,
			user + "dst = %t[0:256])" + one + readsT + "  #3" + user[4:] + "dst = %u[0:256])" + one + strings.Replace(readsT, "%t", "%u", 1) + barrier + "  #1 @two (a = %t[0:256], b = %u[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %u[0:256] writes must %y[0:256]\n" + barrier, prove.Refused, prove.Coverage, "implements no command"},
		{"a copy left out", user + "dst = %t[0:256])" + one + readsT + barrier + "  #3 copy %t[0:256] -> %u[0:256]\n" + barrier + "  #1 @two (a = %t[0:256], b = %u[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %u[0:256] writes must %y[0:256]\n" + barrier,
			user + "dst = %t[0:256])" + one + readsT + barrier + "  #1 @two (a = %t[0:256], b = %t[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %t[0:256] writes must %y[0:256]\n" + barrier, prove.Proved, 0, ""},
		{"a kernel that might be a copy left out", user + "dst = %t[0:256])" + one + readsT + barrier + "  #3 @user (src = %t[0:256], dst = %u[0:256])" + one + "\n effects complete reads %t[0:256] writes must %u[0:256]\n" + barrier + "  #1 @two (a = %t[0:256], b = %u[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %u[0:256] writes must %y[0:256]\n" + barrier,
			user + "dst = %t[0:256])" + one + readsT + barrier + "  #1 @two (a = %t[0:256], b = %t[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %t[0:256] writes must %y[0:256]\n" + barrier, prove.Refused, prove.Values, "elsewhere"},
		{"a copy of half left out", user + "dst = %t[0:256])" + one + readsT + barrier + "  #4 fill %u[0:256] 0x00\n" + barrier + "  #3 copy %t[0:128] -> %u[0:128]\n" + barrier + "  #1 @two (a = %t[0:256], b = %u[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %u[0:256] writes must %y[0:256]\n" + barrier,
			user + "dst = %t[0:256])" + one + readsT + barrier + "  #1 @two (a = %t[0:256], b = %t[0:256], c = %y[0:256])" + one + "\n effects complete reads %t[0:256], %t[0:256] writes must %y[0:256]\n" + barrier, prove.Refused, prove.Values, "elsewhere"},
		{"a command of unknown effects left out", "  #0 @user (src = %x[0:256], dst = %y[0:256])" + one + "\n", "", prove.Refused, prove.Coverage, "left out"},
		{"a foreign view that lost its alignment", "  #0 @user (src = %x[0:256], dst = %t[0:256])" + one + reads1 + barrier + "  #1 copy %t[0:256] -> %y[0:256]\n",
			"  #0 @user (src = %x[0:256], dst = %t[2:258])" + one + "\n      effects complete reads %x[0:256] writes must %t[2:258]\n" + barrier + "  #1 copy %t[2:258] -> %y[0:256]\n", prove.CannotTell, prove.Coverage, "no declaration"},
		{"what a command of unknown effects finds", "  #0 fill %t[0:256] 0x01\n" + barrier + "  #1 " + unknown + "\n", "  #1 " + unknown + "\n", prove.CannotTell, prove.Values, "which it binds"},
		{"may-writes left out", "  #0 fill %t[0:256] 0x01\n" + barrier + "  #1 @user (src = %x[0:256], dst = %t[0:256])" + one + "\n      effects complete reads %x[0:256] writes may %t[0:256]\n" + barrier + "  #2 copy %t[0:256] -> %y[0:256]\n",
			"  #0 fill %t[0:256] 0x01\n" + barrier + "  #2 copy %t[0:256] -> %y[0:256]\n", prove.CannotTell, prove.Values, "may get its value"},
		{"bytes between two writes that params lengthen, elsewhere", "  #0 fill %t[0:4*$n] 0x01\n  #1 fill %t[64:4*$n + 64] 0x02\n" + barrier + "  #2 copy %t[0:256] -> %y[0:256]\n",
			"  #0 fill %u[0:4*$n] 0x01\n  #1 fill %u[64:4*$n + 64] 0x02\n" + barrier + "  #2 copy %u[0:256] -> %y[0:256]\n", prove.CannotTell, prove.Values, "may get its value"},
		{"bytes beside a write that params lengthen, elsewhere", "  #0 fill %t[0:4*$n] 0x01\n" + barrier + "  #1 copy %t[0:256] -> %y[0:256]\n",
			"  #0 fill %u[0:4*$n] 0x01\n" + barrier + "  #1 copy %u[0:256] -> %y[0:256]\n", prove.CannotTell, prove.Values, "may get its value"},
		{"overlapping writes that changed places", "  #0 fill %t[0:128] 0x01\n" + barrier + "  #1 fill %t[64:256] 0x02\n" + barrier + "  #2 copy %t[0:256] -> %y[0:256]\n",
			"  #1 fill %t[64:256] 0x02\n" + barrier + "  #0 fill %t[0:128] 0x01\n" + barrier + "  #2 copy %t[0:256] -> %y[0:256]\n", prove.Refused, prove.Values, "gets its value from elsewhere"},
		{"rows that one graph's constraints show to be", withParams(chainOf + "  require -$i <= -2\n  require -$j <= -1\n"), withParams(chainOf), prove.CannotTell, prove.Values, "constraints between params"},

		{"threads of a looped sum", "  #0 @looped (x = %x[0:256], w = %ones[0:256], out = %t[0:256], eps = 1e-05, axis_size = 64, w_stride = 1)" + loop + "\n" + barrier + "  #1 @mul (a = %t[0:256], b = %s[0:256], c = %y[0:256])" + row + "\n",
			"  #1 @looped (x = %x[0:256], w = %s[0:256], out = %y[0:256], eps = 1e-05, axis_size = 64, w_stride = 1) grid threadgroups [1, 1, 1] of [128, 1, 1] from #0, #1\n", prove.Refused, prove.Fusion, "its term is"},
		{"a value half of which is overwritten", "  #0 @mul (a = %x[0:256], b = %ones[0:256], c = %t[0:256])" + row + "\n" + barrier + "  #2 fill %t[128:256] 0x01\n" + barrier + "  #1 @mul (a = %t[0:256], b = %s[0:256], c = %y[0:256])" + row + "\n",
			"  #1 @mul (a = %x[0:256], b = %s[0:256], c = %y[0:256])" + row + " from #0, #1\n  #2 fill %t[128:256] 0x01\n", prove.CannotTell, prove.Fusion, "of more than one write"},
		{"the same threads", "  #0 @looped (x = %x[0:256], w = %ones[0:256], out = %t[0:256], eps = 1e-05, axis_size = 64, w_stride = 1)" + loop + "\n" + barrier + "  #1 @mul (a = %t[0:256], b = %s[0:256], c = %y[0:256])" + row + "\n",
			"  #1 @looped (x = %x[0:256], w = %s[0:256], out = %y[0:256], eps = 1e-05, axis_size = 64, w_stride = 1)" + loop + " from #0, #1\n", prove.Proved, 0, ""},
		{"another number of the host's", "  #0 @mul (a = $p, b = %ones[0:4], c = %t[0:4]) grid threads [1, 1, 1] of [1, 1, 1]\n" + barrier + "  #1 @mul (a = %t[0:4], b = %s[0:4], c = %y[0:4]) grid threads [1, 1, 1] of [1, 1, 1]\n",
			"  #1 @mul (a = $q, b = %s[0:4], c = %y[0:4]) grid threads [1, 1, 1] of [1, 1, 1] from #0, #1\n", prove.CannotTell, prove.Fusion, "bound to a scalar"},
		{"a fill read byte by byte", "  #0 fill %t[0:256] 0x01\n" + barrier + "  #1 copy %t[0:256] -> %y[0:256]\n", "  #1 copy %s[0:256] -> %y[0:256] from #0, #1\n", prove.CannotTell, prove.Fusion, "as u8"},
		{"floats read byte by byte", mulT + barrier + "  #1 copy %t[0:256] -> %y[0:256]\n", "  #1 copy %s[0:256] -> %y[0:256] from #0, #1\n", prove.CannotTell, prove.Fusion, "is f32, read as u8"},
		{"halves of two floats", "  #0 @mul (a = %ones[0:256], b = %twos[0:256], c = %t[0:256])" + row + "\n" + barrier + "  #1 copy %t[2:254] -> %y[0:252]\n",
			"  #1 @mul (a = %ones[0:252], b = %twos[0:252], c = %y[0:252]) grid threads [63, 1, 1] of [63, 1, 1] from #0, #1\n", prove.CannotTell, prove.Fusion, "between its elements"},
		{"two fills made one", "  #0 fill %y[0:256] 0x01\n  #1 fill %y[256:512] 0x01\n", "  #1 fill %y[0:512] 0x01 from #0, #1\n", prove.CannotTell, prove.Fusion, "no declared term"},

		// #2 was recorded beside #1, not beside #0.
		{"all that the unknown runs beside", "  #0 fill %t[0:256] 0x01\n" + barrier + "  #1 fill %u[0:256] 0x01\n  #2 " + unknown + "\n", "  #0 fill %t[0:256] 0x01\n  #1 fill %u[0:256] 0x01\n  #2 " + unknown + "\n", prove.Refused, prove.Order, "#0 fill and #2"},
		{"what races behind the unknown's back", "  #0 " + unknown + "\n  #1 fill %t[0:256] 0x01\n" + "  #2 copy %t[0:256] -> %y[256:512]\n", "  #0 " + unknown + "\n  #1 fill %t[0:256] 0x01\n" + "  #2 copy %t[0:256] -> %y[256:512]\n", prove.Refused, prove.Order, "both touch %t"},
		{"a race after many that were recorded", lots(12, false) + barrier + "  #20 fill %t[0:256] 0x01\n" + barrier + "  #21 copy %t[0:256] -> %y[0:256]\n", lots(12, false) + barrier + "  #20 fill %t[0:256] 0x01\n  #21 copy %t[0:256] -> %y[0:256]\n", prove.Refused, prove.Order, "both touch %t"},
		{"somebody else's place beside the unknown", "  #0 " + unknown + "\n  #1 fill %u[0:256] 0x01\n", "  #0 " + unknown + "\n  #2 fill %t[0:256] 0x02 from #1\n", prove.Refused, prove.Order, "#0 user_kernel and #2 fill are not ordered"},
		{"unknown commands, recorded without order", lots(12, false), lots(12, false), prove.Proved, 0, ""},
		{"unknown commands, order dropped", lots(12, true), lots(12, false), prove.Refused, prove.Order, "are not ordered"},
		{"too many to look at", lots(3000, false), lots(3000, false), prove.CannotTell, prove.Order, "pairs of commands"},

		// The effects list the bytes of both views as one range.
		{"a range that two views share", "  #0 fill %t[0:512] 0x01\n" + barrier + "  #1 @two (a = %t[0:256], b = %t[128:384], c = %y[0:256])" + one + "\n      effects complete reads %t[0:256] writes must %y[0:256]\n",
			"  #0 fill %t[0:512] 0x01\n" + barrier + "  #1 @two (a = %t[0:256], b = %u[128:384], c = %y[0:256])" + one + "\n      effects complete reads %t[0:256] writes must %y[0:256]\n", prove.CannotTell, prove.Coverage, "no declaration"},
		{"a range that begins in a view and ends outside", "  #0 fill %t[0:512] 0x01\n" + barrier + "  #1 @two (a = %t[0:256], c = %y[0:256])" + one + "\n      effects complete reads %t[0:512] writes must %y[0:256]\n",
			"  #0 fill %t[0:512] 0x01\n" + barrier + "  #1 @two (a = %u[0:256], c = %y[0:256])" + one + "\n      effects complete reads %t[0:512] writes must %y[0:256]\n", prove.CannotTell, prove.Coverage, "no declaration"},
		{"a range in no view, of a memory that is another now", "  #0 fill %t[0:256] 0x01\n" + barrier + "  #1 @two (a = %x[0:256], c = %y[0:256])" + one + "\n      effects complete reads %t[0:256] writes must %y[0:256]\n",
			strings.Replace(caseHead, "%t scratch 2048", "%t scratch 4096", 1) + "  #0 fill %t[0:256] 0x01\n" + barrier + "  #1 @two (a = %x[0:256], c = %y[0:256])" + one + "\n      effects complete reads %t[0:256] writes must %y[0:256]\n", prove.CannotTell, prove.Coverage, "no declaration"},
		{"effects that nobody can vouch for", "  #0 @mul (a = %x[0:256], b = %s[0:256], c = %y[0:128])" + row + "\n", "  #0 @mul (a = %x[0:256], b = %s[0:256], c = %y[0:128])" + row + "\n      effects complete\n", prove.Refused, prove.Interface, "complete effects are stored"},
		{"effects that the recording vouches for", "  #0 @mul (a = %x[0:256], b = %s[0:256], c = %y[0:128])" + row + "\n      effects complete\n", "  #0 @mul (a = %x[0:256], b = %s[0:256], c = %y[0:128])" + row + "\n      effects complete\n", prove.Proved, 0, ""},
	} {
		r := prove.Check(context.Background(), caseGraph(t, c.before), caseGraph(t, c.after), prove.Options{})
		assert.Equal(t, c.want.String(), r.Verdict.String(), "%s: %s", c.name, r)
		if c.want != prove.Proved && len(r.Findings) > 0 {
			assert.Equal(t, c.point.String(), r.Findings[0].Point.String(), "%s: %s", c.name, r)
			assert.Contains(t, r.Findings[0].Text, c.text, c.name)
		}
	}
}

// A proof lists what it assumes, and a strict one assumes nothing.
func TestChecksAssumptions(t *testing.T) {
	const unknown = "@user (src = %t[0:256], dst = %y[0:256])" + one + "\n"
	for _, c := range []struct {
		name, before, after string
		want                []string
	}{
		{"nothing", "  #0 copy %x[0:256] -> %y[0:256]\n  barrier\n", "  #0 copy %x[0:256] -> %y[0:256]\n  barrier\n", nil},
		{"an order", "  #0 fill %u[0:256] 0x01\n  #1 " + unknown + "  barrier\n", "  #0 fill %u[0:256] 0x01\n  #1 " + unknown + "  barrier\n", []string{"the recording is race-free at #0,#1"}},
		{"the end of a replay", "  #0 copy %x[0:256] -> %y[0:256]\n", "  #0 copy %x[0:256] -> %y[0:256]\n", []string{"a replay begins after the one before it has ended"}},
		{"what the unknown reads", "  #0 fill %u[0:256] 0x01\n  barrier\n  #1 " + unknown + "  barrier\n", "  #1 " + unknown + "  barrier\n", []string{"#1 reads no memory that it does not bind"}},
		{"many", lots(12, false) + "  barrier\n", lots(12, false) + "  barrier\n", []string{
			"the recording is race-free at #0,#1", "the recording is race-free at #1,#2", "the recording is race-free at #2,#3", "the recording is race-free at #3,#4", "the recording is race-free at #4,#5",
			"the recording is race-free at #5,#6", "the recording is race-free at #6,#7", "the recording is race-free at #7,#8", "the recording is race-free at #8,#9", "the recording is race-free at #9,#10",
			"the recording is race-free at 1 other places",
		}},
	} {
		r := prove.Check(context.Background(), caseGraph(t, c.before), caseGraph(t, c.after), prove.Options{})
		assert.Equal(t, "proved", r.Verdict.String(), "%s: %s", c.name, r)
		assert.Equal(t, c.want, r.Assumptions, c.name)
		r = prove.Check(context.Background(), caseGraph(t, c.before), caseGraph(t, c.after), prove.Options{Strict: true})
		assert.Equal(t, len(c.want) == 0, r.Verdict == prove.Proved, "%s: %s", c.name, r)
		assert.Empty(t, r.Assumptions, c.name)
	}
}
