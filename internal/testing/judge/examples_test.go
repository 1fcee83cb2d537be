package judge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/judge"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
)

const interfaceText = `
  param $pos u32 in [0, 2]
  param $n u32 in [1, 2]
  require $pos + $n <= 3
  memory %x input 16
  memory %w weight 16 = fill 0x3f800000
  memory %y output 16
  memory %z output 16
  memory %st state 16 = fill 0x00000000
  memory %s scratch 32
  memory %t scratch 32
  memory %low alias %s + 0 size 16
  memory %high alias %s + 8 size 16
`

// spread expands the short form of strides, st[0:4;2@8], to that of mlxt.
var spread = strings.NewReplacer(";", "; ", "@", " x ")

// write makes a graph from short lines. "f x[0:16] w[0:4] -> s[0:16]" is a dispatch of
// kernel f that reads and must-writes these ranges; "~s[0:4]" is a may-write; "?" after
// the kernel's name leaves the effects out. All other lines are mlxt.
func write(t testing.TB, decls, body string) *ir.Graph {
	var b, nodes strings.Builder
	kernels := map[string]bool{}
	n := 0
	for _, line := range strings.Split(body, "\n") {
		line = strings.TrimSpace(line)
		before, after, isDispatch := strings.Cut(line, " -> ")
		f := strings.Fields(before)
		switch {
		case line == "":
		case strings.HasPrefix(line, "copy ") || strings.HasPrefix(line, "fill "):
			fmt.Fprintf(&nodes, "  #%d %s\n", n, line)
			n++
		case !isDispatch:
			fmt.Fprintf(&nodes, "  %s\n", line)
		default:
			var args, binds, reads, writes []string
			name, unknown := strings.CutSuffix(f[0], "?")
			for i, r := range append(f[1:], strings.Fields(after)...) {
				access := "read"
				r, may := strings.CutPrefix(r, "~")
				switch {
				case may:
					access = "readwrite"
					writes = append(writes, "may %"+r)
				case i >= len(f)-1:
					access = "write"
					writes = append(writes, "must %"+r)
				default:
					reads = append(reads, "%"+r)
				}
				view, _, _ := strings.Cut(r, "[")
				if strings.Contains(r, ";") { // a strided range: bind all of the memory
					binds = append(binds, fmt.Sprintf("a%d = %%%s[0:16]", i, view))
				} else {
					binds = append(binds, fmt.Sprintf("a%d = %%%s", i, r))
				}
				args = append(args, fmt.Sprintf("%d a%d: device f32 %s", i, i, access))
			}
			fmt.Fprintf(&nodes, "  #%d @%s (%s) grid threadgroups [1, 1, 1] of [32, 1, 1]\n", n, name, strings.Join(binds, ", "))
			if !unknown {
				e := "      effects complete"
				if len(reads) > 0 {
					e += " reads " + spread.Replace(strings.Join(reads, ", "))
				}
				fmt.Fprintf(&nodes, "%s writes %s\n", e, spread.Replace(strings.Join(writes, ", ")))
			}
			n++
			if !kernels[name] {
				kernels[name] = true
				fmt.Fprintf(&b, "  kernel @%s source \"k.metal\" sha256 %064d %q args(%s)\n", name, 0, name, strings.Join(args, ", "))
			}
		}
	}
	src := "mlxt 1\n\ngraph g {" + decls + b.String() + "\n" + nodes.String() + "}\n"
	m, err := mlxt.Parse(context.Background(), "test.mlxt", []byte(src))
	require.NoError(t, err, src)
	return m.Graphs[0]
}

// chain is x → s → y, with a barrier at the end for the next replay.
const chain = `
f x[0:16] -> s[0:16]
barrier
g s[0:16] -> y[0:16]
barrier`

