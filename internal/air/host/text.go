package host

import "github.com/mlxc/mlxc/internal/air"

// text is IR that is being written.
type text struct{ air.Text }
