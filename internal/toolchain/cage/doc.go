// Package cage runs a program on untrusted input so that it reaches nothing but what it needs: a compiler reads
// headers, writes a folder and prints messages, and whoever exploits a bug in it can do no more than that.
//
//	out, err := cage.Run(ctx, cage.Job{Path: clang, Args: args, Folder: dir, Reads: []string{headers}})
//
// All that the program can do, whatever its input makes it do:
//
//   - read the files and folders that the job names, and the shared libraries of the system;
//   - write its own folder, in which it runs, and which is its only place for temporary files;
//   - execute itself and what the job names;
//   - no sockets, no tracing of other processes, no mounts, namespaces or kernel keys;
//   - use limited memory, processor time and time by the clock, and write limited files and messages.
//
// It ends with its parent, even if that is killed, and everything that it has started ends with it.
//
// On Linux it is confined by Landlock and a seccomp filter (landlock_linux.go, seccomp_linux.go), which a thread sets
// on itself before it starts the program: the program inherits both, and the thread ends. Where the kernel has no
// Landlock, namespaces are used instead (namespace_linux.go). On Macs it is sandbox-exec (run_darwin.go), which was
// written from its documentation and is untested. Where none of these is available the program does not run, unless
// the caller trusts its input.
package cage