var examples = []struct {
	name          string
	before, after string
	want          judge.Verdict
}{
	{"the same", chain, chain, judge.Harmless},
	{"a barrier too many", chain, "barrier" + chain, judge.Harmless},
	{"RAW: the barrier is gone", chain, `
f x[0:16] -> s[0:16]
g s[0:16] -> y[0:16]
barrier`, judge.Harmful},
	{"WAR: the barrier is gone", `
f x[0:16] -> s[0:16]
barrier
g s[0:16] -> y[0:16]
barrier
f w[0:16] -> s[0:16]
barrier
g s[0:16] -> z[0:16]
barrier`, `
f x[0:16] -> s[0:16]
barrier
g s[0:16] -> y[0:16]
f w[0:16] -> s[0:16]
barrier
g s[0:16] -> z[0:16]
barrier`, judge.Harmful},
	{"WAW: the barrier is gone", `
f x[0:16] -> y[0:16]
barrier
f w[0:16] -> y[0:4]
barrier`, `
f x[0:16] -> y[0:16]
f w[0:16] -> y[0:4]
barrier`, judge.Harmful},
	{"a swap of two that depend", chain, `
g s[0:16] -> y[0:16]
barrier
f x[0:16] -> s[0:16]
barrier`, judge.Harmful},
	{"a swap of two that do not", `
f x[0:16] -> y[0:16]
barrier
g w[0:16] -> z[0:16]
barrier`, `
g w[0:16] -> z[0:16]
f x[0:16] -> y[0:16]
barrier`, judge.Harmless},
	{"renamed into fresh bytes, so that two chains overlap", `
f x[0:16] -> s[0:16]
barrier
g s[0:16] -> y[0:16]
barrier
f w[0:16] -> s[0:16]
barrier
g s[0:16] -> z[0:16]
barrier`, `
f x[0:16] -> s[0:16]
f w[0:16] -> s[16:32]
barrier
g s[0:16] -> y[0:16]
g s[16:32] -> z[0:16]
barrier`, judge.Harmless},
	{"renamed into a live range", `
f x[0:16] -> s[0:16]
f w[0:16] -> s[16:32]
barrier
g s[0:16] -> y[0:16]
g s[16:32] -> z[0:16]
barrier`, `
f x[0:16] -> s[0:16]
barrier
f w[0:16] -> s[8:24]
barrier
g s[0:16] -> y[0:16]
g s[8:24] -> z[0:16]
barrier`, judge.Harmful},
	{"wrap-around: nothing orders the next replay after this one", chain, `
f x[0:16] -> s[0:16]
barrier
g s[0:16] -> y[0:16]`, judge.Harmful},
	{"wrap-around: a barrier at the start does as well", chain, `
barrier
f x[0:16] -> s[0:16]
barrier
g s[0:16] -> y[0:16]`, judge.Harmless},
	{"a commit that orders nothing in place of a barrier", chain, `
f x[0:16] -> s[0:16]
commit
g s[0:16] -> y[0:16]
barrier`, judge.Harmful},
	{"a commit that orders nothing beside a barrier", chain, `
f x[0:16] -> s[0:16]
commit
barrier
g s[0:16] -> y[0:16]
barrier`, judge.Harmful},
	{"commits ordered by an event", chain, `
f x[0:16] -> s[0:16]
commit event
g s[0:16] -> y[0:16]
commit fence`, judge.Harmless},
	{"an event orders everything before it, earlier command buffers too", `
f x[0:16] -> s[0:16]
barrier
h w[0:4] -> z[0:4]
barrier
g s[0:16] -> y[0:16]
barrier`, `
f x[0:16] -> s[0:16]
commit
h w[0:4] -> z[0:4]
commit event
g s[0:16] -> y[0:16]
commit event`, judge.Harmless},
	{"aliases that overlap, unordered", `
f x[0:16] -> low[0:16]
barrier
g high[0:8] -> y[0:8]
barrier`, `
f x[0:16] -> low[0:16]
g high[0:8] -> y[0:8]
barrier`, judge.Harmful},
	{"an alias under its memory's name", `
f x[0:16] -> low[0:16]
barrier
g high[0:8] -> y[0:8]
barrier`, `
f x[0:16] -> s[0:16]
barrier
g s[8:16] -> y[0:8]
barrier`, judge.Harmless},
	{"a may-write taken for a kill", `
f x[0:16] -> y[0:16]
barrier
u w[0:4] -> ~y[0:16]
barrier`, `
u w[0:4] -> ~y[0:16]
barrier`, judge.Harmful},
	{"a must-write is a kill: what it hides may go", `
f x[0:16] -> y[0:16]
barrier
f w[0:16] -> y[0:16]
barrier`, `
f w[0:16] -> y[0:16]
barrier`, judge.Harmless},
	{"a must-write of a part is no kill of the rest", `
f x[0:16] -> y[0:16]
barrier
f w[0:16] -> y[0:12]
barrier`, `
f w[0:16] -> y[0:12]
barrier`, judge.Harmful},
	{"columns that interleave need no order", `
f x[0:16] -> st[0:4;2@8]
barrier
f w[0:16] -> st[4:8;2@8]
barrier`, `
f x[0:16] -> st[0:4;2@8]
f w[0:16] -> st[4:8;2@8]
barrier`, judge.Harmless},
	{"columns whose strides meet need one", `
f x[0:16] -> st[0:4;2@8]
barrier
f w[0:16] -> st[4:8;2@4]
barrier`, `
f x[0:16] -> st[0:4;2@8]
f w[0:16] -> st[4:8;2@4]
barrier`, judge.Harmful},
	{"a strided must-write is not its hull", `
f x[0:16] -> y[0:16]
barrier
f w[0:16] -> y[0:4;2@12]
barrier`, `
f w[0:16] -> y[0:4;2@12]
barrier`, judge.Harmful},
	{"two equal updates that race lose one, in no order of the two", `
u w[0:4] -> ~st[0:16]
barrier
u w[0:4] -> ~st[0:16]
barrier`, `
u w[0:4] -> ~st[0:16]
u w[0:4] -> ~st[0:16]
barrier`, judge.Harmful},
	{"two equal fills may race", `
fill %y[0:16] 0x00
barrier
fill %y[4:8] 0x00
barrier`, `
fill %y[0:16] 0x00
fill %y[4:8] 0x00
barrier`, judge.Harmless},
	{"a copy taken out of the way", `
copy %x[0:16] -> %s[0:16]
barrier
g s[0:16] -> y[0:16]
barrier`, `
g x[0:16] -> y[0:16]
barrier`, judge.Harmless},
	{"a state read before it is written", `
g st[0:16] -> y[0:16]
barrier
f x[0:16] -> st[0:16]
barrier`, `
f x[0:16] -> st[0:16]
barrier
g st[0:16] -> y[0:16]
barrier`, judge.Harmful},
	{"a state that only the next replay reads", `
g st[0:16] -> y[0:16]
barrier
f x[0:16] -> st[0:16]
barrier`, `
g st[0:16] -> y[0:16]
barrier`, judge.Harmful},
	{"scratch that only an earlier replay wrote", chain, `
g s[0:16] -> y[0:16]
barrier
f x[0:16] -> s[0:16]
barrier`, judge.Harmful},
	{"a row at pos and the rows before it", `
f x[0:4] -> st[4*$pos:4*$pos+4]
barrier
g st[0:4*$pos] -> y[0:16]
barrier`, `
f x[0:4] -> st[4*$pos:4*$pos+4]
g st[0:4*$pos] -> y[0:16]
barrier`, judge.Harmless},
	{"a row at pos and the rows up to it", `
f x[0:4] -> st[4*$pos:4*$pos+4]
barrier
g st[0:4*$pos+4] -> y[0:16]
barrier`, `
f x[0:4] -> st[4*$pos:4*$pos+4]
g st[0:4*$pos+4] -> y[0:16]
barrier`, judge.Harmful},
	{"apart by a constraint alone", `
f x[0:4] -> st[4*$pos+4*$n:4*$pos+4*$n+4]
barrier
g w[0:4] -> st[4*$pos:4*$pos+4*$n]
barrier`, `
f x[0:4] -> st[4*$pos+4*$n:4*$pos+4*$n+4]
g w[0:4] -> st[4*$pos:4*$pos+4*$n]
barrier`, judge.Harmless},
	{"rows that meet at n = 2 only", `
f x[0:4] -> st[4*$pos+4:4*$pos+8]
barrier
g w[0:4] -> st[4*$pos:4*$pos+4*$n]
barrier`, `
f x[0:4] -> st[4*$pos+4:4*$pos+8]
g w[0:4] -> st[4*$pos:4*$pos+4*$n]
barrier`, judge.Harmful},
	{"something crosses a command of unknown effects", `
f x[0:16] -> y[0:16]
barrier
h? x[0:4] -> z[0:4]
barrier`, `
h? x[0:4] -> z[0:4]
barrier
f x[0:16] -> y[0:16]
barrier`, judge.Harmful},
	{"recorded in one epoch with a command of unknown effects", `
f x[0:16] -> y[0:16]
h? x[0:4] -> z[0:4]
barrier`, `
f x[0:16] -> y[0:16]
h? x[0:4] -> z[0:4]
barrier`, judge.Harmless},
	{"taken into one epoch with a command of unknown effects", `
f x[0:16] -> y[0:16]
barrier
h? x[0:4] -> z[0:4]
barrier`, `
f x[0:16] -> y[0:16]
h? x[0:4] -> z[0:4]
barrier`, judge.Harmful},
	{"scratch renamed that an unknown command does not bind", `
f x[0:16] -> s[0:16]
barrier
g s[0:16] -> y[0:16]
barrier
h? x[0:4] -> z[0:4]
barrier`, `
f x[0:16] -> t[0:16]
barrier
g t[0:16] -> y[0:16]
barrier
h? x[0:4] -> z[0:4]
barrier`, judge.Undecided},
	{"undefined before, otherwise undefined after", `
f s[0:16] -> y[0:16]
barrier`, `
f t[0:16] -> y[0:16]
barrier`, judge.Undecided},
	{"a dead command dropped", `
f x[0:16] -> s[0:16]
barrier
g x[0:16] -> y[0:16]
barrier`, `
g x[0:16] -> y[0:16]
barrier`, judge.Harmless},
	{"another part of what a command wrote", `
f x[0:16] -> s[0:16]
barrier
g s[0:4] -> y[0:4]
barrier`, `
f x[0:16] -> s[0:16]
barrier
g s[4:8] -> y[0:4]
barrier`, judge.Harmful},
	{"a race that was recorded is one still", `
f x[0:16] -> y[0:16]
f w[0:16] -> y[0:16]
barrier`, `
f x[0:16] -> y[0:16]
f w[0:16] -> y[0:16]
barrier`, judge.Harmful},
	{"another kernel", chain, strings.Replace(chain, "g s", "k s", 1), judge.Harmful},
	{"an effect narrowed", chain, strings.Replace(chain, "g s[0:16]", "g s[0:12]", 1), judge.Harmful},
}

