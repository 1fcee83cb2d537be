// Package store gives all tests of the tree one cache of compiled kernels, out/test-cache, so that a kernel is
// compiled once in each way, whichever tests run it. Its keys are digests of everything that a file depends on, so it
// never needs to be emptied.
package store

import (
	"os"
	"path/filepath"
)

// Env names the environment variable with another folder for the cache, with which one can measure what compiling
// costs.
const Env = "MLXC_TEST_CACHE"

// Use makes this process, and those that it starts, keep compiled kernels there: the folder becomes their user's
// cache (XDG_CACHE_HOME), except for Go's build cache, without which Go would compile the standard library anew.
// Outside of the source tree, as when a compiled test runs on another machine, it does nothing.
func Use() {
	dir := Dir()
	if dir == "" {
		return
	}
	if user, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
		os.Setenv("GOCACHE", filepath.Join(user, "go-build"))
	}
	os.Setenv("XDG_CACHE_HOME", dir)
}

// Dir returns the folder, or "" outside of the source tree.
func Dir() string {
	if dir := os.Getenv(Env); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "out", "test-cache")
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return ""
}
