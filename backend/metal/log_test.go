//go:build linux

package metal_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// TestDebugLevels: each debug level logs what lower levels do and more: 1 the device, pipelines and totals,
// 2 command buffers, 3 dispatches.
func TestDebugLevels(t *testing.T) {
	at := [][]string{{}, {
		`software Metal \(applegpu_software\), Apple7, Mac2, Metal3; working set 8192 MiB, buffers of at most 16384 MiB, 32 KiB of threadgroup memory, unified memory`,
		`plan concurrent, residency: a residency set, kept for 3m0s, references are retained`,
		`pipeline vv_Addfloat32 made in .*: threadgroups of at most 1024 threads, 0 bytes of threadgroup memory of its own`,
		`3 command buffers with 5 dispatches and 2 barriers, 0 of them failed; GPU .*, waited for .*; 1 pipelines made in .*`,
		`2 × some \(command buffers\)`,
	}, {
		`command buffer "some" \(1 of 3\): 2 dispatches, 1 barriers`, `command buffer "last" \(3 of 3\): 1 dispatches, 0 barriers`, `command buffers encoded and committed in `,
	}, {
		`  vv_Addfloat32 4×1×1 threads of \[4 1 1\]`,
	}}
	g := adding(t, 2, 2)
	for level := range at {
		t.Run(strconv.Itoa(level), func(t *testing.T) {
			t.Setenv("MLXC_DEBUG", strconv.Itoa(level))
			var log words
			t.Run("device", func(t *testing.T) {
				r := gpu(t, fakemetal.Options{}, metal.Options{Log: &log, Cache: metal.NoCache})
				r.run(r.replaying(g), 6)
			})
			told := log.String()
			for l, lines := range at {
				for _, line := range lines {
					if l <= level {
						assert.Regexp(t, "mlxc: metal: .*"+line, told)
					} else {
						assert.NotRegexp(t, line, told)
					}
				}
			}
			if level == 3 {
				assert.Len(t, regexp.MustCompile("  vv_Addfloat32").FindAllString(told, -1), 5, told)
			}
		})
	}
}

// TestTotals: the totals have the GPU's time by label, of command buffers and of timed commands, the numbers
// of dispatches and barriers, and apart from these the time that the host waited.
func TestTotals(t *testing.T) {
	const late = 3 * time.Millisecond
	t.Setenv("MLXC_METAL_PROFILE", "1")
	var log words
	t.Run("device", func(t *testing.T) {
		r := gpu(t, fakemetal.Options{Late: late}, metal.Options{Log: &log})
		p := r.replaying(adding(t, 2, 2))
		f, err := p.NewFrame(t.Context())
		require.NoError(t, err)
		var times backend.Times
		for range 10 {
			run, err := f.Submit(t.Context())
			require.NoError(t, err)
			times = run.Result().Times
			require.Len(t, times.Buffers, 3)
			for i, want := range []backend.BufferTime{{Label: "some", Dispatches: 2}, {Label: "some", Dispatches: 2}, {Label: "last", Dispatches: 1}} {
				got := times.Buffers[i]
				require.Positive(t, got.Duration())
				got.Span = backend.Span{}
				require.Equal(t, want, got, "each command has an encoder of its own, which no barrier is for")
			}
		}
		total := r.Totals()
		require.Equal(t, 30, total.CommandBuffers)
		require.Zero(t, total.Failed)
		require.Equal(t, 50, total.Dispatches)
		require.Positive(t, total.GPU)
		require.Positive(t, total.Waited)
		require.Len(t, total.Buffers, 2)
		require.Len(t, total.Commands, 2)
		for _, c := range []struct {
			of   []backend.Total
			want map[string]int
		}{{total.Buffers, map[string]int{"some": 20, "last": 10}}, {total.Commands, map[string]int{"step": 40, "elementwise_add": 10}}} {
			counts := map[string]int{}
			for i, x := range c.of {
				counts[x.Name] = x.Count
				require.Positive(t, x.Time)
				require.True(t, i == 0 || c.of[i-1].Time >= x.Time)
			}
			require.Equal(t, c.want, counts)
		}

		// A live recording inserts the two barriers that it needs, and counts them.
		s := record.New("live", record.Live(r.Device))
		add(s, 1, 3)
		x, err := s.Finish()
		require.NoError(t, err)
		require.NoError(t, s.Close())
		require.Equal(t, 2, x.CommandBuffers[0].Barriers)
		require.Positive(t, x.Waited)
	})
	require.Contains(t, log.String(), "× step (commands)", "told at the end without a debug level")
}

