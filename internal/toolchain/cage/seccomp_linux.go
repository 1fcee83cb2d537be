package cage

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The seccomp filter. It denies what no compiler needs and Landlock does not control: what reaches beyond files, and
// changes of modes and owners. A list of what is allowed would be shorter, but would break with new versions of C
// libraries; what this list lacks is at worst what any program of the user may do to itself.

// denied are system calls that are denied on all processors.
var denied = []uintptr{
	// Sockets.
	unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
	unix.SYS_SENDTO, unix.SYS_SENDMSG, unix.SYS_SENDMMSG, unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_RECVMMSG,
	// Other processes.
	unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP,
	unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD, unix.SYS_PIDFD_SEND_SIGNAL, unix.SYS_SETSID,
	unix.SYS_SETPRIORITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR, unix.SYS_IOPRIO_SET, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	// System V and POSIX IPC, whose objects have no paths.
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGCTL, unix.SYS_MSGSND, unix.SYS_MSGRCV,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	// The kernel's facilities and administration.
	unix.SYS_BPF, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG, unix.SYS_PERSONALITY, unix.SYS_FANOTIFY_INIT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP,
	// Files by other means than their paths, and their metadata.
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FCHMODAT, sysFchmodat2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_MKNODAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
}

// enclosing are signals, which namespaces contain, and system calls that create namespaces. They are denied where the
// cage has no namespaces.
var enclosing = []uintptr{
	unix.SYS_KILL, unix.SYS_TKILL,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR,
}

const (
	sysFchmodat2 = 452
	// namespaceFlags are the flags of clone that create namespaces.
	namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	// foreignCalls is set in the numbers of the system calls of x32 programs on x86-64.
	foreignCalls = 0x40000000
)

// Offsets of a system call's number, processor and first argument in struct seccomp_data.
const (
	atNumber   = 0
	atArch     = 4
	atArgument = 16
)

// filter returns the program that the kernel runs before each system call. With whole, it denies enclosing too.
func filter(whole bool) ([]unix.SockFilter, error) {
	arch := uint32(0)
	switch runtime.GOARCH {
	case "amd64":
		arch = unix.AUDIT_ARCH_X86_64
	case "arm64":
		arch = unix.AUDIT_ARCH_AARCH64
	default:
		return nil, fmt.Errorf("there is no filter of system calls for %s", runtime.GOARCH)
	}
	const (
		load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		atMost = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K // jumps if the number is at least K
		anyOf  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		answer = unix.BPF_RET | unix.BPF_K
	)
	no := func(e unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(e)}
	}
	p := []unix.SockFilter{
		{Code: load, K: atArch},
		{Code: equal, K: arch, Jt: 1},
		no(unix.EPERM),
		{Code: load, K: atNumber},
	}
	if runtime.GOARCH == "amd64" {
		p = append(p, unix.SockFilter{Code: atMost, K: foreignCalls, Jf: 1}, no(unix.EPERM))
	}
	calls := append(append([]uintptr(nil), denied...), deniedHere...)
	if whole {
		calls = append(calls, enclosing...)
	}
	for _, c := range calls {
		p = append(p, unix.SockFilter{Code: equal, K: uint32(c), Jf: 1}, no(unix.EPERM))
	}
	// A process may ask to be traced by its parent, which detaches it: so its limits are set in time.
	p = append(p, unix.SockFilter{Code: equal, K: unix.SYS_PTRACE, Jf: 5}, unix.SockFilter{Code: load, K: atArgument},
		unix.SockFilter{Code: equal, K: unix.PTRACE_TRACEME, Jt: 2}, unix.SockFilter{Code: equal, K: unix.PTRACE_DETACH, Jt: 1},
		no(unix.EPERM), unix.SockFilter{Code: load, K: atNumber})
	if whole {
		// The flags of clone3 lie in memory, which a filter cannot read; without clone3, C libraries use clone.
		p = append(p, unix.SockFilter{Code: equal, K: unix.SYS_CLONE3, Jf: 1}, no(unix.ENOSYS),
			unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 3},
			unix.SockFilter{Code: load, K: atArgument},
			unix.SockFilter{Code: anyOf, K: namespaceFlags, Jf: 1}, no(unix.EPERM))
	}
	return append(p, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW}), nil
}

// restrictCalls sets the filter on this thread and on all processes that it starts.
func restrictCalls(whole bool) error {
	p, err := filter(whole)
	if err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("a filter of system calls: %w", err)
	}
	runtime.KeepAlive(p)
	return nil
}
