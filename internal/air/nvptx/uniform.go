package nvptx

import (
	"regexp"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// uniformity is the divergence analysis of a kernel. A value is uniform if all threads of a warp that execute its
// instruction together, in the same iteration of each loop around it, compute the same value; a branch is uniform if
// they all take the same way. What is not known to be uniform counts as divergent.
type uniformity struct {
	flow    *llvm.Flow
	values  map[string]int
	diverse []bool // by value: it is divergent, which is to say it may differ between threads
	users   [][]user
	splits  []bool  // by block: its branch is divergent
	phis    [][]int // by block: the values of its phis
	met     []bool  // by node of flow.After: threads that have diverged may reconverge there
	until   []int   // up to which node that was said of a node and all behind it
	changed []int
}

// user is what a value is used by: another value, or the branch at the end of a block.
type user struct {
	value int // −1: none
	block int
}

var valueToken = regexp.MustCompile(`%(?:[-a-zA-Z$._0-9]+|"(?:[^"\\]|\\.)*")`)

// sameOfSame are the instructions whose result is the same if their operands are.
var sameOfSame = map[string]bool{
	"add": true, "sub": true, "mul": true, "udiv": true, "sdiv": true, "urem": true, "srem": true, "shl": true, "lshr": true, "ashr": true,
	"and": true, "or": true, "xor": true, "fneg": true, "fadd": true, "fsub": true, "fmul": true, "fdiv": true, "frem": true,
	"icmp": true, "fcmp": true, "select": true, "trunc": true, "zext": true, "sext": true, "fptrunc": true, "fpext": true,
	"fptoui": true, "fptosi": true, "uitofp": true, "sitofp": true, "ptrtoint": true, "inttoptr": true, "bitcast": true, "addrspacecast": true,
	"getelementptr": true, "extractelement": true, "insertelement": true, "shufflevector": true, "extractvalue": true, "insertvalue": true,
	"freeze": true, "phi": true,
}

// pureIntrinsic are functions of LLVM whose result follows from their operands.
var pureIntrinsic = regexp.MustCompile(`^llvm\.(?:[us](?:min|max)|[us](?:add|sub)\.sat|abs|ctlz|cttz|ctpop|bswap|bitreverse|fsh[lr]|fabs|minnum|maxnum|copysign|floor|ceil|trunc|rint|fma|umul\.with\.overflow)\.`)

// uniformAttributes are those that all threads of a warp have the same of.
var uniformAttributes = map[string]bool{
	"threadgroup_position_in_grid": true, "threads_per_threadgroup": true, "threadgroups_per_grid": true, "threads_per_grid": true,
	"dispatch_threads_per_threadgroup": true, "simdgroups_per_threadgroup": true, "dispatch_simdgroups_per_threadgroup": true,
	"simdgroup_index_in_threadgroup": true, "threads_per_simdgroup": true,
}

// newUniformity finds out what is uniform in a kernel. A value is uniform until something shows that it
// may not be, which spreads to what is computed of it, to the branches that depend on it, and to the
// phis where threads that have diverged at such a branch reconverge. agreed are further values that are uniform.
func newUniformity(c *llvm.Flow, f *llvm.Function, k *air.Kernel, agreed map[string]bool) *uniformity {
	u := &uniformity{
		flow: c, values: map[string]int{}, splits: make([]bool, len(c.Blocks)), phis: make([][]int, len(c.Blocks)),
		met: make([]bool, c.End()+1), until: make([]int, c.End()+1),
	}
	value := func(name string) int {
		v, ok := u.values[name]
		if !ok {
			v = len(u.diverse)
			u.values[name] = v
			u.diverse, u.users = append(u.diverse, false), append(u.users, nil)
		}
		return v
	}
	for i := range u.until {
		u.until[i] = -1
	}
	for i, p := range f.Params {
		if a := &k.Args[i]; a.Attribute != "" && !uniformAttributes[a.Attribute] {
			u.differs(value(p.Name))
		}
	}
	for i, b := range c.Blocks {
		end := c.Ends[i]
		for _, l := range b.Lines[:end.Line] {
			llvm.Counted(1)
			in := llvm.Read(l)
			if in == nil || in.Result == "" {
				continue
			}
			v := value(in.Result)
			switch {
			case in.Op == "phi":
				u.phis[i] = append(u.phis[i], v)
			case sameOfSame[in.Op]:
			case in.Op == "load" && in.Flags == "" && in.Operands[0].Type == llvm.Pointer(2): // nothing writes there
			case pureIntrinsic.MatchString(in.Callee):
			case agreed[in.Result]:
				continue
			default:
				u.differs(v)
				continue
			}
			for _, of := range valueToken.FindAllString(l, -1) {
				if of != in.Result {
					// The names of types and labels are among these, which nothing is learned of.
					o := value(of)
					u.users[o] = append(u.users[o], user{v, i})
				}
			}
		}
		if end.On != "" {
			o := value(end.On)
			u.users[o] = append(u.users[o], user{-1, i})
		}
	}
	for len(u.changed) > 0 {
		v := u.changed[len(u.changed)-1]
		u.changed = u.changed[:len(u.changed)-1]
		for _, x := range u.users[v] {
			llvm.Counted(1)
			if x.value >= 0 {
				u.differs(x.value)
			} else {
				u.split(x.block)
			}
		}
	}
	return u
}

func (u *uniformity) differs(v int) {
	if !u.diverse[v] {
		u.diverse[v] = true
		u.changed = append(u.changed, v)
	}
}

// split makes the branch of a block divergent. All threads have reconverged at the first node that is on every way
// from there; before it, some of them may reconverge in any block.
func (u *uniformity) split(b int) {
	if u.splits[b] {
		return
	}
	c := u.flow
	ways := c.Next[b]
	first := 0
	for first < len(ways) && ways[first] == ways[0] {
		first++
	}
	if first == len(ways) {
		return // all lead to one block
	}
	u.splits[b] = true
	end := int(c.After.Parent[b])
	type step struct{ node, until int }
	var work []step
	for _, to := range ways {
		work = append(work, step{c.Way(b, to), end})
	}
	for len(work) > 0 {
		x := work[len(work)-1].node
		work = work[:len(work)-1]
		llvm.Counted(1)
		u.meet(x)
		if x == end {
			continue
		}
		// INVARIANT: end is above x in c.After, and so is u.until[x].
		if known := u.until[x]; known >= 0 {
			if c.After.Depth[known] > c.After.Depth[end] {
				u.until[x] = end
				work = append(work, step{known, end})
			}
			continue
		}
		u.until[x] = end
		n := len(c.Blocks)
		if x >= n { // round a loop once more
			work = append(work, step{c.Loops[x-n].Header, end})
			continue
		}
		for _, to := range c.Next[x] {
			work = append(work, step{c.Way(x, to), end})
		}
	}
}

// between reports whether the threads that execute a block may be only some of a warp's, since they have diverged and
// not all of them have reconverged.
func (u *uniformity) between(b int) bool { return u.until[b] >= 0 }

// meet notes that threads may reconverge at a node, coming from different blocks: its phis are divergent.
func (u *uniformity) meet(node int) {
	n := len(u.flow.Blocks)
	if node == u.flow.End() || u.met[node] {
		return
	}
	u.met[node] = true
	if node >= n {
		node = u.flow.Loops[node-n].Header
	}
	for _, v := range u.phis[node] {
		u.differs(v)
	}
}
