//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestPrebuilt: the driver compiles every prebuilt text that is for this GPU. The test logs how long that takes,
// which a program pays once for each kernel. CUDA_CACHE_DISABLE=1 keeps what the driver has cached out of the
// figures.
func TestPrebuilt(t *testing.T) {
	d, err := Open(t.Context(), Options{})
	require.NoError(t, err)
	defer d.Close()
	a, err := prebuilt.Own()
	require.NoError(t, err)
	wanted, _, err := prebuilt.Wanted()
	require.NoError(t, err)
	type text struct {
		name string
		ptx  []byte
	}
	var texts []text
	stale := 0
	began := time.Now()
	for _, r := range sample.Parted(wanted) { // a driver compiles one text at a time, so several processes take a part each
		if r.Launch.Programmatic && d.Major < 9 {
			continue
		}
		k, err := a.Find(r)
		if err != nil {
			stale++
			continue
		}
		texts = append(texts, text{fmt.Sprintf("%s %v %+v", r.Function, r.Constants, r.Launch), k.PTX})
	}
	found := time.Since(began)
	require.NotEmpty(t, texts, "the archive has nothing of today's sources: run make ptx")
	load := func(x text) (took time.Duration) {
		began := time.Now()
		assert.NoError(t, d.gpu.Do(func() error {
			m, err := driver.LoadModule(x.ptx)
			if err != nil {
				return err
			}
			f, err := m.Function(nvptx.Entry)
			if err != nil {
				return err
			}
			if _, err := f.Attribute(driver.FunctionMaxThreads); err != nil {
				return err
			}
			took = time.Since(began)
			return m.Unload()
		}), x.name)
		return took
	}
	// Every other one by itself, and then the rest concurrently, so that the driver's cache helps neither.
	var alone, slowest time.Duration
	slow := ""
	for i := 0; i < len(texts); i += 2 {
		took := load(texts[i])
		if alone += took; took > slowest {
			slowest, slow = took, texts[i].name
		}
	}
	began = time.Now()
	var wait sync.WaitGroup
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := 1; i < len(texts); i += 2 {
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			load(texts[i])
		})
	}
	wait.Wait()
	together := time.Since(began)
	t.Logf("%d texts, %d stale: found in %v; %d loaded one by one in %v (slowest %v: %s), %d by %d threads in %v",
		len(texts), stale, found, (len(texts)+1)/2, alone, slowest, slow, len(texts)/2, runtime.GOMAXPROCS(0), together)
}
