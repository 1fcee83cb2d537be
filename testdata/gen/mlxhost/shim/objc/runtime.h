// Types and functions of the Objective-C runtime that metal-cpp and MLX name. runtime.cpp has them.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct objc_class;
struct objc_object {
  struct objc_class* isa;
};
struct Protocol;
typedef struct objc_class* Class;
typedef struct objc_method* Method;
typedef struct objc_object* id;
typedef struct objc_selector* SEL;
typedef id (*IMP)(id, SEL, ...);
typedef bool BOOL;

extern "C" {
SEL sel_registerName(const char* name);
Class objc_lookUpClass(const char* name);
Class objc_getRequiredClass(const char* name);
Protocol* objc_getProtocol(const char* name);
Class object_getClass(id object);
bool class_addMethod(Class cls, SEL name, IMP imp, const char* types);
void* objc_autoreleasePoolPush(void);
void objc_autoreleasePoolPop(void* pool);
}