func TestExamples(t *testing.T) {
	for _, x := range examples {
		t.Run(x.name, func(t *testing.T) {
			j := judge.Judge(write(t, interfaceText, x.before), write(t, interfaceText, x.after), judge.Options{})
			require.Equal(t, x.want.String(), j.Verdict.String(), "%s %q", j.Reason, j.Remarks)
		})
	}
}

// The order of replays, and what an event orders, are as the options say.
func TestOptions(t *testing.T) {
	b := write(t, interfaceText, chain)
	open := write(t, interfaceText, strings.TrimSuffix(chain, "\nbarrier"))
	for _, x := range []struct {
		g    *ir.Graph
		o    judge.Options
		want judge.Verdict
	}{
		{open, judge.Options{Replays: judge.Streamed}, judge.Harmful},
		{open, judge.Options{Replays: judge.Waited}, judge.Harmless},
		{open, judge.Options{Replays: judge.Committed}, judge.Harmful},
		{b, judge.Options{Replays: judge.Committed}, judge.Harmful},
		{write(t, interfaceText, chain+"\ncommit event"), judge.Options{Replays: judge.Committed}, judge.Harmless},
	} {
		require.Equal(t, x.want, judge.Judge(b, x.g, x.o).Verdict, "%+v", x.o)
	}
	// If a recording races between streamed replays, races there cannot be held against
	// its rewrites.
	j := judge.Judge(open, open, judge.Options{})
	require.Equal(t, judge.Harmless, j.Verdict, j.Reason)
	require.Equal(t, judge.Waited, j.Replays)
	require.Equal(t, judge.Streamed, judge.Judge(b, open, judge.Options{}).Replays)
}

