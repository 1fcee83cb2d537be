package profile_test

import "github.com/mlxc/mlxc/cmd/internal/page"

func shown(s string) string { return page.Shown(s) }
