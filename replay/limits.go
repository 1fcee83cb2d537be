package replay

import (
	"context"
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// within returns an error if a graph exceeds the limits of the device.
func within(ctx context.Context, g *ir.Graph, info *backend.Info) (err error) {
	defer interrupt.Catch(&err)
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias == ir.NoMem && info.MaxBuffer > 0 && m.Size > info.MaxBuffer {
			return fmt.Errorf("memory %%%s has %d bytes, a buffer of the device at most %d", ir.QuoteName(m.Name), m.Size, info.MaxBuffer)
		}
	}
	for i, n := range g.Nodes {
		interrupt.Poll(ctx)
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		if what := beyond(g, c, info); what != "" {
			return fmt.Errorf("%s: %s", g.DescribeNode(i), what)
		}
	}
	return nil
}

// beyond says which limit of the device a command exceeds, or "".
func beyond(g *ir.Graph, c ir.Command, info *backend.Info) (what string) {
	if d, ok := c.(*ir.Dispatch); ok {
		if n := int64(d.Threadgroup[0]) * int64(d.Threadgroup[1]) * int64(d.Threadgroup[2]); info.MaxThreadgroup > 0 && n > int64(info.MaxThreadgroup) {
			return fmt.Sprintf("threadgroups of %d threads, the device has at most %d", n, info.MaxThreadgroup)
		}
		bytes := int64(0)
		for _, t := range d.ThreadgroupMemory {
			bytes += int64(t.Bytes)
		}
		if info.ThreadgroupBytes > 0 && bytes > int64(info.ThreadgroupBytes) {
			return fmt.Sprintf("%d bytes of threadgroup memory, the device has at most %d", bytes, info.ThreadgroupBytes)
		}
		if n := len(d.Bindings); n > 0 && info.ArgumentSlots > 0 && int(d.Bindings[n-1].Slot) >= info.ArgumentSlots {
			return fmt.Sprintf("binds slot %d, the device has slots 0 to %d", d.Bindings[n-1].Slot, info.ArgumentSlots-1)
		}
	}
	if info.MaxOffset > 0 {
		c.EachView(func(v *ir.View) {
			root, off := g.Root(v.Mem)
			if what != "" || g.Memories[root].Size <= info.MaxOffset {
				return
			}
			if _, hi, ok := g.Range(v.Off); !ok || off+hi > info.MaxOffset {
				what = fmt.Sprintf("%s may begin beyond byte %d of its buffer, the greatest offset of the device", g.FormatView(*v), info.MaxOffset)
			}
		})
	}
	return what
}

// commandBuffers returns the number of command buffers in a replay.
func commandBuffers(g *ir.Graph) (n int) {
	open := false
	for _, x := range g.Nodes {
		switch x.(type) {
		case *ir.Commit:
			n, open = n+1, false
		case ir.Command:
			open = true
		}
	}
	if open {
		n++
	}
	return n
}

// fits returns an error if the memories of a graph together exceed what the device may allocate. It is called
// before anything is allocated.
func (s *Instance) fits(g *ir.Graph, info *backend.Info) error {
	if info.Memory <= 0 {
		return nil
	}
	total, largest := int64(0), -1
	for i := range g.Memories {
		m := &g.Memories[i]
		mapped := m.Kind == ir.Weight && m.Init.Kind == ir.InitBlob && info.PageSize > 0
		if m.Alias != ir.NoMem || mapped || m.Kind == ir.State && s.states.buffers[m.Name] != nil {
			continue
		}
		total += min(m.Size, math.MaxInt64-total)
		if largest < 0 || m.Size > g.Memories[largest].Size {
			largest = i
		}
	}
	if total <= info.Memory {
		return nil
	}
	m := &g.Memories[largest]
	return fmt.Errorf("its memories need %d bytes (%%%s alone %d), the device %s may take %d (--memory sets how much)", total, ir.QuoteName(m.Name), m.Size, s.device.Name(), info.Memory)
}
