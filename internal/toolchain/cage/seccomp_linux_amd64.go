package cage

import "golang.org/x/sys/unix"

// deniedHere are further denied system calls, which kernels for newer processors do not have.
var deniedHere = []uintptr{
	unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_MKNOD, unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_CREATE_MODULE, unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS,
}
