// Confines this program before it loads kernels. Their code is native, and may come from a stranger's file, so
// whatever they do must stay within this process: its memory, its threads, and the channel.
#include "executor.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#else
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (field))
#define JUMP(test, value, yes, no) BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), (yes), (no))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, (what))
// The low half of an argument; descriptors, flags and protections need no more.
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#define ALLOW(call) JUMP(BPF_JEQ, __NR_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)
#define ALLOW_ON_CHANNEL(call) \
	JUMP(BPF_JEQ, __NR_##call, 0, 4), LOAD(ARGUMENT(0)), JUMP(BPF_JEQ, CHANNEL, 0, 1), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_KILL_PROCESS)
#define ALLOW_NOT_EXECUTABLE(call) \
	JUMP(BPF_JEQ, __NR_##call, 0, 4), LOAD(ARGUMENT(2)), JUMP(BPF_JSET, PROT_EXEC, 1, 0), RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_KILL_PROCESS)

// Every other system call kills the process: no program, file, socket, process or thread can be opened or started, no
// single thread can end (exit_group ends all), and only files that came over the channel can be executed.
static struct sock_filter rules[] = {
	LOAD(offsetof(struct seccomp_data, arch)),
	JUMP(BPF_JEQ, MACHINE, 1, 0),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(offsetof(struct seccomp_data, nr)),
	ALLOW_ON_CHANNEL(read),
	ALLOW_ON_CHANNEL(write),
	ALLOW_ON_CHANNEL(recvmsg),
	ALLOW(futex),
	ALLOW(munmap),
	ALLOW(madvise),
	ALLOW(brk),
	ALLOW(mremap),
	ALLOW_NOT_EXECUTABLE(mprotect),
	// Anonymous memory must be private, so that the limit on data counts it, and not executable.
	JUMP(BPF_JEQ, __NR_mmap, 0, 14),
	LOAD(ARGUMENT(3)),
	JUMP(BPF_JSET, MAP_ANONYMOUS, 0, 5),
	JUMP(BPF_JSET, MAP_SHARED, 3, 0),
	LOAD(ARGUMENT(2)),
	JUMP(BPF_JSET, PROT_EXEC, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	RETURN(SECCOMP_RET_KILL_PROCESS),
	LOAD(ARGUMENT(2)),
	JUMP(BPF_JSET, PROT_EXEC, 1, 0),
	RETURN(SECCOMP_RET_ALLOW),
	LOAD(ARGUMENT(4)),
	JUMP(BPF_JEQ, MEMORY, 0, 1), // buffers cannot be executed
	RETURN(SECCOMP_RET_KILL_PROCESS),
	RETURN(SECCOMP_RET_ALLOW),
	ALLOW(close),
	ALLOW(ppoll),
#if defined(__x86_64__)
	ALLOW(poll),
	ALLOW(pause),
#endif
	ALLOW(clock_gettime),
	ALLOW(sched_yield),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(restart_syscall),
	ALLOW(exit_group),
	RETURN(SECCOMP_RET_KILL_PROCESS),
};

// There is no PID namespace, because the first process of one is not ended by the limit of its processor time.
void apart(void) {
	syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS);
	// In a new user namespace a process has all rights over what else is new, and outside of one it may run as root.
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	syscall(SYS_capset, &header, none);
}

const char *cage(void) {
	const struct rlimit none = {0, 0}, few = {16, 16};
	// Where a limit cannot be set, the filter still forbids what it limits.
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	setrlimit(RLIMIT_NOFILE, &few);
	syscall(SYS_close_range, MEMORY + 1, ~0u, 0); // missing before Linux 5.9
	for (int fd = 0; fd < CHANNEL; fd++)
		close(fd);
	static char message[120];
	struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0) {
		snprintf(message, sizeof message, "this system does not take a filter of system calls (seccomp): %s", strerror(errno));
		return message;
	}
	return NULL;
}

#elif defined(__APPLE__)
#include <dlfcn.h>

void apart(void) {}

// Untested so far. Reading files is allowed because kernels are loaded from temporary files.
const char *cage(void) {
	int (*sandbox)(const char *, uint64_t, char **) = (int (*)(const char *, uint64_t, char **))dlsym(RTLD_DEFAULT, "sandbox_init");
	if (!sandbox)
		return "this system has no sandbox_init";
	char *why = NULL;
	if (sandbox("(version 1)(deny default)(allow file-read* file-map-executable)(allow sysctl-read)", 0, &why) != 0)
		return why ? why : "sandbox_init fails";
	return NULL;
}

#else
void apart(void) {}
const char *cage(void) { return "there is no cage for this system yet"; }
#endif
