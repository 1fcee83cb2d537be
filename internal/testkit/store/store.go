// Package store gives all tests of the tree one cache of compiled kernels, in the folder for what is made
// (out/test-cache), so that a kernel is compiled once a way, whichever tests run it. Its files have the
// digests of all that they depend on, so that it never needs to be emptied.
package store

import (
	"os"
	"path/filepath"
)

// Env names the environment variable with another folder for the cache, for who measures what compiling
// costs.
const Env = "MLXC_TEST_CACHE"

// Use has this process, and those that it starts, keep compiled kernels there: the folder is the user's cache
// (XDG_CACHE_HOME) for them, but for Go's own, which would else compile the standard library anew. It does
// nothing outside of the source tree, as on a machine that has been given nothing but a compiled test.
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

// Dir is the folder, or "" outside of the source tree.
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
