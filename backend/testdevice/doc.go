// Package testdevice is a device that behaves, and fails, as a GPU's driver does, for tests of
// what drives one: work is done on another thread, later; at most 64 command buffers may
// be begun and not completed; each operation has a status; they can fail.
//
// It executes on another device (backend/cpu) and adds what that one cannot do
// wrong: [Options.Fault] makes a command buffer fail, [Options.Hold] keeps all of
// them from ending until [Device.Release], [Options.Late] ends everything late, [Options.Private]
// keeps memory from the host, [Options.Info] gives the device other limits; a buffer that is
// closed while a command buffer uses it makes that one fail as a GPU would, and
// [Device.Leaks] lists what was never given back.
//
//	d := testdevice.New(cpu.New(1), testdevice.Options{Hold: true})
//	e := record.NewEncoder("t", record.Live(d))
//	…
//	e.Commit("first")
//	d.Release(1) // now it ends
//
// Replays are executed as the graph orders them and no more: each command buffer of a list is
// one of the other device. With [Options.Reverse] those that nothing orders run backwards, and
// where the device says that replays do not share an encoder ([backend.Info.Apart]), so do
// replays whose list ends in a barrier. Replays of a graph that edges order overlap.
//
// Not here: timing that resembles a GPU's.
package testdevice
