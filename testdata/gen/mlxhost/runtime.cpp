// An Objective-C runtime, and as much of Foundation and Metal as MLX's host code asks for, on x86-64 Linux.
// It executes nothing. Buffers are memory of this process; what encoders are sent is recorded:
//
//   ["d", FUNCTION, [[INDEX, TYPE, BYTES], …], "threads" | "groups", [x, y, z], [x, y, z], [SET, …]]
//
// is a dispatch: its function, function constants, grid, threads of a threadgroup, and what was set since the
// dispatch before: ["b", INDEX, BUFFER, OFFSET], ["y", INDEX, BYTES] or ["t", INDEX, LENGTH]. "barrier" is one,
// and "commit" the end of a command buffer. Command buffers complete when they are committed.
//
// A message is a call of objc_msgSend, which finds the function by the selector and jumps to it. Selectors have
// one function for all classes, as MLX uses none in two senses but commit.
#include "runtime.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace {

using Word = uint64_t;

struct Class;

// Object is an instance of any class: each uses a few of the fields.
struct Object {
  Class* isa;
  std::atomic<int> references{1};
  std::string text; // of a string, the name of a function or library, function constants as JSON
  std::vector<Object*> items; // of an array
  void* memory = nullptr; // of a buffer
  bool owned = false; // memory was allocated here
  Word number = 0; // length of a buffer or heap, value of an event
  Object* of = nullptr; // function of a pipeline, pipeline of an encoder
  std::string constants;
  std::string set;
  std::vector<std::pair<Object*, Word>> signals;
  std::vector<void*> handlers;
};

struct Class : Object {
  std::string name;
};

struct Selector {
  std::string name;
  void* function = nullptr;
  bool missed = false;
};

std::recursive_mutex lock;
using Guard = std::lock_guard<std::recursive_mutex>;

const std::unordered_map<std::string, void*>& methods();

Class* class_of(const char* name) {
  static auto* all = new std::map<std::string, Class*>;
  Guard guard(lock);
  Class*& c = (*all)[name];
  if (!c) {
    c = new Class;
    c->isa = nullptr;
    c->name = name;
  }
  return c;
}

Object* make(const char* name, int references = 1) {
  auto* o = new Object;
  o->isa = class_of(name);
  o->references = references;
  return o;
}

Object* string(const std::string& text) {
  Object* o = make("NSString");
  o->text = text;
  return o;
}

// What is recorded of the case that runs.
bool recording = false;
std::string recorded;
std::unordered_map<const void*, std::string> names;
int unnamed = 0;

void record(const std::string& what) {
  Guard guard(lock);
  if (recording) {
    recorded += (recorded.empty() ? "" : ",") + what;
  }
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    out += c;
  }
  return out + "\"";
}

std::string hex(const void* bytes, size_t n) {
  std::string out = "\"";
  for (size_t i = 0; i < n; i++) {
    char two[3];
    snprintf(two, sizeof two, "%02x", ((const unsigned char*)bytes)[i]);
    out += two;
  }
  return out + "\"";
}

std::string list(std::initializer_list<std::string> items) {
  std::string out;
  for (const std::string& i : items) {
    out += (out.empty() ? "[" : ",") + i;
  }
  return out + "]";
}

std::string buffer_name(const Object* buffer) {
  if (!buffer) {
    return "null";
  }
  Guard guard(lock);
  std::string& name = names[buffer];
  if (name.empty()) {
    name = "t" + std::to_string(unnamed++) + ":" + std::to_string(buffer->number);
  }
  return quoted(name);
}

// Blocks and their __block variables, as clang calls them (Block ABI of the clang documentation).

struct Descriptor {
  unsigned long reserved;
  unsigned long size;
  void (*copy)(void*, const void*);
  void (*dispose)(const void*);
};

struct Block {
  void* isa;
  std::atomic<int32_t> flags;
  int32_t reserved;
  void (*invoke)(void*, ...);
  Descriptor* descriptor;
};

