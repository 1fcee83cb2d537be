package prove

import "github.com/mlxc/mlxc/ir"

// checkAliasing asks every declaration whether the views of a command may
// overlap as they do.
func checkAliasing(a *model, r *Result) {
	for i := range a.ops {
		if in := a.ops[i].inst; in != nil {
			if err := in.CheckAliasing(); err != nil {
				r.add(Refused, Aliasing, nil, []ir.ID{a.ops[i].id}, "%v", err)
			}
		}
	}
}
