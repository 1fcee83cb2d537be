// Loads kernels: on Linux from an image in a sealed memfd, laid out and validated by the process at the other end of
// the channel; on other systems from a shared object, by its path. An image has no constructors, and refers to no
// functions but those that `imports` lists.
#include "executor.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __APPLE__
#include <dlfcn.h>

const char *load_object(const char *path, const struct kernel **out) {
	void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	*out = object ? dlsym(object, "mlxc_kernel") : NULL;
	if (*out)
		return NULL;
	const char *why = dlerror();
	return why ? why : "the object exports no kernel";
}
#else

// Functions that checked kernels call (check.c, undefined.c); only their addresses are used here.
extern char mlxc_touch[], mlxc_private[], mlxc_own[], mlxc_used[], mlxc_stored[],
	mlxc_loaded[], mlxc_copied[], mlxc_forget[], mlxc_leave[], mlxc_taken[];

// imports are the functions that kernels may call, in the order of image.go.
static void *const imports[] = {mlxc_touch, mlxc_private, mlxc_own, mlxc_used, mlxc_stored, mlxc_loaded, mlxc_copied, mlxc_forget, mlxc_leave, mlxc_taken,
	memcpy, memmove, memset};

const char *load_image(struct reader *r, int fd, const struct kernel **out) {
	uint64_t size = take64(r), kernel = take64(r);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint32_t count = take32(r);
	if (size == 0 || size > MAX_IMAGE || kernel > size - sizeof **out)
		return "the image of a kernel is too large, or none";
	uint8_t *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return "there is no room for a kernel in the address space";
	enum { MAX_SEGMENTS = 16 };
	struct {
		uint64_t at, bytes;
		uint32_t access;
	} s[MAX_SEGMENTS];
	const char *wrong = count > MAX_SEGMENTS ? "a kernel has too many segments" : NULL;
	for (uint32_t i = 0; !wrong && i < count; i++) {
		s[i].at = take64(r), s[i].bytes = take64(r), s[i].access = take32(r);
		int access = s[i].access == 1 ? PROT_READ | PROT_EXEC : PROT_READ | PROT_WRITE;
		if (s[i].at % page || s[i].at > size || s[i].bytes > size - s[i].at)
			wrong = "a segment leaves its kernel";
		else if (mmap(base + s[i].at, s[i].bytes, access, MAP_PRIVATE | MAP_FIXED, fd, (off_t)s[i].at) == MAP_FAILED)
			wrong = "a segment of a kernel cannot be mapped";
	}
	for (uint32_t n = wrong ? 0 : take32(r); !wrong && n > 0; n--) {
		uint64_t at = take64(r), value = take64(r);
		uint32_t import = take32(r);
		if (at > size - 8 || import > sizeof imports / sizeof *imports)
			wrong = "an address leaves its kernel";
		else {
			value += import ? (uint64_t)(uintptr_t)imports[import - 1] : (uint64_t)(uintptr_t)base;
			memcpy(base + at, &value, 8);
		}
	}
	// Kernels have no variables: nothing is written after these addresses.
	for (uint32_t i = 0; !wrong && i < count; i++)
		if (s[i].access != 1 && mprotect(base + s[i].at, s[i].bytes, PROT_READ) != 0)
			wrong = "a segment of a kernel cannot be protected";
	if (wrong)
		munmap(base, size);
	else
		*out = (const struct kernel *)(base + kernel);
	return wrong;
}
#endif
