package nvptx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/calls"
	"github.com/mlxc/mlxc/internal/llvm"
)

// gpuModule is a module that becomes PTX.
type gpuModule struct {
	*air.Module
	kernel          *air.Kernel
	function        *llvm.Function  // the kernel's
	bodies, support text            // what is added to the module
	known           map[string]bool // the functions of support
	early           []int           // arguments that are read before the wait
	numbered        bool            // the module has mlxc.thread
	waits           bool            // the kernel itself waits, not the entry
	reason          string          // why it does not, if it says where it would
	mma             int             // how many values its products by mma have
	rows            bool            // matrices lie as mma has them
}

// newGPUModule takes a kernel to where only its entry is missing.
func newGPUModule(b *air.Builder, in air.Input, launch Launch) (*gpuModule, error) {
	m, err := in.Open(calls.PTX)
	if err != nil {
		return nil, err
	}
	if !launch.Programmatic {
		m.WithoutWaits()
	}
	if err := m.Parts(launch.MMA == AllMMA); err != nil {
		return nil, err
	}
	if err := m.Subnormals(true); err != nil {
		return nil, err
	}
	if err := m.Prepare(in.Kernel.Name, in.Constants, false); err != nil {
		return nil, err
	}
	g := &gpuModule{Module: m, kernel: in.Kernel, known: map[string]bool{}}
	if err := g.inline(b, launch.MMA != NoMMA); err != nil {
		return nil, err
	}
	return g, g.control(launch)
}

// inline defines what threads do alone, and has clang inline all that the kernel calls, if there is
// anything to find out about its control flow: where threads exchange, or wait. With mma nothing is
// decided of matrices: who multiplies them says how they lie.
func (g *gpuModule) inline(b *air.Builder, mma bool) error {
	for i, x := range g.Globals {
		if v := sharedValue.FindStringSubmatch(x.Text); v != nil {
			g.Globals[i].Text = v[1] + " undef" + v[2]
		}
	}
	g.WithoutPlaces()
	g.Metadata = nil
	kept := g.Declares[:0]
	flows := false
	for _, d := range g.Declares {
		name := strings.Trim(d.Name, `"`)
		if air.Alone(d) && !mma {
			if err := g.exchangeBody(d); err != nil {
				return err
			}
			continue
		}
		if strings.HasPrefix(name, "air.") {
			flows = true
			if name != air.WaitMarker && name != "air.wg.barrier" && name != "air.simdgroup.barrier" {
				d.Attrs = "#991" // no memory is ordered
			}
			if air.Alone(d) {
				d.Attrs = matrixAttributes(d)
			}
			if air.InParts(d) {
				d.Attrs = partsAttributes(d)
			}
		}
		kept = append(kept, d)
	}
	g.Declares = kept
	if g.bodies.Len() > 0 {
		g.Module.Bodies = append(g.Module.Bodies, g.bodies.String()+ownThread)
		g.bodies.Reset()
		g.numbered = true
	}
	g.Attrs = append(g.Attrs, "attributes #991 = { convergent nounwind willreturn memory(inaccessiblemem: readwrite) }")
	if flows {
		out, err := b.Clang(g.String(), "inlined.ll", "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-S", "-emit-llvm")
		if err != nil {
			return err
		}
		m, err := air.ReadModule("inlined.ll", out)
		if err != nil {
			return err
		}
		g.Module, g.numbered = m, false // what is inlined is gone
	}
	if g.function = g.Module.Function(g.kernel.Name); g.function == nil {
		return errors.New("clang has taken the kernel away")
	}
	return nil
}

// matrixAttributes are those of a function of matrices in which each thread does its part alone.
func matrixAttributes(d llvm.Declaration) string {
	memory := "none"
	switch {
	case d.Result == "void":
		memory = "argmem: write"
	case isMatrixLoad(d):
		memory = "argmem: read"
	}
	return "convergent nounwind willreturn memory(" + memory + ")"
}

