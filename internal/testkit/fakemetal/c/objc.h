// An Objective-C runtime as far as Metal's callers see it: classes, selectors, messages, reference
// counts, autorelease pools. What a caller does wrong is noted (fail), and the program goes on.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef const char *sel; // the one copy of a selector's name
typedef struct object object;
typedef struct class class;

struct object {
	class *isa;
	long refs;
};

struct method {
	const char *name; // becomes the selector when the class is added
	void *code;       // f(object *self, sel, …)
};

struct class {
	class *isa; // NULL: that tells a class from other objects
	const char *name;
	class *super;
	size_t size;
	struct method *methods, *statics; // each ends with a name of NULL; NULL is none
	struct method *newer;             // methods that came with macOS 15
	struct method *fourteen;          // those that came with macOS 14
	bool protocol;                    // objc_getClass does not find it
	int since;                        // the macOS that brought it; 0: all have it
	void (*dealloc)(object *);        // frees what the object has, not the object
	long live, made;                  // objects of it that have not been freed, and all
	class *next;
};

// How methods without arguments begin.
#define SELF object *self, sel s
#define UNUSED (void)self, (void)s
#define EXPORT __attribute__((visibility("default")))

void add_class(class *c);
bool responds(object *o, sel s);
sel intern(const char *name);

object *new_object(class *c); // zeroed, one reference, the caller's
object *retain(object *o);
void release(object *o);
object *autorelease(object *o); // released when the pool on top of this thread's ends
bool is_kind(object *o, class *c);
bool is_freed(object *o);
// given says whether an argument is an object of a class, and notes if it is not.
bool given(object *o, class *c, sel method);

extern int macos; // the version that this pretends to be

// fail notes that the caller has done what it must not.
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// mishear.c: messages that arrive otherwise than they were sent.
extern bool mishearing;
void mishear(object *o, sel *s, uintptr_t *registers, bool *dropped, bool *again);
void twice(uintptr_t *registers, sel s, void *code);
void hear_well(void);

extern class NSObject, NSString, NSArray, NSURL, NSError, NSData;
object *string(const char *text);         // autoreleased
const char *text_of(object *string);      // "" of nil
object *error(const char *domain, long code, const char *description); // autoreleased
object *new_error(const char *domain, long code, const char *description); // the caller's
object *array(object **elements, size_t n); // autoreleased
object *new_array(object **elements, size_t n); // the caller's
object *data(const void *bytes, size_t n);  // autoreleased
