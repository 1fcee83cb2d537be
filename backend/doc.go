// Package backend is the interface between what dispatches, packages replay and record, and
// what executes: backend/cpu (pure Go, everywhere, the reference) and backends for GPUs.
// backend/conformance holds the tests that all of them pass.
//
// # Words
//
// A [Buffer] is memory of a device; the host may not see it. A [Place] is a byte of a buffer
// from which on a memory of a graph lies: memories are placed in buffers, several in one, or
// in a window that is mapped over a file. A [Program] is a graph with the places of its
// weights; compiled, it is an [Executable]. A replay of one needs a [Frame], which has what
// one replay in flight has of its own (inputs, outputs, scratch, argument memory), and a set
// of [States]. A [Queue] is given operations, each of which is a [Pending] until it ends
// with a [Result].
//
// # Two ways in
//
// A graph is compiled once and submitted often:
//
//	exec, err := device.Compile(ctx, &backend.Program{Graph: g, Places: weights})
//	frame, err := exec.NewFrame(backend.FrameSpec{})
//	states, err := exec.NewStates(places)
//	queue, err := device.NewQueue()
//	_, err = queue.Upload(ctx, frame.Place(x), data)
//	p, err := queue.Submit(ctx, backend.Submission{Executable: exec, Frame: frame, States: states, Params: params})
//	err = backend.Wait(ctx)(queue.Download(ctx, result, frame.Place(y)))
//
// An engine that executes as it goes gives commands one by one, each of which is encoded
// when it comes:
//
//	cb, err := queue.CommandBuffer(ctx, backend.Recording{Scope: scope})
//	err = cb.Encode(dispatch)
//	p, err := cb.Commit(ctx, "layer 1", ir.OrderEvent)
//
// Both end in one queue, which keeps one order.
//
// # What a device does
//
// It executes exactly the order that the graph writes down. What barriers and commits, or
// edges ([ir.ByEdges]), leave open may overlap or not; the list of a graph is always a legal
// order, for every [ir.Ordering]. Marks mean: a barrier orders the commands of its command
// buffer; a commit ends a command buffer, and its order says whether what follows waits for
// all before it; groups are labels. A join does nothing. A carry ([ir.Carry]) copies
// if another replay of the submission follows, and else does nothing.
//
// Between two replays of one executable stands what ends the list: a barrier, an ordered
// commit, or edges of the replay before. Replays of a device may each have an encoder of their
// own ([Info.Apart]); a barrier at the end of a list would order nothing there, and replay
// makes it an ordered commit. Where nothing orders two replays, and where the graph says that
// the host waits ([ir.Graph.NextHost]), a queue begins the second when the first has ended.
//
// Everything else on a queue is ordered fully, but for command buffers that are committed
// without an order. Nobody can tell whether an upload, download or copy runs beside a replay
// that touches none of its bytes: a queue does that, so that the outputs of one frame are read
// and the inputs of another are written while a replay runs.
//
// Views, grids and scalars are affine in params; a submission brings the params' values,
// which are within their bounds. Argument memory ([ir.Argument]) is written by the device,
// from its recipe ([ir.Memory.WriteValues]) and the params, before each replay that reads it, and
// not while another may: each frame has its own. A dispatch may take its grid and offsets
// from memory ([ir.Indirect]): counts beyond the greatest grid are a failure, and not
// executed. A grid with an empty dimension does nothing.
//
// Of a submission of n replays the i-th has the params advanced by i·[ir.Param.Advance]. An
// output that is kept of every replay ([ir.Memory.Every]) has n copies in the frame, one after
// another. The device calls [Submission.Ended] as each ends. Cancelled between two replays it
// leaves the states of the last one.
//
// Scratch, and outputs before they are written, are undefined. A device need not clear them.
//
// # Errors
//
// What a device cannot do, a kernel that it lacks, an argument that is not bound, a place that
// is too short or at an address that a kernel cannot read from, is an error of Compile,
// NewFrame, NewStates or Encode, which names the command or memory; nothing has run then.
// Before that, replay has checked the limits of [Info] and run its passes ([Info.Lower]). A
// device checks what costs little and its callers could get wrong: buffers and executables of
// other devices, places without room.
//
// A device may limit the command buffers that are begun and not completed
// ([Info.MaxUncompleted]). Replay knows how many a submission has, and keeps it back until
// those in flight leave it room; a submission of more than the limit is alone in flight, and
// the device encodes the rest as the first ones complete. A live recording cannot know how many
// there will be, so its queue counts: [Queue.CommandBuffer] waits for one that was committed,
// and is an error where all are open, as nobody would ever end one.
//
// What fails later ends as Failed: its Result holds the error with its cause, and says that
// what it writes is torn, if it had begun. The queue has failed then: whatever was given to it
// after and has not begun, and whatever is given later, ends as Failed with [ErrNotExecuted];
// a replay that ran beside it has failed too. What its context ends is Aborted, which is no
// failure: torn if it had begun, the queue goes on. A device ends a long command early if it
// can, and looks at contexts between command buffers at least.
//
// # Memory
//
// [BufferSpec.Storage] is a wish: memory that is asked for as shared has Bytes if the device
// can give it any that the host sees. Where Bytes is nil, everything goes through
// [Queue.Upload] and [Queue.Download]. Nothing is closed that is in flight; a device need not
// check. Another device reads by [Buffer.ReadAt], at once and ordered by no queue.
//
// # Writing a backend
//
//   - [Completion] is a Pending; make one for each operation, Begin it and End it.
//   - [NewFrameMemory] allocates what a frame needs; [FrameMemory] is most of a Frame.
//   - backend/hostqueue is a Queue for devices whose work is done by goroutines. A device with
//     hardware queues writes its own: its order is that of submission. [Queue.Await] of a
//     Pending of its own may be an event of the hardware; of any other it waits for Done.
//   - [Times] are on the host's clock: a device with another one converts.
//   - conformance.Run shows what is missing. backend/testdevice passes it, with memory that the
//     host does not see and work that ends late: read it for what a driver needs to keep
//     track of.
package backend
