package prove

import (
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// sourcesOf looks for kernels of either graph whose source a program has registered
// ([msl.Register]): nobody has tested the declarations of such a source here. The source must be
// among those given to the proof, which then assumes that its declarations are right. sourcesOf
// returns these assumptions, and adds a finding to r for a kernel of any other registered source.
func sourcesOf(before, after *ir.Graph, given []string, r *Result) (assumed []string) {
	functions := map[string][]string{} // by source
	effects := map[string]bool{}       // sources that do not say what their kernels compute
	for _, g := range []*ir.Graph{before, after} {
		known := make([]bool, len(g.Kernels))
		for _, n := range g.Nodes {
			d, ok := n.(*ir.Dispatch)
			if !ok || known[d.Kernel] {
				continue
			}
			known[d.Kernel] = true
			k := &g.Kernels[d.Kernel]
			file, ok := msl.Registered(k)
			switch {
			case !ok || slices.Contains(functions[file], k.Function):
			case !slices.Contains(given, file):
				r.add(CannotTell, Interface, nil, []ir.ID{d.ID}, "%s runs kernel %s, which is declared by %s, a source that a program has registered: give it to the proof (Options.Sources) to believe it", g.Describe(d), k.Function, file)
				return nil
			default:
				effects[file] = msl.EffectsOnly(k) && (effects[file] || functions[file] == nil)
				functions[file] = append(functions[file], k.Function)
			}
		}
	}
	for _, file := range given {
		if list := functions[file]; list != nil {
			slices.Sort(list)
			verb := "do"
			if effects[file] {
				verb = "touch"
			}
			assumed = append(assumed, "kernels "+verb+" what "+file+" declares: "+strings.Join(list, ", "))
			delete(functions, file)
		}
	}
	return assumed
}
