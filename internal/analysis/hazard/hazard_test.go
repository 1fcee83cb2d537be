package hazard_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/testing/smallgraph"
	"github.com/mlxc/mlxc/ir"
)

// effects draws complete effects, sometimes unknown ones.
func effects(t *rapid.T) *ir.Effects {
	if rapid.IntRange(0, 15).Draw(t, "unknown") == 0 {
		return nil
	}
	e := &ir.Effects{Complete: true}
	for range rapid.IntRange(0, 2).Draw(t, "reads") {
		e.Reads = append(e.Reads, smallgraph.Region(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "writes") {
		e.Writes = append(e.Writes, ir.Write{Region: smallgraph.Region(t), Must: true})
	}
	return e
}

// slowConflict compares effects with those of every remembered command.
func slowConflict(g *ir.Graph, before []*ir.Effects, e *ir.Effects) bool {
	for _, b := range before {
		if !b.Known() || !e.Known() {
			return true
		}
		for _, w := range b.Writes {
			for _, r := range e.Reads {
				if !bytestate.Disjoint(g, w.Region, r) {
					return true
				}
			}
			for _, x := range e.Writes {
				if !bytestate.Disjoint(g, w.Region, x.Region) {
					return true
				}
			}
		}
		for _, r := range b.Reads {
			for _, x := range e.Writes {
				if !bytestate.Disjoint(g, r, x.Region) {
					return true
				}
			}
		}
	}
	return false
}

// The tracker finds a conflict exactly when comparing with every earlier command does,
// also after resets.
func TestTrackerAgainstAllPairs(t *testing.T) {
	g := smallgraph.Graph()
	rapid.Check(t, func(t *rapid.T) {
		tr := hazard.NewTracker(g)
		var before []*ir.Effects
		for i := range rapid.IntRange(1, 30).Draw(t, "commands") {
			e := effects(t)
			c, got := tr.Conflict(e)
			require.Equal(t, slowConflict(g, before, e), got, "command %d", i)
			if got && len(before) > 0 {
				require.Less(t, int(c.With), i)
				require.NotEqual(t, hazard.None, c.Kind)
			}
			if rapid.IntRange(0, 9).Draw(t, "reset") == 0 {
				tr.Reset()
				before, got = nil, false
			}
			if rapid.Bool().Draw(t, "try") {
				again, found := tr.Try(ir.ID(i), e)
				require.Equal(t, got, found, "command %d", i)
				if found {
					require.Equal(t, c, again)
					if rapid.Bool().Draw(t, "drop") {
						continue // a command that conflicts is not added
					}
					tr.AddTried(ir.ID(i), e)
				}
			} else {
				tr.Add(ir.ID(i), e)
			}
			before = append(before, e)
		}
	})
}

func TestKindsOfConflict(t *testing.T) {
	g := smallgraph.Graph()
	r := ir.ViewOf(0, 0, 16).Contiguous()
	read := &ir.Effects{Complete: true, Reads: []ir.Region{r}}
	write := &ir.Effects{Complete: true, Writes: []ir.Write{{Region: r, Must: true}}}
	for _, k := range []struct {
		first, second *ir.Effects
		want          hazard.Kind
	}{{write, read, hazard.RAW}, {read, write, hazard.WAR}, {write, write, hazard.WAW}, {read, read, hazard.None}, {nil, read, hazard.Unknown}, {read, nil, hazard.Unknown}} {
		tr := hazard.NewTracker(g)
		tr.Add(7, k.first)
		c, ok := tr.Conflict(k.second)
		require.Equal(t, k.want, c.Kind)
		require.Equal(t, k.want != hazard.None, ok)
		if ok {
			require.Equal(t, ir.ID(7), c.With)
		}
	}
}
