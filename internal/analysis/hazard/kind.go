package hazard

import "github.com/mlxc/mlxc/ir"

// Kind is the kind of a hazard: what the later access does to bytes that the earlier
// one touched.
type Kind uint8

// The kinds of hazards.
const (
	None    Kind = iota
	RAW          // it reads what was written
	WAR          // it writes what was read
	WAW          // it overwrites what was written
	Unknown      // one of the two may touch anything
)

func (k Kind) String() string { return [...]string{"none", "RAW", "WAR", "WAW", "unknown"}[k] }

// Conflict says why a command must wait.
type Conflict struct {
	Kind  Kind
	With  ir.ID     // the earlier command
	Bytes ir.Region // what the later command touches; without meaning if Kind is Unknown
}
