package declarations

import (
	"io"
	"io/fs"
	"testing"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/internal/toolchain/mslcheck"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// Source runs all tests of the kernels of one Metal source: clang compiles it and confirms its
// declarations, the tests of [conformance.Run] and [Corrupt] pass, and the folder goldens has a golden of
// each kernel.
func Source(t *testing.T, open func() backend.Device, file string, goldens fs.FS) {
	o := conformance.Options{Source: file}
	functions := dispatches.Functions(file)
	if len(functions) == 0 {
		t.Fatalf("the library has no source %s with a kernel: add it with msl.Register", file)
	}
	t.Run("source", func(t *testing.T) {
		text, err := msl.Source(file)
		require.NoError(t, err)
		l, err := mslcheck.Check(t.Context(), file, text)
		require.NoError(t, err)
		var ds []*decl.Decl
		for _, f := range functions {
			ds = append(ds, msl.Declarations(f)...)
		}
		for _, err := range l.Compare(file, text, ds) {
			t.Error(err)
		}
	})
	conformance.Run(t, open, o)
	t.Run("declarations", func(t *testing.T) { Corrupt(t, open, Options{Source: file}) })
	t.Run("goldens", func(t *testing.T) {
		dev := open()
		defer closeDevice(t, dev)
		counts := conformance.Goldens(t, dev, goldens)
		for _, f := range functions {
			if counts[f] == 0 {
				t.Errorf("%s: no golden of %s that its declaration describes: write one (docs/kernels.md, \"Goldens\")", msl.Declarations(f)[0].Family(), f)
			}
		}
	})
}

func closeDevice(t *testing.T, dev backend.Device) {
	if c, ok := dev.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Errorf("close the device: %v", err)
		}
	}
}
