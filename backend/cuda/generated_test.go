//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptx"
	"github.com/mlxc/mlxc/internal/air"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/internal/testkit/ptxrun"
	"github.com/mlxc/mlxc/internal/testkit/randomterm"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/elementwise"
)

// TestGenerated: what the GPU makes of a generated kernel's own PTX are the bits that it makes of clang's, and
// those that the tests' interpreter of PTX says. Where there is no clang the second is enough.
func TestGenerated(t *testing.T) {
	d, err := Open(t.Context(), Options{})
	require.NoError(t, err)
	defer d.Close()
	c, noClang := clang.Find(t.Context())
	r := rand.New(rand.NewPCG(21, 22))
	n := 60
	if os.Getenv("MLXC_LONG") != "" {
		n = 1000
	}
	launches := []air.Launch{{}, {Moving: true, Values: true}}
	if d.Major >= 9 {
		launches = append(launches, air.Launch{Programmatic: true, Values: true}, air.Launch{Programmatic: true, Moving: true, Values: true})
	}
	for i := range n {
		text := randomterm.Elementwise(r)
		k, err := decl.Elementwise(text)
		require.NoError(t, err)
		l := launches[i%len(launches)]
		ours := ptx.Emit(k, l)
		got := d.generated(t, k, ours, l, uint64(i))
		require.Equal(t, interpreted(t, k, ours, l, uint64(i)), got, "the interpreter: %s, %+v\n%s", text, l, ours)
		if noClang != nil {
			continue
		}
		u, err := mslc.Compile(t.Context(), "generated.metal", elementwise.Compile(k).Source(), mslc.Options{})
		require.NoError(t, err)
		m, err := u.Module(elementwise.Function)
		require.NoError(t, err)
		theirs, err := air.PTX(context.Background(), c, air.Input{Name: "generated.metal", IR: []byte(m), Kernel: &u.Kernels[0]}, l)
		require.NoError(t, err)
		require.Equal(t, d.generated(t, k, theirs, l, uint64(i)), got, "clang: %s, %+v\n%s", text, l, ours)
	}
}

// interpreted is what the tests' interpreter has a kernel store.
func interpreted(t *testing.T, k *decl.Decl, text []byte, how air.Launch, seed uint64) []byte {
	t.Helper()
	p, err := ptxrun.Parse(text)
	require.NoError(t, err)
	l := randomterm.NewLaunch(k, how, seed)
	m := &ptxrun.Memory{}
	var addresses []uint64
	for _, b := range l.Memory {
		addresses = append(addresses, m.Add(b))
	}
	params, table := l.Params(addresses)
	if how.Moving {
		params = append(params, m.Add(table), l.Moves)
	}
	require.NoError(t, p.Run(m, ptxrun.Launch{Params: params, Grid: l.Grid, Block: l.Block}))
	return bytes.Join(resultsOf(l), nil)
}

func resultsOf(l *randomterm.Launch) (out [][]byte) {
	for _, i := range l.Results {
		out = append(out, l.Memory[i])
	}
	return out
}

// generated is what the GPU has a kernel store.
func (d *Device) generated(t *testing.T, k *decl.Decl, text []byte, how air.Launch, seed uint64) []byte {
	t.Helper()
	l := randomterm.NewLaunch(k, how, seed)
	const align = 256
	var places []int
	size := 0
	for _, b := range l.Memory {
		places = append(places, size)
		size += (len(b) + align - 1) / align * align
	}
	at := size // of the table
	size += align * 2
	var out []byte
	require.NoError(t, d.gpu.Do(func() error {
		m, err := driver.LoadModule(text)
		if err != nil {
			return err
		}
		defer m.Unload()
		f, err := m.Function(air.PTXEntry)
		if err != nil {
			return err
		}
		base, err := driver.Alloc(int64(size))
		if err != nil {
			return err
		}
		defer driver.Free(base)
		host, err := driver.AllocHost(size)
		if err != nil {
			return err
		}
		defer driver.FreeHost(host)
		var addresses []uint64
		for i, b := range l.Memory {
			copy(host[places[i]:], b)
			addresses = append(addresses, uint64(base)+uint64(places[i]))
		}
		params, table := l.Params(addresses)
		if how.Moving {
			copy(host[at:], table)
			params = append(params, uint64(base)+uint64(at), l.Moves)
		}
		stream, err := driver.NewStream()
		if err != nil {
			return err
		}
		defer stream.Destroy()
		if err := driver.CopyToDevice(stream, base, host); err != nil {
			return err
		}
		// The driver reads parameters by their types, where the list of addresses says.
		block, err := driver.AllocHost(16 * len(params))
		if err != nil {
			return err
		}
		defer driver.FreeHost(block)
		for i, v := range params {
			binary.LittleEndian.PutUint64(block[8*i:], v)
			binary.LittleEndian.PutUint64(block[8*(len(params)+i):], uint64(uintptr(unsafe.Pointer(&block[8*i]))))
		}
		launch := driver.Launch{Function: f, Grid: l.Grid, Block: l.Block, Params: uintptr(unsafe.Pointer(&block[8*len(params)]))}
		if err := launch.Start(stream); err != nil {
			return err
		}
		if err := driver.CopyToHost(stream, host, base); err != nil {
			return err
		}
		if err := stream.Synchronize(); err != nil {
			return err
		}
		for i := range l.Memory {
			copy(l.Memory[i], host[places[i]:])
		}
		out = bytes.Join(resultsOf(l), nil)
		return nil
	}), "%s", text)
	return out
}
