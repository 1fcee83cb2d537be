//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxwrite"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/randomterm"
	"github.com/mlxc/mlxc/msl/decl"
)

// TestGenerated: on the GPU a generated kernel's own PTX stores the same bits as clang's PTX for it, and as the
// tests' interpreter of PTX. Clang's is compiled beforehand where there is no clang.
func TestGenerated(t *testing.T) {
	d, err := Open(t.Context(), Options{})
	require.NoError(t, err)
	defer d.Close()
	n := generatedTexts
	if os.Getenv("MLXC_LONG") != "" {
		n = 1000
	}
	terms, sources, err := generatedKernels(n)
	require.NoError(t, err)
	for i, text := range terms {
		k, err := decl.Elementwise(text)
		require.NoError(t, err)
		l := generatedLaunch(i, d.Major)
		ours := ptxwrite.Emit(k, l)
		got := d.generated(t, k, ours, l, uint64(i))
		require.Equal(t, interpreted(t, k, ours, l, uint64(i)), got, "the interpreter: %s, %+v\n%s", text, l, ours)
		b := &sources[i]
		b.Launches = []nvptx.Launch{l}
		theirs, err := b.PTX(t.Context())
		require.NoError(t, err)
		require.Equal(t, d.generated(t, k, theirs[0], l, uint64(i)), got, "clang: %s, %+v\n%s", text, l, ours)
	}
}

// interpreted returns what a kernel stores when the tests' interpreter runs it.
func interpreted(t *testing.T, k *decl.Decl, text []byte, how nvptx.Launch, seed uint64) []byte {
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

// generated returns what a kernel stores when the GPU runs it.
func (d *Device) generated(t *testing.T, k *decl.Decl, text []byte, how nvptx.Launch, seed uint64) []byte {
	t.Helper()
	l := randomterm.NewLaunch(k, how, seed)
	const align = 256
	var places []int
	size := 0
	for _, b := range l.Memory {
		places = append(places, size)
		size += (len(b) + align - 1) / align * align
	}
	at := size // offset of the table of additions
	size += align * 2
	var out []byte
	require.NoError(t, d.gpu.Do(func() error {
		m, err := driver.LoadModule(text)
		if err != nil {
			return err
		}
		defer m.Unload()
		f, err := m.Function(nvptx.Entry)
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
		// The driver reads each parameter in the width of its type, from where a list of addresses says.
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
