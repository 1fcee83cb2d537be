// Package backend is the interface between packages replay and record, which submit work, and
// the devices that execute it: backend/cpu (pure Go, everywhere, the reference) and backends for
// GPUs. backend/conformance holds the tests that all of them pass.
//
// # Words
//
// A [Buffer] is memory of a device, which the host can see or not. A [Place] is the byte of a
// buffer at which a memory of a graph begins: several memories may lie in one buffer, also in one
// that is mapped over a file. A [Program] is a graph with the places of its weights; compiled, it
// is an [Executable]. A replay needs a [Frame], which is the memory that each replay in flight
// has for itself (inputs, outputs, scratch, argument memory), and a set of [States]. Operations
// are given to a [Queue]; each is a [Pending] until it ends with a [Result].
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
// An engine that executes as it goes records commands one by one, each of which is encoded at
// once:
//
//	cb, err := queue.CommandBuffer(ctx, backend.Recording{Scope: scope})
//	err = cb.Encode(dispatch)
//	p, err := cb.Commit(ctx, "layer 1", ir.OrderEvent)
//
// Both go to a queue, which keeps the order of all its operations.
//
// # What a device does
//
// It keeps exactly the order that the graph has. Commands that barriers and commits, or edges
// ([ir.ByEdges]), leave unordered may overlap or not; the list of a graph is always a legal
// order, for every [ir.Ordering]. Marks mean: a barrier orders the commands of its command
// buffer; a commit ends a command buffer, and its order says whether later commands wait for
// all earlier ones; groups are labels. A join does nothing. A carry ([ir.Carry]) copies if
// another replay of the submission follows, and else does nothing.
//
// Two replays of one executable are ordered by the end of the list: a barrier, an ordered
// commit, or edges from the earlier replay. If each replay has an encoder of its own
// ([Info.Apart]), a barrier at the end of the list would order nothing, so package replay makes
// it an ordered commit. If nothing orders two replays, or the graph says that the host waits
// ([ir.Graph.NextHost]), a queue begins the second when the first has ended.
//
// All other operations of a queue run one after another, except for command buffers that are
// committed without an order, and for an upload, download or copy that touches no byte of a
// replay: it may run beside the replay, so that the outputs of one frame are read and the inputs
// of another are written meanwhile.
//
// Views, grids and scalars are affine in params; a submission has the params' values, which are
// within their bounds. Argument memory ([ir.Argument]) is written by the device, from its recipe
// ([ir.Memory.WriteValues]) and the params, before each replay that reads it, and never while
// another replay may read it: each frame has its own. A dispatch may take its grid and offsets
// from memory ([ir.Indirect]): counts beyond the max grid are a failure, and are not executed. A
// grid with an empty dimension does nothing.
//
// In a submission of n replays, replay i has the params advanced by i·[ir.Param.Advance]. An
// output that is kept of every replay ([ir.Memory.Every]) has n copies in the frame, one after
// another. The device calls [Submission.Ended] when each replay ends. If a submission is aborted
// between two replays, the states are those of the last one that has ended.
//
// Scratch memory, and outputs before they are written, have undefined contents: a device need not
// clear them.
//
// # Errors
//
// A kernel that the device lacks, an argument that is not bound, a place that is too short or at
// an address that a kernel cannot read from, and whatever else the device cannot do, is an error
// of Compile, NewFrame, NewStates or Encode, which names the command or memory; nothing has run
// then. Package replay has checked the limits of [Info] and run [Info.Lower] before. A device
// checks what costs little and callers could get wrong: buffers and executables of other
// devices, places without room.
//
// A device may limit the number of command buffers that are begun and not completed
// ([Info.MaxUncompleted]). Package replay knows how many a submission has, and holds it back
// until there is room; a submission of more than the limit is alone in flight, and the device
// encodes the rest as the first ones complete. A live recording cannot know how many there will
// be, so its queue counts: [Queue.CommandBuffer] waits until a committed one completes, and
// returns an error if none is committed, since then none would ever complete.
//
// An operation that fails later ends as Failed: its Result holds the error with its cause and, if
// it had begun, says that what it writes is torn. Then the queue has failed: operations after it
// that have not begun, and all that are given later, end as Failed with [ErrNotExecuted]; a
// replay that ran beside it has failed too. An operation whose context ends is Aborted, which is
// no failure: what it writes is torn if it had begun, and the queue goes on. A device ends a long
// command early if it can, and checks contexts between command buffers at least.
//
// # Memory
//
// [BufferSpec.Storage] is a wish: memory that is asked for as shared has Bytes if the device has
// memory that the host can see. If Bytes is nil, data goes through [Queue.Upload] and
// [Queue.Download]. Callers close nothing that is in flight; a device need not check that.
// Another device reads a buffer by [Buffer.ReadAt], at once and ordered by no queue.
//
// # Writing a backend
//
//   - [Completion] implements Pending; make one for each operation, and call Begin and End.
//   - [NewFrameMemory] allocates what a frame needs; [FrameMemory] is most of a Frame.
//   - backend/hostqueue is a Queue for devices whose work goroutines do. A device with hardware
//     queues writes its own, whose order is that of submission. [Queue.Await] may use a hardware
//     event for an operation of the same device; for any other it waits for Done.
//   - [Times] are on the host's clock; a device with another clock converts them.
//   - conformance.Run shows what is missing. internal/testing/testdevice passes it, with memory that the
//     host cannot see and work that ends late: read it to see what a driver has to keep track
//     of.
package backend
