package plan

// inside makes barriers parts of stored commands, for GPUs on which such a barrier orders all later commands of the
// range that is executed. It orders nothing beyond that range: the encoder has to be told the same barrier again where
// something else follows.
type inside struct {
	wanted bool
	open   bool  // the last step executes a command with a barrier inside
	wall   int32 // the operation that is this barrier
}

// takes reports whether a command has its barrier, operation op, inside. It has no effect where the command is not
// executed in each replay, or may have an empty grid.
func (x *inside) takes(op int32, always bool) bool { return x.wanted && op >= 0 && always }

// joined notes that the command with barrier op has joined the range of the last step.
func (x *inside) joined(op int32) { x.open, x.wall = true, op }

// leave returns the barrier that the encoder has to be told before something outside of the range follows.
func (x *inside) leave() (op int32, needed bool) {
	needed, x.open = x.open, false
	return x.wall, needed
}
