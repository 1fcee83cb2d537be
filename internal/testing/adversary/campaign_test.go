package adversary_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/adversary"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxt"
	"github.com/mlxc/mlxc/prove"
)

// The whole campaign: go test ./internal/testing/adversary -adversary.mutants 120000
var (
	mutants = flag.Int("adversary.mutants", 3000, "changes that TestNothingHarmfulIsProved tries")
	seed    = flag.Uint64("adversary.seed", 1, "of its recordings and changes")
)

func text(g *ir.Graph) string { return mlxt.Format(&ir.Module{Graphs: []*ir.Graph{g}}) }

// count counts what happened to the changes of one kind.
type count struct{ tried, proved, assumed, harmful, refused, harmlessRefused int }

// No change that produces other bytes is proved, whichever of the two graphs is taken as the recording.
func TestNothingHarmfulIsProved(t *testing.T) {
	start := time.Now()
	counts := make([]count, len(adversary.Changes))
	var mu sync.Mutex
	var wait sync.WaitGroup
	next := make(chan int)
	const perGraph = 60
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for n := range next {
				attack(t, *seed, uint64(n), perGraph, func(kind int, c count) {
					mu.Lock()
					defer mu.Unlock()
					x := &counts[kind]
					x.tried += c.tried
					x.proved += c.proved
					x.assumed += c.assumed
					x.harmful += c.harmful
					x.refused += c.refused
					x.harmlessRefused += c.harmlessRefused
				})
			}
		})
	}
	for n := range (*mutants + perGraph - 1) / perGraph {
		next <- n
	}
	close(next)
	wait.Wait()
	var all count
	var b strings.Builder
	for k, c := range counts {
		fmt.Fprintf(&b, "%-26s %7d tried %6d proved %6d with assumptions %6d refused\n", adversary.Changes[k].Name, c.tried, c.proved, c.assumed, c.refused)
		all.tried += c.tried
		all.proved += c.proved
		all.assumed += c.assumed
		all.harmful += c.harmful
		all.refused += c.refused
		all.harmlessRefused += c.harmlessRefused
	}
	t.Logf("%v\n%s%d changes: %d proved, %d with assumptions, %d refused; of those not proved that were run, %d gave other bytes, %d did not though refused",
		time.Since(start).Round(time.Millisecond), b.String(), all.tried, all.proved, all.assumed, all.refused, all.harmful, all.harmlessRefused)
	require.Greater(t, all.tried, *mutants*9/10)
	require.Greater(t, all.proved*20, all.tried, "the attack is not all refused")
	require.Greater(t, all.harmful*20, all.tried/10, "nor harmless: a tenth of the rest is run")
}

// attack changes one recording many times.
func attack(t *testing.T, seed, n uint64, changes int, report func(kind int, c count)) {
	rng := rand.New(rand.NewPCG(seed, n))
	g := adversary.Generate(rng)
	if r := prove.Check(context.Background(), g, g.Clone(), prove.Options{}); r.Verdict != prove.Proved {
		t.Errorf("a sound recording is not proved against itself: %s\n%s", r, text(g))
	}
	for tries := 0; changes > 0 && tries < 20*changes+200; tries++ {
		kind := rng.IntN(len(adversary.Changes))
		after, from, ok := adversary.Mutate(rng, g, kind)
		if !ok {
			continue
		}
		changes--
		c := count{tried: 1}
		r := prove.Check(context.Background(), g, after, prove.Options{})
		switch {
		case r.Verdict == prove.Proved && len(r.Assumptions) > 0:
			c.assumed++
		case r.Verdict == prove.Proved:
			c.proved++
			if why := adversary.Judge(rng, g, after, from, 6); why != "" {
				t.Errorf("%s, seed %d recording %d: proved, but %s\n%s\n%s", adversary.Changes[kind].Name, seed, n, why, text(g), text(after))
			}
		default:
			if r.Verdict == prove.Refused {
				c.refused++
			}
			if rng.IntN(10) == 0 {
				switch why := adversary.Judge(rng, g, after, from, 4); {
				case why != "":
					c.harmful++
				case r.Verdict == prove.Refused:
					c.harmlessRefused++
				}
			}
		}
		report(kind, c)
	}
}

// The judge finds harm where there is some.
func TestJudge(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		g := adversary.Generate(rng)
		require.Empty(t, adversary.Judge(rng, g, g.Clone(), nil, 4))
		// Without any barrier some commands race, unless there are very few.
		h := g.Clone()
		h.Kernels[1].Library.Digest[5] ^= 1 // the kernel of the last command
		require.NotEmpty(t, adversary.Judge(rng, g, h, nil, 2))
		h = g.Clone()
		h.Memories[0].Align = 32
		require.Equal(t, "another %in", adversary.Judge(rng, g, h, nil, 2))
	}
}
