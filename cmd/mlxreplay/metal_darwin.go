package main

import driver "github.com/mlxc/mlxc/backend/metal"

var metal = driver.Driver
