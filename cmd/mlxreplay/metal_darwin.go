package main

import _ "github.com/mlxc/mlxc/cmd/internal/gpu/metalgpu" // Macs have GPUs
