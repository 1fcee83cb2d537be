// Command wiring writes which bytes each command of a graph of internal/testing/benchgraphs
// reads and writes, for the peer of the pass reorder (bench_reorder_peer.py),
// and prints how many epochs the list has as it is made and after reorder.
//
//	go run ./testdata/gen/wiring FAMILY COMMANDS OUT
//
// The file is little-endian int64 words: memories, then for each its size and
// whether its contents outlive a replay; commands, then for each its kernel
// (0 norm, 1 matvec, 2 rope, 3 attention, 4 zip), how many it reads, and the
// memory, offset and length of what it writes and of each that it reads. Params
// have their largest values.
package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"

	"github.com/mlxc/mlxc/internal/testing/benchgraphs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wiring:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: wiring FAMILY COMMANDS OUT")
	}
	commands, err := strconv.Atoi(args[1])
	if err != nil || commands < 1 {
		return fmt.Errorf("%q is no number of commands", args[1])
	}
	for _, f := range benchgraphs.Families() {
		if f.Name != args[0] {
			continue
		}
		g := f.Make(commands)
		if err := write(g, args[2]); err != nil {
			return err
		}
		p, err := passes.ParsePipeline("reorder{lookahead=64}")
		if err != nil {
			return err
		}
		if _, err := passes.Run(context.Background(), g, p, passes.Options{}); err != nil {
			return err
		}
		// reorder puts a barrier behind every epoch, the last included.
		epochs := 0
		for _, n := range g.Nodes {
			if _, ok := n.(*ir.Barrier); ok {
				epochs++
			}
		}
		fmt.Println(epochs)
		return nil
	}
	return fmt.Errorf("no family is called %q", args[0])
}

func write(g *ir.Graph, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(f)
	// An error of out stays and is Flush's.
	words := func(v ...int64) { _ = binary.Write(out, binary.LittleEndian, v) }
	params := make([]uint32, len(g.Params))
	for i, p := range g.Params {
		params[i] = uint32(p.Max)
	}
	region := func(r ir.Region) { words(int64(r.Mem), r.Off.Eval(params), r.Run.Eval(params)) }
	words(int64(len(g.Memories)))
	for _, m := range g.Memories {
		stays := int64(1)
		if m.Kind == ir.Scratch {
			stays = 0
		}
		words(m.Size, stays)
	}
	var ds []*ir.Dispatch
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			ds = append(ds, d)
		}
	}
	words(int64(len(ds)))
	for _, d := range ds {
		words(int64(d.Kernel), int64(len(d.Effects.Reads)))
		region(d.Effects.Writes[0].Region)
		for _, r := range d.Effects.Reads {
			region(r)
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return f.Close()
}
