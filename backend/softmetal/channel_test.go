//go:build linux

package softmetal

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// impostor is an executor that a malicious kernel has taken over: it answers requests as the bytes of a script say.
type impostor struct {
	conn  net.Conn
	ended chan struct{}
}

func (*impostor) Pid() int            { return -1 }
func (*impostor) Idle() (int64, bool) { return 0, true }
func (i *impostor) Kill()             { _ = i.conn.Close() }
func (i *impostor) Wait()             { <-i.ended }
func (i *impostor) How() string       { return "an impostor" }

// play answers each request as the low three bits of the script's next byte say: correctly, with one byte changed,
// with an arbitrary answer, with a few bytes before it closes the channel, or with arbitrary bytes.
func (i *impostor) play(script []byte) {
	defer close(i.ended)
	defer i.conn.Close()
	next := func(n int) []byte {
		b := make([]byte, n)
		script = script[copy(b, script):]
		return b
	}
	kernels := uint64(0)
	for {
		var head [8]byte
		if _, err := io.ReadFull(i.conn, head[:]); err != nil {
			return
		}
		if _, err := io.CopyN(io.Discard, i.conn, int64(binary.LittleEndian.Uint32(head[4:]))); err != nil {
			return
		}
		var answer []byte
		switch op := binary.LittleEndian.Uint32(head[:]); op {
		case requestLoad:
			answer = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, kernels), 64)
			kernels++
		case requestRun:
			answer = append(make([]byte, 32), next(16*int(next(1)[0]%4))...)
			answer[0] = 1
		case requestCheck:
			answer = append(make([]byte, 16), next(findingBytes*int(next(1)[0]%4))...)
		}
		status := uint32(0)
		switch how := next(1)[0]; how % 8 {
		default: // the correct answer
		case 4: // one byte is changed
			if len(answer) > 0 {
				answer[int(how)%len(answer)] = next(1)[0]
			}
		case 5:
			status, answer = uint32(next(1)[0]%5), next(int(next(1)[0]))
		case 6:
			_, _ = i.conn.Write(next(int(next(1)[0])))
			return
		case 7:
			_, _ = i.conn.Write(append(next(8), next(200)...))
			continue
		}
		out := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, status), uint32(len(answer)))
		if _, err := i.conn.Write(append(out, answer...)); err != nil {
			return
		}
	}
}

// FuzzExecutor: whatever an executor answers, this process reports what is wrong with it or takes it as a valid
// answer: it does not crash, hang, or allocate as much as the answer claims.
func FuzzExecutor(f *testing.F) {
	d, err := New(f.Context(), Options{Workers: 1, Check: true})
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, d.Close()) })
	shared := native(f, d.compiler, fmt.Sprintf(plainKernel, "(void)g"))
	for _, script := range []string{"", "\x00\x00\x03\x00\x00\x00", "\x05\x02\xff", "\x00\x00\x01\x07\xff\xff\xff\xff\xff\xff\xff\xff", "\x00\x00\x00\x00\x00\x02\x01\x00\x00\x00\xff\xff\xff\xff\x03", "\x06\x00", "\x00\x04\xff"} {
		f.Add([]byte(script))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		m, err := newSharedMemory(1 << 20)
		require.NoError(t, err)
		defer m.file.Close()
		p, err := newProcess(machine{emulator: []string{"none"}}, "none", m, &Options{}, 1)
		require.NoError(t, err)
		p.look = 2 * time.Millisecond
		p.spawn = func(theirs *os.File) (runner, error) {
			conn, err := net.FileConn(theirs)
			if err != nil {
				return nil, err
			}
			i := &impostor{conn, make(chan struct{})}
			go i.play(script)
			return i, nil
		}
		defer func() { assert.NoError(t, p.close()) }()
		// A device around p, so that a replay under the checker uses the answers too.
		own := &Device{memory: m, process: p, check: &check{}, kernels: map[string]*kernel{}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		buffer, err := own.Alloc(backend.BufferSpec{Size: 64})
		if err != nil {
			return
		}
		defer buffer.Close()
		l, err := p.load(ctx, object{name: "k", code: func(context.Context) ([]byte, error) { return shared, nil }})
		if err != nil {
			return
		}
		k := &kernel{Kernel: &air.Kernel{Name: "k", Args: []air.Arg{{Name: "x", Space: air.Device, Type: "float"}}}, number: l.number}
		g := &ir.Graph{Kernels: []ir.Kernel{{Name: "k", Function: "k"}}, Memories: []ir.Memory{{Name: "x", Kind: ir.Output, Size: 64, DType: ir.F32}}}
		dispatch := &ir.Dispatch{Bindings: []ir.Binding{{Kind: ir.BindView, View: ir.View{Mem: 0, Off: ir.Const(0), Len: ir.Const(64)}}}, Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}}
		with := &bindings{memories: g.Memories, places: []backend.Place{backend.At(buffer)}}
		var b batch
		b.reset()
		b.graph = g
		s := step{node: dispatch, kernel: k}
		require.NoError(t, b.encode(&s, with))
		if times, err := p.run(ctx, &b, true); err == nil {
			require.Len(t, times, 1)
			assert.False(t, times[0].end.Before(times[0].begin))
			assert.Less(t, time.Since(times[0].begin), time.Minute)
		} else {
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
			_ = b.explain(err).Error()
		}
		x := &queueExecutor{own}
		if o, err := x.checkDispatch(ctx, g, k, dispatch, with, &b); err == nil {
			for i := range o.Findings {
				_ = o.Findings[i].String()
			}
		} else {
			assert.NotErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

// TestBelief checks the messages for the important kinds of malformed answers, which FuzzExecutor does not.
func TestBelief(t *testing.T) {
	c, theirs, err := newChannel()
	require.NoError(t, err)
	defer c.conn.Close()
	defer theirs.Close()
	say := func(text string) { _, err := unix.Write(int(theirs.Fd()), []byte(text)); require.NoError(t, err) }
	say("\x00\x00\x00\x00\x10\x00\x00\x00")
	_, _, err = c.receive(15)
	assert.ErrorContains(t, err, "it has 16 bytes, where 15 are the most")
	say("\x03\x00\x00\x00\x00\x00\x00\x00")
	_, _, err = c.receive(15)
	assert.ErrorContains(t, err, "its status is 3")
	say("\x01\x00\x00\x00\x00\x00\x01\x00")
	_, _, err = c.receive(15)
	assert.ErrorContains(t, err, "4096 are the most")
	assert.False(t, c.pending())
	say("\x01\x00\x00\x00\x02\x00\x00\x00\x1b\x07")
	assert.True(t, c.pending())
	_, message, err := c.receive(15)
	require.NoError(t, err)
	assert.Equal(t, "??", printable(message), "no message reaches a terminal as commands to it")
}
