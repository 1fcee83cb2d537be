package mlxc

import (
	"time"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/prove"
)

// budgetFlags bound the time and memory of each pass and each proof.
type budgetFlags struct {
	BudgetTime   time.Duration `default:"10m" placeholder:"TIME" help:"Time that one pass or one proof may take, such as 90s or 10m (0: no limit). A pass that takes longer is undone, a proof is given up."`
	BudgetMemory int64         `default:"16384" placeholder:"MIB" help:"Memory that one pass or one proof may take, in MiB (0: no limit)."`
}

func (f budgetFlags) check() error {
	if f.BudgetTime < 0 || f.BudgetMemory < 0 || f.BudgetMemory > 1<<40 {
		return cli.BadUsage("--budget-time and --budget-memory: want 0 or more, and no more than a machine can have")
	}
	return nil
}

func (f budgetFlags) budget() prove.Budget {
	return prove.Budget{Time: f.BudgetTime, Memory: f.BudgetMemory << 20}
}