// control has threads exchange with those that they are together with, and wait for the grids before this
// one, as far as the control flow of the kernel says when.
func (g *gpuModule) control(launch Launch) error {
	declared := map[string]llvm.Declaration{}
	var names []llvm.Declaration
	for _, d := range g.Declares {
		if name := strings.Trim(d.Name, `"`); strings.HasPrefix(name, "air.") {
			declared[name], names = d, append(names, d)
		}
	}
	if len(declared) == 0 {
		return nil
	}
	g.Declares = slices.DeleteFunc(g.Declares, func(d llvm.Declaration) bool { return strings.HasPrefix(strings.Trim(d.Name, `"`), "air.") })
	f := g.function
	blocks := f.Blocks()
	f.Head = llvm.NumberedValue.ReplaceAllString(f.Head, "%v$1")
	flow, err := llvm.NewFlow(blocks)
	if err != nil && !errors.Is(err, llvm.ErrFlow) {
		return err
	}
	masks := map[*llvm.Block]string{} // of the blocks whose mask is known
	if flow != nil {
		if launch.Programmatic {
			early, reason := wait(flow, f, g.kernel)
			if g.early, g.waits = early, reason == ""; reason != notMarked {
				g.reason = reason
			}
		}
		masks = masksOf(flow, f, g.kernel, declared)
		if launch.MMA != NoMMA {
			g.matrices(blocks, declared, masks, launch.MMA)
		}
	}
	for _, b := range blocks {
		if err := partsAlone(b, declared, masks[b]); err != nil {
			return err
		}
	}
	for _, d := range names {
		switch name := strings.Trim(d.Name, `"`); {
		case air.InParts(d):
			g.partsBody(d)
		case !air.IsAirMarker(name):
			if err := g.exchangeBody(d); err != nil {
				return err
			}
		}
	}
	values := 0
	f.Lines = f.Lines[:0:0]
	for _, b := range blocks {
		f.Lines = append(append(f.Lines, b.Label+":"), exchanging(b.Lines, declared, masks[b], &values)...)
	}
	for _, x := range g.Funcs {
		if x != f {
			x.Lines = exchanging(x.Lines, declared, "", &values)
		}
	}
	return nil
}

// matrices has products of matrices made by mma where all threads of a warp come to together.
func (g *gpuModule) matrices(blocks []*llvm.Block, declared map[string]llvm.Declaration, masks map[*llvm.Block]string, which MMA) {
	byMMA := func(b *llvm.Block, d llvm.Declaration) bool { return masks[b] == entryMembers && which.multiplies(d) }
	m := newMatrixFlow(blocks, declared, byMMA)
	g.rows = m.whole && len(g.Funcs) == 1
	if !g.rows {
		m.right = nil
	}
	for _, b := range blocks {
		turnLoads(b, declared, m)
		g.byMMA(b, declared, m, byMMA)
	}
}

// masksOf makes the masks of the blocks in which threads exchange, as far as they are known.
func masksOf(c *llvm.Flow, f *llvm.Function, k *air.Kernel, declared map[string]llvm.Declaration) map[*llvm.Block]string {
	var m *members
	out := map[*llvm.Block]string{}
	for b, x := range c.Blocks {
		if !slices.ContainsFunc(x.Lines, func(l string) bool { return exchangesMasked(l, declared) }) {
			continue
		}
		if m == nil {
			m = newMembers(c, newUniformity(c, f, k, nil))
			if agreed := m.agreed(declared); len(agreed) > 0 {
				m = newMembers(c, newUniformity(c, f, k, agreed))
			}
		}
		if m.known[b] {
			m.need(b)
			out[x] = m.name(b)
		}
	}
	if m != nil {
		m.write()
	}
	return out
}

// exchangesMasked reports whether a line calls a function in which those threads of a warp take part
// that a mask has.
func exchangesMasked(l string, declared map[string]llvm.Declaration) bool {
	_, d, ok := llvm.CallOf(l, declared)
	name := strings.Trim(d.Name, `"`)
	return ok && !air.Alone(d) && name != "air.wg.barrier" && !air.IsAirMarker(name)
}

