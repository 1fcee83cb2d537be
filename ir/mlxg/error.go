package mlxg

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// problem returns an error about a file: an [*ir.Error] that wraps the cause, if there is
// one. The offset counts from the beginning of the file.
func problem(file string, offset int64, at, what, hint string, cause error) error {
	e := &ir.Error{File: file, Pos: ir.Pos{Offset: offset}, At: at, What: what, Hint: hint}
	if cause != nil {
		return fmt.Errorf("mlxg: %w: %w", e, cause)
	}
	return fmt.Errorf("mlxg: %w", e)
}
