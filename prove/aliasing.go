package prove

import "github.com/mlxc/mlxc/ir"

// checkAliasing asks every declaration whether the views of a command may
// overlap as they do.
func (p *proof) checkAliasing() {
	for i := range p.a.ops {
		if in := p.a.ops[i].inst; in != nil {
			if err := in.CheckAliasing(); err != nil {
				p.add(Refused, Aliasing, nil, []ir.ID{p.a.ops[i].id}, "%v", err)
			}
		}
	}
}
