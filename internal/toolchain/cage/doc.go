// Package cage runs a program on text of others so that it reaches nothing but what it needs: a compiler
// reads headers, writes a folder and prints messages, and whoever finds a fault in it can do no more than
// that.
//
//	out, err := cage.Run(ctx, cage.Job{Path: clang, Args: args, Folder: dir, Reads: []string{headers}})
//
// What the program may do, whatever it was made to do by what it reads:
//
//   - read the files and folders that the job names, and the shared libraries of the system;
//   - write its own folder, in which it runs, and which is its only place for temporary files;
//   - execute itself and what the job names;
//   - no sockets, no tracing of other processes, no mounts, namespaces or kernel keys;
//   - so much memory, time of a processor, time by the clock, and so long files and messages.
//
// It ends with its parent, also if that is killed, and what it has started ends with it.
//
// On Linux that is Landlock and a filter of system calls (landlock_linux.go, seccomp_linux.go), which a
// thread puts on itself before it starts the program: both are inherited, and the thread ends behind it.
// Where the kernel has no Landlock, namespaces do it (namespace_linux.go). On Macs it is sandbox-exec
// (run_darwin.go), which was written by its documentation and has not been tried. Where nothing of that
// is to be had the program does not run, unless the caller trusts what it reads.
package cage
