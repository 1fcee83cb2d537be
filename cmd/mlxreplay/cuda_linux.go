//go:build (amd64 || arm64) && !static

package main

import driver "github.com/mlxc/mlxc/backend/cuda"

var cuda = driver.Driver
