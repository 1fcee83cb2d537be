// What MLX's host code needs beside the stand-in for Metal (internal/testing/fakemetal/c), which has the Objective-C runtime: a few
// functions of the system, and messages with structures. These lie on the stack on x86-64, where the stand-in wants pointers to them.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {

const char* sel_registerName(const char* name);

__attribute__((visibility("hidden"))) void* mlxhost_send;
__attribute__((visibility("hidden"))) const char *mlxhost_groups, *mlxhost_threads;

__attribute__((constructor(101))) static void begin(void) {
  mlxhost_send = dlsym(RTLD_DEFAULT, "objc_msgSend");
  mlxhost_groups = sel_registerName("dispatchThreadgroups:threadsPerThreadgroup:");
  mlxhost_threads = sel_registerName("dispatchThreads:threadsPerThreadgroup:");
}

__attribute__((visibility("hidden"))) void objc_msgSend_stret(void) {
  fprintf(stderr, "a message returns a structure\n");
  abort();
}

uintptr_t vm_page_size = 16384;

int sysctlbyname(const char* name, void* value, size_t*, void*, size_t) {
  if (strcmp(name, "hw.memsize")) {
    return -1;
  }
  *(uint64_t*)value = 64ull << 30;
  return 0;
}

void* MTLCopyAllDevices(void);
void* MTLCopyAllDevicesWithObserver(void*, void*) {
  return MTLCopyAllDevices();
}
void MTLRemoveDeviceObserver(void*) {}
}

asm(".text\n.globl objc_msgSend, objc_msgSend_fpret\n.hidden objc_msgSend, objc_msgSend_fpret\n"
    "objc_msgSend:\nobjc_msgSend_fpret:\n"
    "cmp mlxhost_groups(%rip), %rsi\n je 1f\n cmp mlxhost_threads(%rip), %rsi\n je 1f\n jmp *mlxhost_send(%rip)\n"
    "1: lea 8(%rsp), %rdx\n lea 32(%rsp), %rcx\n jmp *mlxhost_send(%rip)\n");