// Everything that the host sees must stay the same.
func TestInterface(t *testing.T) {
	b := write(t, interfaceText, chain)
	for _, x := range []struct{ old, new string }{
		{"%x input 16", "%x input 32"},
		{"memory %z output 16\n", ""},
		{"%z output 16", "%zz output 16"},
		{"%z output", "%z scratch"},
		{"fill 0x3f800000", "fill 0x3f800001"},
		{"%st state 16 = fill 0x00000000", "%st state 16"},
		{"$pos u32 in [0, 2]", "$pos u32 in [0, 1]"},
		{"$pos + $n <= 3", "$pos + $n <= 4"},
		{"require $pos + $n <= 3\n", ""},
		{"param $pos", "param $q u32 in [0, 1]\n  param $pos"},
	} {
		require.Contains(t, interfaceText, x.old)
		j := judge.Judge(b, write(t, strings.Replace(interfaceText, x.old, x.new, 1), chain), judge.Options{})
		require.Equal(t, judge.Harmful, j.Verdict, x.new)
		require.Contains(t, j.Reason, "interface", x.new)
	}
	for _, x := range []struct{ old, new string }{
		{"%s scratch 32", "%s scratch 64"},
		{"%t scratch", "%u scratch"},
		{"require $pos + $n <= 3", "require $n + $pos <= 3\n  require $pos + $n <= 3"},
		{"= fill 0x00000000", "= zero"},
	} {
		if x.new == "= zero" { // the same bytes, expressed in another way
			g := b.Clone()
			id, _ := g.MemoryNamed("st")
			g.Memories[id].Init = ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(make([]byte, 16))}
			require.Equal(t, judge.Harmless, judge.Judge(b, g, judge.Options{}).Verdict)
			continue
		}
		j := judge.Judge(b, write(t, strings.Replace(interfaceText, x.old, x.new, 1), chain), judge.Options{})
		require.Equal(t, judge.Harmless, j.Verdict, "%s: %s", x.new, j.Reason)
	}
}

func ExampleJudge() {
	m, err := mlxt.Parse(context.Background(), "example.mlxt", []byte(`mlxt 1

graph g {
  memory %x input 16
  memory %s scratch 16
  memory %y output 16

  #0 copy %x[0:16] -> %s[0:16]
  barrier
  #1 copy %s[0:16] -> %y[0:16]
  barrier
}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	before := m.Graphs[0]
	after := before.Clone()
	after.Nodes = append(after.Nodes[:1], after.Nodes[2:]...) // drop the barrier between the two commands
	j := judge.Judge(before, after, judge.Options{})
	fmt.Println(j.Verdict)
	fmt.Println(j.Reason)
	// Output:
	// harmful
	// params [[]], with #1 of replay 1 before #0 of replay 1: %y after replay 1 differs at byte 0
}
