package hazard

import "github.com/mlxc/mlxc/ir"

// Kind is the sort of a hazard, from the later access to the earlier one.
type Kind uint8

// The kinds.
const (
	None    Kind = iota
	RAW          // reads what was written
	WAR          // writes what was read
	WAW          // writes what was written
	Unknown      // one of the two may touch anything
)

func (k Kind) String() string { return [...]string{"none", "RAW", "WAR", "WAW", "unknown"}[k] }

// Conflict is why a command must wait.
type Conflict struct {
	Kind  Kind
	With  ir.ID     // the earlier command
	Bytes ir.Region // what the later one touches; meaningless for Unknown
}
