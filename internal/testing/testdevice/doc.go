// Package testdevice is a device that behaves, and fails, like a GPU's driver, for tests of code
// that uses devices: work is done later on another thread, at most 64 command buffers may be
// begun and not completed, operations have a status, and they can fail.
//
// It executes on another device (backend/cpu) and adds the ways in which a GPU can behave and
// fail: [Options.Fault] makes a command buffer fail, [Options.Hold] keeps all of them from
// executing until [Device.Release], [Options.Late] ends everything late, [Options.Private] hides
// memory from the host, [Options.Info] gives the device other limits. If a buffer is closed while
// a command buffer uses it, that command buffer fails, as on a GPU. [Device.Leaks] lists what was
// never closed.
//
//	d := testdevice.New(cpu.New(1), testdevice.Options{Hold: true})
//	e := record.NewEncoder("t", record.Live(d))
//	…
//	e.Commit("first")
//	d.Release(1) // now it ends
//
// Replays keep the order of their graph and no more: each command buffer of a graph is a command
// buffer of the other device. With [Options.Reverse] unordered command buffers run in reverse
// order. If replays do not share an encoder ([backend.Info.Apart]), replays whose list ends in a
// barrier run in reverse order too. Replays of a graph with edges overlap.
//
// Times do not resemble a GPU's.
package testdevice
