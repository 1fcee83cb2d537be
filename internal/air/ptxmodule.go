package air

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air/calls"
)

// gpuModule is a module that becomes PTX.
type gpuModule struct {
	*module
	kernel          *Kernel
	function        *function       // the kernel's
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
func newGPUModule(b *builder, in Input, launch Launch) (*gpuModule, error) {
	m, err := parseModule(in.Name, in.IR)
	if err != nil {
		return nil, err
	}
	if err := m.allowed(); err != nil {
		return nil, err
	}
	f := m.function(in.Kernel.Name)
	if f != nil && len(f.params) != len(in.Kernel.Args) {
		return nil, fmt.Errorf("the function has %d parameters, its description %d", len(f.params), len(in.Kernel.Args))
	}
	m.target, m.aligned = calls.PTX, in.Aligned
	if !launch.Programmatic {
		m.withoutWaits()
	}
	if err := m.parts(launch.MMA == AllMMA); err != nil {
		return nil, err
	}
	if err := m.subnormals(true); err != nil {
		return nil, err
	}
	if err := m.prepare(in.Kernel.Name, in.Constants, false); err != nil {
		return nil, err
	}
	g := &gpuModule{module: m, kernel: in.Kernel, known: map[string]bool{}}
	if err := g.inline(b, launch.MMA != NoMMA); err != nil {
		return nil, err
	}
	return g, g.control(launch)
}

// inline defines what threads do alone, and has clang inline all that the kernel calls, if there is
// anything to find out about its control flow: where threads exchange, or wait. With mma nothing is
// decided of matrices: who multiplies them says how they lie.
func (g *gpuModule) inline(b *builder, mma bool) error {
	for i, x := range g.globals {
		if v := sharedValue.FindStringSubmatch(x.text); v != nil {
			g.globals[i].text = v[1] + " undef" + v[2]
		}
	}
	g.withoutPlaces()
	g.metadata = nil
	kept := g.declares[:0]
	flows := false
	for _, d := range g.declares {
		name := strings.Trim(d.name, `"`)
		if alone(d) && !mma {
			if err := g.exchangeBody(d); err != nil {
				return err
			}
			continue
		}
		if strings.HasPrefix(name, "air.") {
			flows = true
			if name != waitMarker && name != "air.wg.barrier" && name != "air.simdgroup.barrier" {
				d.attrs = "#991" // no memory is ordered
			}
			if alone(d) {
				d.attrs = matrixAttributes(d)
			}
			if inParts(d) {
				d.attrs = partsAttributes(d)
			}
		}
		kept = append(kept, d)
	}
	g.declares = kept
	if g.bodies.Len() > 0 {
		g.module.bodies = append(g.module.bodies, g.bodies.String()+ownThread)
		g.bodies.Reset()
		g.numbered = true
	}
	g.attrs = append(g.attrs, "attributes #991 = { convergent nounwind willreturn memory(inaccessiblemem: readwrite) }")
	if flows {
		out, err := b.clang(g.String(), "inlined.ll", "-O2", "-fno-vectorize", "-fno-slp-vectorize", "-S", "-emit-llvm")
		if err != nil {
			return err
		}
		m, err := parseModule("inlined.ll", out)
		if err != nil {
			return err
		}
		g.module, g.numbered = m, false // what is inlined is gone
	}
	if g.function = g.module.function(g.kernel.Name); g.function == nil {
		return errors.New("clang has taken the kernel away")
	}
	return nil
}

// matrixAttributes are those of a function of matrices in which each thread does its part alone.
func matrixAttributes(d declaration) string {
	memory := "none"
	switch {
	case d.result == "void":
		memory = "argmem: write"
	case isMatrixLoad(d):
		memory = "argmem: read"
	}
	return "convergent nounwind willreturn memory(" + memory + ")"
}

// control has threads exchange with those that they are together with, and wait for the grids before this
// one, as far as the control flow of the kernel says when.
func (g *gpuModule) control(launch Launch) error {
	declared := map[string]declaration{}
	var names []declaration
	for _, d := range g.declares {
		if name := strings.Trim(d.name, `"`); strings.HasPrefix(name, "air.") {
			declared[name], names = d, append(names, d)
		}
	}
	if len(declared) == 0 {
		return nil
	}
	g.declares = slices.DeleteFunc(g.declares, func(d declaration) bool { return strings.HasPrefix(strings.Trim(d.name, `"`), "air.") })
	f := g.function
	blocks := f.blocks()
	f.head = numberedValue.ReplaceAllString(f.head, "%v$1")
	flow, err := newFlow(blocks)
	if err != nil && !errors.Is(err, errFlow) {
		return err
	}
	masks := map[*block]string{} // of the blocks whose mask is known
	if flow != nil {
		if launch.Programmatic {
			early, reason := flow.wait(f, g.kernel)
			if g.early, g.waits = early, reason == ""; reason != notMarked {
				g.reason = reason
			}
		}
		masks = flow.masks(f, g.kernel, declared)
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
		switch name := strings.Trim(d.name, `"`); {
		case inParts(d):
			g.partsBody(d)
		case !isAirMarker(name):
			if err := g.exchangeBody(d); err != nil {
				return err
			}
		}
	}
	values := 0
	f.lines = f.lines[:0:0]
	for _, b := range blocks {
		f.lines = append(append(f.lines, b.label+":"), exchanging(b.lines, declared, masks[b], &values)...)
	}
	for _, x := range g.funcs {
		if x != f {
			x.lines = exchanging(x.lines, declared, "", &values)
		}
	}
	return nil
}

// matrices has products of matrices made by mma where all threads of a warp come to together.
func (g *gpuModule) matrices(blocks []*block, declared map[string]declaration, masks map[*block]string, which MMA) {
	byMMA := func(b *block, d declaration) bool { return masks[b] == entryMembers && which.multiplies(d) }
	m := newMatrixFlow(blocks, declared, byMMA)
	g.rows = m.whole && len(g.funcs) == 1
	if !g.rows {
		m.right = nil
	}
	for _, b := range blocks {
		turnLoads(b, declared, m)
		g.byMMA(b, declared, m, byMMA)
	}
}

// masks makes the masks of the blocks in which threads exchange, as far as they are known.
func (c *controlFlow) masks(f *function, k *Kernel, declared map[string]declaration) map[*block]string {
	var m *members
	out := map[*block]string{}
	for b, x := range c.blocks {
		if !slices.ContainsFunc(x.lines, func(l string) bool { return exchangesMasked(l, declared) }) {
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
func exchangesMasked(l string, declared map[string]declaration) bool {
	_, d, ok := callOf(l, declared)
	name := strings.Trim(d.name, `"`)
	return ok && !alone(d) && name != "air.wg.barrier" && !isAirMarker(name)
}

// exchanging are lines in which the functions that threads exchange in get the mask of those that take
// part. Where it is empty the GPU is asked each time.
func exchanging(lines []string, declared map[string]declaration, mask string, values *int) []string {
	out := make([]string, 0, len(lines))
	for _, l := range lines {
		c, d, ok := callOf(l, declared)
		switch {
		case !ok:
		case isMarker(l):
			continue
		case isPrefetch(l):
			l = prefetching(l)
		case alone(d), inParts(d):
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
			if len(d.params) > 0 {
				of += ", "
			}
			l = strings.Replace(l, "@"+c.name+"(", "@"+to+"(i32 "+of, 1)
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
func counts(d declaration) bool {
	s, err := siteOf(d)
	if err != nil {
		return true
	}
	switch s.operation {
	case opMultiplyAccumulate, simdgroupBarrier, opShuffle, opShuffleUp, opShuffleDown, opShuffleXor, opShuffleRotateUp, opShuffleRotateDown,
		opShuffleAndFillUp, opShuffleAndFillDown, opBroadcastFirst:
		return false
	}
	return true
}

// masked is the name of the function in which threads exchange, which gets a mask before all else.
func masked(d declaration) string { return `"mlxc.` + strings.Trim(d.name, `"`) + `"` }

// maskedByAll is the name of one in which all threads of a warp take part, whatever the mask.
func maskedByAll(d declaration) string { return `"mlxc.all.` + strings.Trim(d.name, `"`) + `"` }

// multiplies reports whether a function multiplies matrices.
func multiplies(d declaration) bool {
	s, err := siteOf(d)
	return err == nil && s.operation == opMultiplyAccumulate
}

// activeMask asks the GPU which threads of a warp run together.
const activeMask = `call i32 asm sideeffect "activemask.b32 $0;", "=r"() #990`

// text is that of the module with an entry that calls the kernel.
func (g *gpuModule) text(launch Launch) (string, error) {
	m, f := g.module, g.function
	head := f.prefix(false) + f.head[strings.IndexByte(f.head, '@'):]
	open := strings.IndexByte(head, '(')
	end := matching(head, open)
	more := "i32 " + entryMembers
	if len(f.params) > 0 {
		more = ", " + more
	}
	f.head = alwaysInline(head[:end] + more + head[end:])
	if err := g.bodies.entry(f, g.kernel, launch, launch.Programmatic && !g.waits); err != nil {
		return "", err
	}
	known := map[string]bool{}
	for _, d := range m.declares {
		known[strings.Trim(d.name, `"`)] = true
	}
	for _, b := range m.bodies {
		for l := range strings.Lines(b) {
			if d := declare.FindStringSubmatch(l); d != nil {
				known[strings.Trim(d[2], `"`)] = true
			}
		}
	}
	if !g.numbered {
		m.add(ownThread, known)
		known["llvm.nvvm.read.ptx.sreg.tid.x"] = true
	}
	m.add(gpuSupport+g.support.String()+g.bodies.String(), known)
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
