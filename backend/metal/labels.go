//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// queues counts the queues that the process has made: their labels are numbers.
var queues atomic.Int64

// labelQueue sets the label of a queue. The caller has an autorelease pool.
func labelQueue(id objc.ID) {
	objc.SetQueueLabel.Send(id, uintptr(objc.String(fmt.Sprintf("mlxc %d", queues.Add(1)))))
}

// labelled gives an encoder the label of its command buffer, the i-th of the plan.
func (s *sending) labelled(b *objc.Batch, encoder objc.Ref, i int) objc.Ref {
	if name := s.names[i]; name != 0 && s.device.options.Groups {
		b.SendTo(objc.SetEncoderLabel, encoder, uintptr(name))
	}
	return encoder
}

// labels reports whether buffers are labelled with the memories in them: that costs messages, and only
// captures and errors show the labels.
func (d *Device) labels() bool {
	return d.options.Groups || d.wanted != nil || d.options.Captures || d.log.at(1)
}

// mostNames is the max number of memories that a buffer's label names.
const mostNames = 4

// label adds the name of memory m to the label of the buffer at p, in which it lies.
func (d *Device) label(p backend.Place, m *ir.Memory) {
	b, ok := p.Buffer.(*buffer)
	if !ok || !d.labels() {
		return
	}
	b.naming.Lock()
	defer b.naming.Unlock()
	if b.names = append(b.names, m.Name); len(b.names) > mostNames+1 {
		b.names = b.names[:mostNames+1]
		return
	}
	for i, n := range b.names[:len(b.names)-1] {
		if n == m.Name && i < mostNames { // it is named already
			b.names = b.names[:len(b.names)-1]
			return
		}
	}
	text := strings.Join(b.names, ", ")
	if len(b.names) > mostNames {
		text = strings.Join(b.names[:mostNames], ", ") + ", …"
	}
	objc.Pool(func() { objc.SetResourceLabel.Send(b.id, uintptr(objc.String(text))) })
}

// labelAll calls label for each root memory of a graph.
func (d *Device) labelAll(g *ir.Graph, places func(root ir.MemID) backend.Place) {
	if !d.labels() {
		return
	}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Alias == ir.NoMem {
			d.label(places(ir.MemID(i)), m)
		}
	}
}