// Shared is a __block variable, which its block's copy and the function that made it share.
struct Shared {
  void* isa;
  Shared* forwarding;
  std::atomic<int32_t> flags;
  uint32_t size;
  void (*keep)(Shared*, Shared*);
  void (*destroy)(Shared*);
};

constexpr int32_t kIsShared = 8; // of what _Block_object_assign is told
constexpr int32_t kCount = 0xfffe, kNeedsFree = 1 << 24, kHasCopy = 1 << 25, kGlobal = 1 << 28;

} // namespace

extern "C" {

void* _NSConcreteGlobalBlock[32];
void* _NSConcreteMallocBlock[32];
void* _NSConcreteStackBlock[32];

void* _Block_copy(const void* from) {
  auto* b = (Block*)from;
  if (!b || (b->flags & kGlobal)) {
    return b;
  }
  if (b->flags & kNeedsFree) {
    b->flags += 2;
    return b;
  }
  auto* copy = (Block*)malloc(b->descriptor->size);
  memcpy((void*)copy, (const void*)b, b->descriptor->size);
  copy->isa = _NSConcreteMallocBlock;
  copy->flags = (copy->flags & ~0xffff) | kNeedsFree | 2;
  if (b->flags & kHasCopy) {
    b->descriptor->copy(copy, b);
  }
  return copy;
}

void _Block_release(const void* block) {
  auto* b = (Block*)block;
  if (!b || !(b->flags & kNeedsFree) || ((b->flags -= 2) & kCount) != 0) {
    return;
  }
  if (b->flags & kHasCopy) {
    b->descriptor->dispose(b);
  }
  free(b);
}

void _Block_object_assign(void* to, const void* from, int kind) {
  if (!(kind & kIsShared)) {
    *(const void**)to = from;
    return;
  }
  Shared* s = ((Shared*)from)->forwarding;
  if (s->flags & kNeedsFree) {
    s->flags += 2;
  } else {
    auto* copy = (Shared*)malloc(s->size);
    memcpy((void*)copy, (const void*)s, s->size);
    copy->flags = (copy->flags & ~0xffff) | kNeedsFree | 4;
    copy->forwarding = copy;
    s->forwarding = copy;
    if (s->flags & kHasCopy) {
      s->keep(copy, s);
    }
    s = copy;
  }
  *(Shared**)to = s;
}

void _Block_object_dispose(const void* object, int kind) {
  if (!(kind & kIsShared)) {
    return;
  }
  Shared* s = ((Shared*)object)->forwarding;
  if ((s->flags & kNeedsFree) && ((s->flags -= 2) & kCount) == 0) {
    if (s->flags & kHasCopy) {
      s->destroy(s);
    }
    free(s);
  }
}

// The runtime.

Selector* sel_registerName(const char* name) {
  static auto* all = new std::unordered_map<std::string, Selector*>;
  Guard guard(lock);
  Selector*& s = (*all)[name];
  if (!s) {
    s = new Selector{name};
    if (auto m = methods().find(name); m != methods().end()) {
      s->function = m->second;
    }
  }
  return s;
}

Class* objc_lookUpClass(const char* name) {
  return class_of(name);
}

Class* objc_getRequiredClass(const char* name) {
  return class_of(name);
}

Class* objc_getProtocol(const char* name) {
  return class_of(name);
}

Class* object_getClass(Object* o) {
  return o ? o->isa : nullptr;
}

bool class_addMethod(Class*, Selector*, void*, const char*) {
  return true;
}

void* objc_autoreleasePoolPush() {
  return nullptr;
}

void objc_autoreleasePoolPop(void*) {}

static Word nothing() {
  return 0;
}

void* mlxhost_function(Object* receiver, Selector* s) {
  if (!receiver) {
    return (void*)nothing;
  }
  if (!s->function) {
    if (!s->missed) {
      fprintf(stderr, "no method %s (of %s)\n", s->name.c_str(), receiver->isa ? receiver->isa->name.c_str() : "a class");
      s->missed = true;
    }
    return (void*)nothing;
  }
  return s->function;
}
}

