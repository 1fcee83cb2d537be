package mlxg

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// problem is an error about a file: an [*ir.Error], and the cause where there
// is one. Offsets count from the beginning of the file.
func problem(file string, offset int64, at, what, hint string, cause error) error {
	e := &ir.Error{File: file, Pos: ir.Pos{Offset: offset}, At: at, What: what, Hint: hint}
	if cause != nil {
		return fmt.Errorf("mlxg: %w: %w", e, cause)
	}
	return fmt.Errorf("mlxg: %w", e)
}