// TestLabels: queues, command buffers, encoders, groups, dispatches and buffers are labelled with
// Options.Groups; without it only queues and command buffers are.
func TestLabels(t *testing.T) {
	r := gpu(t, fakemetal.Options{}, metal.Options{Groups: true})
	r.run(r.replaying(adding(t, 2, 2)), 6)
	require.Regexp(t, `^mlxc \d+$`, r.labels("MTLCommandQueue")[0])
	require.Equal(t, []string{"some", "some", "last"}, r.labels("MTLCommandBuffer"))
	require.Equal(t, []string{"some", "some", "last"}, r.labels("MTLCommandEncoder"))
	require.Equal(t, "part step step part step step elementwise_add", strings.Join(r.labels("group"), " "))
	require.Subset(t, r.labels("MTLBuffer"), []string{"x", "y"})

	d := open(t, metal.Options{Log: r.log})
	q, err := d.NewQueue()
	require.NoError(t, err)
	kinds := []string{"MTLCommandQueue", "MTLCommandBuffer", "MTLCommandEncoder", "MTLBuffer", "group"}
	count := func() (n []int) {
		for _, k := range kinds {
			n = append(n, len(r.labels(k)))
		}
		return n
	}
	before := count()
	s := record.New("live", record.Live(d))
	add(s, 1, 1)
	_, err = s.Finish()
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.Equal(t, []string{"some", "last"}, r.labels("MTLCommandBuffer")[3:])
	before[0]++
	before[1] += 2
	require.Equal(t, before, count(), "a queue and two command buffers")
	require.NoError(t, q.Close())
	require.NoError(t, d.Close())
}

// TestGroupsOfEncoders: debug groups are opened and closed within one encoder, also if each command has an
// encoder of its own for its times; dispatches in indirect command buffers have no group of their own.
func TestGroupsOfEncoders(t *testing.T) {
	g := adding(t, 2, 2)
	for name, o := range map[string]metal.Options{
		"times": {Groups: true, Profile: true}, "indirect": {Groups: true, Plan: metal.Indirect}, "parallel": {Groups: true, Plan: metal.Parallel},
	} {
		t.Run(name, func(t *testing.T) {
			r := gpu(t, fakemetal.Options{}, o)
			r.run(r.replaying(g), 6)
			require.Contains(t, r.labels("group"), "part")
			require.Equal(t, name != "indirect", slices.Contains(r.labels("group"), "step"))
		})
	}
}

// TestLabelOfManyMemories: the label of a buffer in which many memories lie names the first four, each once.
func TestLabelOfManyMemories(t *testing.T) {
	r := gpu(t, fakemetal.Options{}, metal.Options{Debug: 1})
	s := record.New("many")
	last := s.Input("a", ir.F32, 4)
	for _, name := range []string{"b", "c", "d", "e", "f", "g"} {
		y := s.Output(name, ir.F32, 4)
		s.Silu(last, record.Into(y))
		last = y
	}
	g, err := s.Graph()
	require.NoError(t, err)
	b, err := r.Alloc(backend.BufferSpec{Size: 16 * int64(len(g.Memories))})
	require.NoError(t, err)
	e, err := r.Compile(t.Context(), &backend.Program{Graph: g})
	require.NoError(t, err)
	places := make([]backend.Place, len(g.Memories))
	for i := range places {
		places[i] = backend.Place{Buffer: b, Offset: 16 * int64(i)}
	}
	for range 2 {
		f, err := e.NewFrame(backend.FrameSpec{Places: places})
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	require.Equal(t, []string{"a", "a, b", "a, b, c", "a, b, c, d", "a, b, c, d, …"}, r.labels("MTLBuffer"))
	require.NoError(t, e.Close())
	require.NoError(t, b.Close())
}