// The registers that pass arguments are kept while the function is looked up. _stret has one argument more, the place
// of the result, before the receiver.
#define SEND(FIND)                                                                                       \
  "push %rdi; push %rsi; push %rdx; push %rcx; push %r8; push %r9; push %rax; sub $128, %rsp\n"           \
  "movups %xmm0, (%rsp); movups %xmm1, 16(%rsp); movups %xmm2, 32(%rsp); movups %xmm3, 48(%rsp)\n"        \
  "movups %xmm4, 64(%rsp); movups %xmm5, 80(%rsp); movups %xmm6, 96(%rsp); movups %xmm7, 112(%rsp)\n" FIND \
  "call mlxhost_function\n"                                                                              \
  "mov %rax, %r11\n"                                                                                     \
  "movups (%rsp), %xmm0; movups 16(%rsp), %xmm1; movups 32(%rsp), %xmm2; movups 48(%rsp), %xmm3\n"        \
  "movups 64(%rsp), %xmm4; movups 80(%rsp), %xmm5; movups 96(%rsp), %xmm6; movups 112(%rsp), %xmm7\n"     \
  "add $128, %rsp; pop %rax; pop %r9; pop %r8; pop %rcx; pop %rdx; pop %rsi; pop %rdi; jmp *%r11\n"
asm(".text\n.globl objc_msgSend, objc_msgSend_fpret, objc_msgSend_stret\n"
    "objc_msgSend:\nobjc_msgSend_fpret:\n" SEND("") "objc_msgSend_stret:\n" SEND("mov %rsi, %rdi; mov %rdx, %rsi\n"));