// exchanging are lines in which the functions that threads exchange in get the mask of those that take
// part. Where it is empty the GPU is asked each time.
func exchanging(lines []string, declared map[string]llvm.Declaration, mask string, values *int) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		c, d, ok := llvm.CallOf(l, declared)
		switch {
		case !ok:
		case air.IsMarker(l):
			continue
		case air.IsPrefetch(l):
			l = prefetching(l)
		case air.Alone(d), air.InParts(d):
		default:
			of, to := mask, masked(d)
			switch {
			case !exchangesMasked(l, declared):
				of = "0"
			case of == entryMembers && !counts(d):
				of = allThreads
				if multiplies(d) {
					to = maskedByAll(d)
				}
			case of == "":
				of = fmt.Sprint("%mlxc.active.", *values)
				*values++
				out = append(out, fmt.Sprintf("  %s = %s", of, activeMask))
			}
			if len(d.Params) > 0 {
				of += ", "
			}
			begin, _ := c.Arguments()
			l = c.With(llvm.Change{At: c.CalleeAt, End: begin, Text: "@" + to + "(i32 " + of})
		}
		out = append(out, l)
	}
	return out
}

// allThreads is the mask of a whole warp. Where all threads of the grid come to, it does for theirs too:
// nobody waits for threads that have ended. And the GPU's assembler is told that no other is there.
const allThreads = "-1"

// counts reports whether what a function returns depends on who takes part, and not only on the values of
// others. Those of a matrix are all there, and a thread that shuffles knows of whom it asks; the first
// that is there is the first of the warp.
func counts(d llvm.Declaration) bool {
	s, err := air.SiteOf(d)
	if err != nil {
		return true
	}
	switch s.Operation {
	case air.OpMultiplyAccumulate, air.SimdgroupBarrier, air.OpShuffle, air.OpShuffleUp, air.OpShuffleDown, air.OpShuffleXor, air.OpShuffleRotateUp, air.OpShuffleRotateDown,
		air.OpShuffleAndFillUp, air.OpShuffleAndFillDown, air.OpBroadcastFirst:
		return false
	}
	return true
}

// masked is the name of the function in which threads exchange, which gets a mask before all else.
func masked(d llvm.Declaration) string { return `"mlxc.` + strings.Trim(d.Name, `"`) + `"` }

// maskedByAll is the name of one in which all threads of a warp take part, whatever the mask.
func maskedByAll(d llvm.Declaration) string { return `"mlxc.all.` + strings.Trim(d.Name, `"`) + `"` }

// multiplies reports whether a function multiplies matrices.
func multiplies(d llvm.Declaration) bool {
	s, err := air.SiteOf(d)
	return err == nil && s.Operation == air.OpMultiplyAccumulate
}

// activeMask asks the GPU which threads of a warp run together.
const activeMask = `call i32 asm sideeffect "activemask.b32 $0;", "=r"() #990`

// text is that of the module with an entry that calls the kernel.
func (g *gpuModule) text(launch Launch) (string, error) {
	m, f := g.Module, g.function
	head := air.Prefix(f, false) + f.Head[strings.IndexByte(f.Head, '@'):]
	open := strings.IndexByte(head, '(')
	end := llvm.Matching(head, open)
	more := "i32 " + entryMembers
	if len(f.Params) > 0 {
		more = ", " + more
	}
	f.Head = air.AlwaysInline(head[:end] + more + head[end:])
	if err := g.bodies.entry(f, g.kernel, launch, launch.Programmatic && !g.waits); err != nil {
		return "", err
	}
	known := map[string]bool{}
	for _, d := range m.Declares {
		known[strings.Trim(d.Name, `"`)] = true
	}
	for _, b := range m.Bodies {
		for l := range strings.Lines(b) {
			if d := llvm.DeclareLine.FindStringSubmatch(l); d != nil {
				known[strings.Trim(d[2], `"`)] = true
			}
		}
	}
	if !g.numbered {
		m.Add(ownThread, known)
		known["llvm.nvvm.read.ptx.sreg.tid.x"] = true
	}
	m.Add(gpuSupport+g.support.String()+g.bodies.String(), known)
	space, suffix := "addrspace(1)", "$1.p1"
	if launch.Values {
		// A constant may lie in the entry's own memory: any address is one. Where clang knows of which kind
		// it is, and of values that it needs no memory at all, it says so itself.
		space, suffix = "", "$1.p0"
	}
	out := secondSpace.ReplaceAllString(m.String(), space)
	if launch.Values {
		out = sameSpace.ReplaceAllString(out, "bitcast${1}ptr $2 to ptr$3")
	}
	return secondSuffix.ReplaceAllString(out, suffix), nil
}
