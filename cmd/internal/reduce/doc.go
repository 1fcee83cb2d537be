// Package reduce finds a small module for which a check still holds, whatever the check is: that an optimizer refuses it, that
// a device computes it wrongly. `mlxc reduce` runs a command of its user's as the check.
//
//	r, err := reduce.Module(ctx, module, reduce.Options{Check: fails})
//
// # How it works
//
// It leaves out graphs and data, puts made-up contents in the place of those of the file, leaves out commands and marks,
// narrows the bounds of params, and shortens memories; after each it drops what nothing names. Lists are halved again and
// again down to single members (Zeller and Hildebrandt 2002, without complements), and all of it is repeated until nothing
// changes. What a change breaks is mended where that is plain: commands that waited for one that is left out wait for what it
// waited for, and scratch memory that nobody writes any more becomes a state with contents of its own.
//
// # What is tried
//
// Only modules that pass [ir.Module.Check]. If no graph of the file has a race or an undefined read, a smaller module that has one is
// not tried either: the check might hold because of this fault, which the reduction has made. [Options.Faults] tries such modules too.
package reduce