namespace {

// Foundation.

Object* alloc(Class* c) {
  return make(c->name.c_str());
}

Object* itself(Object* o) {
  return o;
}

Object* retain(Object* o) {
  o->references++;
  return o;
}

void release(Object* o) {
  static Class* buffer = class_of("MTLBuffer");
  if (--o->references != 0) {
    return;
  }
  if (o->isa == buffer) {
    Guard guard(lock);
    names.erase(o);
    if (o->owned) {
      free(o->memory);
    }
  }
  delete o;
}

Object* string_of_c(void*, void*, const char* s, Word) {
  return string(s);
}

Object* string_of_string(void*, void*, Object* s) {
  return string(s->text);
}

const char* utf8(Object* o) {
  return o->text.c_str();
}

Object* text_of(Object* o) {
  return string(o->text);
}

Object* array_of(void*, void*, Object** items, Word n) {
  Object* a = make("NSArray");
  a->items.assign(items, items + n);
  return a;
}

Object* item(Object* a, void*, Word i) {
  return a->items.at(i);
}

Word count(Object* a) {
  return a->items.size();
}

bool yes() {
  return true;
}

// The device.

const char* architecture() {
  const char* a = getenv("MLXHOST_ARCHITECTURE");
  return a ? a : "applegpu_g15s";
}

Object* device() {
  static Object* d = [] {
    Object* d = make("MTLDevice", 1 << 30);
    d->text = "Recorder";
    return d;
  }();
  return d;
}

Object* architecture_of(Object*) {
  Object* a = make("MTLArchitecture");
  a->text = architecture();
  return a;
}

Word memory_size() {
  return 64ull << 30;
}

Object* new_buffer(Word length, void* memory) {
  Object* b = make("MTLBuffer");
  b->number = length;
  b->owned = !memory;
  b->memory = memory ? memory : calloc(1, (length + 16383) & ~16383ull);
  return b;
}

Object* buffer_with_length(Object*, void*, Word length, Word) {
  return new_buffer(length, nullptr);
}

Object* buffer_without_copy(Object*, void*, void* memory, Word length, Word, void*) {
  return new_buffer(length, memory);
}

Object* buffer_with_bytes(Object*, void*, const void* bytes, Word length, Word) {
  Object* b = new_buffer(length, nullptr);
  memcpy(b->memory, bytes, length);
  return b;
}

Object* new_heap(Object*, void*, Object* descriptor) {
  Object* h = make("MTLHeap");
  h->number = descriptor->number;
  return h;
}

void set_number(Object* o, void*, Word n) {
  o->number = n;
}

Word number(Object* o) {
  return o->number;
}

void* contents(Object* o) {
  return o->memory;
}

Object* new_fence() {
  return make("MTLFence");
}

Object* new_event() {
  return make("MTLSharedEvent");
}

Object* new_queue() {
  return make("MTLCommandQueue");
}

Object* new_residency_set() {
  return make("MTLResidencySet");
}

// Libraries and pipelines. Every function exists.

Object* library(Object*, void*, Object* path, void*) {
  Object* l = make("MTLLibrary");
  l->text = path->text;
  return l;
}

Object* library_of_source(Object*, void*, Object*, Object*, void*) {
  Object* l = make("MTLLibrary");
  l->text = "source";
  return l;
}

Object* new_function(const std::string& name, const std::string& constants) {
  Object* f = make("MTLFunction");
  f->text = name;
  f->constants = constants;
  return f;
}

Object* function_named(Object*, void*, Object* name) {
  return new_function(name->text, "");
}

Object* function_described(Object*, void*, Object* descriptor, void*) {
  return new_function(descriptor->text, descriptor->constants);
}

Object* function_descriptor() {
  return make("MTLFunctionDescriptor");
}

void set_name(Object* o, void*, Object* name) {
  o->text = name->text;
}

void set_constants(Object* o, void*, Object* values) {
  o->constants = values->constants;
}

// set_constant notes a function constant; types are those of MTLDataType.
void set_constant(Object* values, void*, const void* value, Word type, Word index) {
  const char* name;
  size_t size;
  switch (type) {
    case 3: name = "f32", size = 4; break;
    case 16: name = "f16", size = 2; break;
    case 29: name = "i32", size = 4; break;
    case 33: name = "u32", size = 4; break;
    case 37: name = "i16", size = 2; break;
    case 41: name = "u16", size = 2; break;
    case 45: name = "i8", size = 1; break;
    case 49: name = "u8", size = 1; break;
    case 53: name = "bool", size = 1; break;
    default: fprintf(stderr, "function constant of MTLDataType %lu\n", (unsigned long)type); abort();
  }
  values->constants += (values->constants.empty() ? "" : ",") + list({std::to_string(index), quoted(name), hex(value, size)});
}

Object* pipeline(Object*, void*, Object* function, void*) {
  Object* p = make("MTLComputePipelineState");
  p->text = function->text;
  p->constants = function->constants;
  return p;
}

Object* pipeline_described(Object*, void*, Object* descriptor, Word, void*, void*) {
  return pipeline(nullptr, nullptr, descriptor->of, nullptr);
}

void set_function(Object* descriptor, void*, Object* function) {
  descriptor->of = function;
}

Object* linked_functions() {
  return make("MTLLinkedFunctions");
}

// Threads that a threadgroup may have, which MLX asks each pipeline for; kernels that need many registers answer less.
Word most_threads() {
  return 1024;
}

Word simd_width() {
  return 32;
}

// Command buffers.

Object* command_buffer() {
  return make("MTLCommandBuffer", 0);
}

Object* encoder(Object*, void*, Word) {
  return make("MTLComputeCommandEncoder", 0);
}

void add_handler(Object* buffer, void*, void* block) {
  buffer->handlers.push_back(_Block_copy(block));
}

void commit(Object* o) {
  static Class* buffers = class_of("MTLCommandBuffer");
  if (o->isa != buffers) {
    return; // of a residency set
  }
  record("\"commit\"");
  retain(o);
  for (auto& [event, value] : o->signals) {
    event->number = std::max(event->number, value);
    release(event);
  }
  for (void* block : std::exchange(o->handlers, {})) {
    ((Block*)block)->invoke(block, o);
    _Block_release(block);
  }
  release(o);
}

Word completed() {
  return 4; // MTLCommandBufferStatusCompleted
}

void signal_event(Object* buffer, void*, Object* event, Word value) {
  buffer->signals.push_back({retain(event), value});
}

// Encoders.

void add(Object* encoder, const std::string& what) {
  encoder->set += (encoder->set.empty() ? "" : ",") + what;
}

void set_pipeline(Object* e, void*, Object* p) {
  e->of = p;
}

void set_buffer(Object* e, void*, Object* buffer, Word offset, Word index) {
  add(e, list({"\"b\"", std::to_string(index), buffer_name(buffer), std::to_string(offset)}));
}

void set_bytes(Object* e, void*, const void* bytes, Word length, Word index) {
  add(e, list({"\"y\"", std::to_string(index), hex(bytes, length)}));
}

void set_threadgroup_memory(Object* e, void*, Word length, Word index) {
  add(e, list({"\"t\"", std::to_string(index), std::to_string(length)}));
}

struct Size {
  Word x, y, z;
};

std::string size(Size s) {
  return list({std::to_string(s.x), std::to_string(s.y), std::to_string(s.z)});
}

void dispatch(Object* e, const char* kind, Size grid, Size group) {
  record(list({"\"d\"", quoted(e->of->text), "[" + e->of->constants + "]", kind, size(grid), size(group), "[" + e->set + "]"}));
  e->set.clear();
}

void dispatch_threads(Object* e, void*, Size grid, Size group) {
  dispatch(e, "\"threads\"", grid, group);
}

void dispatch_threadgroups(Object* e, void*, Size grid, Size group) {
  dispatch(e, "\"groups\"", grid, group);
}

void barrier(Object*, void*, Word) {
  record("\"barrier\"");
}

const std::unordered_map<std::string, void*>& methods() {
  static const auto* all = new std::unordered_map<std::string, void*>{
      {"alloc", (void*)alloc},
      {"init", (void*)itself},
      {"retain", (void*)retain},
      {"release", (void*)release},
      {"autorelease", (void*)itself},
      {"drain", (void*)nothing},
      {"respondsToSelector:", (void*)yes},
      {"stringWithCString:encoding:", (void*)string_of_c},
      {"stringWithString:", (void*)string_of_string},
      {"UTF8String", (void*)utf8},
      {"localizedDescription", (void*)text_of},
      {"arrayWithObjects:count:", (void*)array_of},
      {"objectAtIndex:", (void*)item},
      {"count", (void*)count},
      {"fileURLWithPath:", (void*)text_of},

      {"architecture", (void*)architecture_of},
      {"name", (void*)text_of},
      {"setLabel:", (void*)nothing},
      {"maxBufferLength", (void*)memory_size},
      {"recommendedMaxWorkingSetSize", (void*)memory_size},
      {"supportsFamily:", (void*)yes},
      {"newBufferWithLength:options:", (void*)buffer_with_length},
      {"newBufferWithBytesNoCopy:length:options:deallocator:", (void*)buffer_without_copy},
      {"newBufferWithBytes:length:options:", (void*)buffer_with_bytes},
      {"newHeapWithDescriptor:", (void*)new_heap},
      {"setSize:", (void*)set_number},
      {"setResourceOptions:", (void*)nothing},
      {"length", (void*)number},
      {"allocatedSize", (void*)number},
      {"contents", (void*)contents},
      {"heap", (void*)nothing},
      {"storageMode", (void*)nothing},
      {"newFence", (void*)new_fence},
      {"newSharedEvent", (void*)new_event},
      {"newCommandQueue", (void*)new_queue},
      {"newResidencySetWithDescriptor:error:", (void*)new_residency_set},
      {"requestResidency", (void*)nothing},
      {"addAllocation:", (void*)nothing},
      {"removeAllocation:", (void*)nothing},
      {"addResidencySets:count:", (void*)nothing},
      {"addResidencySet:", (void*)nothing},

      {"newLibraryWithFile:error:", (void*)library},
      {"newLibraryWithURL:error:", (void*)library},
      {"newLibraryWithSource:options:error:", (void*)library_of_source},
      {"newFunctionWithName:", (void*)function_named},
      {"newFunctionWithDescriptor:error:", (void*)function_described},
      {"functionDescriptor", (void*)function_descriptor},
      {"setName:", (void*)set_name},
      {"setSpecializedName:", (void*)nothing},
      {"setConstantValues:", (void*)set_constants},
      {"setConstantValue:type:atIndex:", (void*)set_constant},
      {"setMathMode:", (void*)nothing},
      {"setFastMathEnabled:", (void*)nothing},
      {"setLanguageVersion:", (void*)nothing},
      {"languageVersion", (void*)nothing},
      {"newComputePipelineStateWithFunction:error:", (void*)pipeline},
      {"newComputePipelineStateWithDescriptor:options:reflection:error:", (void*)pipeline_described},
      {"setComputeFunction:", (void*)set_function},
      {"setLinkedFunctions:", (void*)nothing},
      {"linkedFunctions", (void*)linked_functions},
      {"setPrivateFunctions:", (void*)nothing},
      {"maxTotalThreadsPerThreadgroup", (void*)most_threads},
      {"threadExecutionWidth", (void*)simd_width},
      {"staticThreadgroupMemoryLength", (void*)nothing},

      {"commandBuffer", (void*)command_buffer},
      {"commandBufferWithUnretainedReferences", (void*)command_buffer},
      {"computeCommandEncoderWithDispatchType:", (void*)encoder},
      {"addCompletedHandler:", (void*)add_handler},
      {"commit", (void*)commit},
      {"waitUntilCompleted", (void*)nothing},
      {"status", (void*)completed},
      {"encodeSignalEvent:value:", (void*)signal_event},
      {"encodeWaitForEvent:value:", (void*)nothing},
      {"waitUntilSignaledValue:timeoutMS:", (void*)yes},
      {"signaledValue", (void*)number},
      {"setSignaledValue:", (void*)set_number},

      {"setComputePipelineState:", (void*)set_pipeline},
      {"setBuffer:offset:atIndex:", (void*)set_buffer},
      {"setBytes:length:atIndex:", (void*)set_bytes},
      {"setThreadgroupMemoryLength:atIndex:", (void*)set_threadgroup_memory},
      {"dispatchThreads:threadsPerThreadgroup:", (void*)dispatch_threads},
      {"dispatchThreadgroups:threadsPerThreadgroup:", (void*)dispatch_threadgroups},
      {"memoryBarrierWithScope:", (void*)barrier},
      {"updateFence:", (void*)nothing},
      {"waitForFence:", (void*)nothing},
      {"endEncoding", (void*)nothing},
  };
  return *all;
}

} // namespace

extern "C" {

Object* MTLCreateSystemDefaultDevice() {
  return device();
}

Object* MTLCopyAllDevices() {
  Object* a = make("NSArray");
  a->items.push_back(device());
  return a;
}

Object* MTLCopyAllDevicesWithObserver(void*, void*) {
  return MTLCopyAllDevices();
}

void MTLRemoveDeviceObserver(void*) {}

uintptr_t vm_page_size = 16384;

int sysctlbyname(const char* name, void* value, size_t*, void*, size_t) {
  if (!strcmp(name, "hw.memsize")) {
    *(Word*)value = 128ull << 30;
  } else if (!strcmp(name, "iogpu.rsrc_limit")) {
    *(Word*)value = 499000;
  } else {
    return -1;
  }
  return 0;
}
}

namespace mlxhost {

void begin() {
  Guard guard(lock);
  recording = true;
  recorded.clear();
  names.clear();
  unnamed = 0;
}

void name(const void* buffer, const std::string& name) {
  Guard guard(lock);
  names[buffer] = name;
}

std::string name_of(const void* buffer) {
  Guard guard(lock);
  return names[buffer];
}

std::string end() {
  Guard guard(lock);
  recording = false;
  return std::exchange(recorded, {});
}

} // namespace mlxhost
