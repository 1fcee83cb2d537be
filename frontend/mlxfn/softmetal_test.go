//go:build unix

package mlxfn_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/internal/metallib/bind"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
)

// The kernels themselves compute what MLX computes.
func TestFunctionsOnSoftwareMetal(t *testing.T) {
	sample.Seldom(t)
	files := archive(t)
	d, err := softmetal.New(context.Background(), softmetal.Options{Trust: true})
	require.NoError(t, err)
	defer d.Close()
	var names []string
	for _, name := range cases(files) {
		if !strings.HasPrefix(name, "library/") {
			names = append(names, name)
		}
	}
	for _, name := range sample.Of(t, "functions on software Metal", names, 8) {
		t.Run(name, func(t *testing.T) { run(t, d, files, name, frontend.Options{}) })
	}
}

// Where there are no kernels of our own, those of MLX's compiled library are taken.
func TestLibrary(t *testing.T) {
	sample.Seldom(t)
	files := archive(t)
	path := metallibs.Path(t, "0.32.4")
	library := metallibs.Open(t, "0.32.4")
	of := ir.Library{Kind: ir.Metallib, Path: path, Digest: sha256.Sum256(metallibs.Bytes(t, "0.32.4"))}
	compiled := func(function string) (ir.Kernel, bool) {
		k, err := library.Describe(function)
		if err != nil {
			return ir.Kernel{}, false
		}
		out, err := bind.Kernel(k, of)
		return out, err == nil
	}
	d, err := softmetal.New(context.Background(), softmetal.Options{Trust: true})
	require.NoError(t, err)
	defer d.Close()
	for _, name := range cases(files) {
		if !strings.HasPrefix(name, "library/") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sources := t.TempDir()
			source := func(name string, text []byte) ir.Library {
				path := filepath.Join(sources, "k.metal")
				if _, err := os.Stat(path); err == nil {
					path = filepath.Join(sources, "l.metal")
				}
				require.NoError(t, os.WriteFile(path, text, 0o644))
				return ir.Library{Kind: ir.SourceFile, Path: path, Digest: sha256.Sum256(text)}
			}
			run(t, d, files, name, frontend.Options{Traced: &frontend.Traced{NoStates: true, Compiled: compiled, Source: source}})
			_, err := opened(t, files, name).Record(context.Background(), frontend.Options{})
			if name == "library/plain" { // which our own kernels compute as well
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "it cannot be recorded")
			}
		})
	}
}
