//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"encoding/binary"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cuda"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/internal/testing/divergence"
)

// TestDivergence runs random kernels whose threads diverge and reconverge, in blocks of 1, 31, 33 and 1,023 threads,
// the last one smaller, in each way to launch them: plainly, as programmatic dependent launches, and with a table of
// additions, where the launched grid is larger than the one in the parameters. MLXC_DIVERGENCE is how many kernels.
func TestDivergence(t *testing.T) {
	programs, kernels := cuda.Divergent(number(t, "MLXC_DIVERGENCE", cuda.DivergentPrograms))
	texts, err := kernels.PTX(t.Context())
	require.NoError(t, err)
	launches := kernels.Launches
	gpu, err := driver.Open(0)
	require.NoError(t, err)
	defer func() { assert.NoError(t, gpu.Close()) }()
	modern := gpu.Description.Major >= 9
	// Parameters, and pointers to them, outside the Go heap for the driver.
	host, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	const most = 4096 // threads
	require.NoError(t, gpu.Do(func() error {
		stream, err := driver.NewStream()
		require.NoError(t, err)
		memory, err := driver.Alloc(4*most + 1024)
		require.NoError(t, err)
		rounds, table := memory+4*most, memory+4*most+256
		staged, err := driver.AllocHost(4 * most)
		require.NoError(t, err)
		put := func(at driver.Address, data []byte) {
			copy(staged, data)
			require.NoError(t, driver.CopyToDevice(stream, at, staged[:len(data)]))
			require.NoError(t, stream.Synchronize())
		}
		put(rounds, binary.LittleEndian.AppendUint32(nil, divergence.Uniform))
		for i, p := range programs {
			for k, launch := range launches {
				if launch.Programmatic && !modern {
					continue
				}
				text := texts[i*len(launches)+k]
				m, err := driver.LoadModule(text)
				require.NoError(t, err)
				f, err := m.Function(nvptx.Entry)
				require.NoError(t, err)
				for _, size := range []int{1, 31, 33, 1023} {
					threads := 2*size + (size+1)/2
					x := driver.Launch{Function: f, Grid: [3]uint32{3, 1, 1}, Block: uint32(size), Params: uintptr(unsafe.Pointer(&host[2048]))}
					// What the table adds is subtracted from the parameters.
					params := []uint64{uint64(memory), uint64(rounds), uint64(threads), 1, 1, uint64(size), 1, 1}
					if launch.Values {
						params[1] = divergence.Uniform
					}
					if launch.Moving {
						adds := []uint64{0, 128, uint64(threads) - 1, 0, 1<<64 - 6, 0, 0, 1<<64 - 1}
						var b []byte
						for k, v := range adds {
							params[k] -= v
							b = binary.LittleEndian.AppendUint64(b, v)
						}
						put(table, b)
						params = append(params, uint64(table), 1<<len(params)-1)
						x.Grid = [3]uint32{7, 2, 3} // more blocks than the parameters say
					}
					for k, v := range params {
						binary.LittleEndian.PutUint64(host[8*k:], v)
						binary.LittleEndian.PutUint64(host[2048+8*k:], uint64(uintptr(unsafe.Pointer(&host[8*k]))))
					}
					put(memory, make([]byte, 4*most))
					require.NoError(t, x.Start(stream))
					require.NoError(t, driver.CopyToHost(stream, staged, memory))
					require.NoError(t, stream.Synchronize())
					want := make([]uint32, most) // nothing behind the grid is written
					copy(want, p.Run(threads, size))
					for k := range want {
						if v := binary.LittleEndian.Uint32(staged[4*k:]); v != want[k] {
							assert.Failf(t, "another result", "%s, %+v, blocks of %d, thread %d: %d, want %d", p.Name, launch, size, k, v, want[k])
							break
						}
					}
				}
				require.NoError(t, m.Unload())
			}
		}
		require.NoError(t, driver.FreeHost(staged))
		require.NoError(t, driver.Free(memory))
		return stream.Destroy()
	}))
}
