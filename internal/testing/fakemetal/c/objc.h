// The parts of an Objective-C runtime that Metal's callers see: classes, selectors, messages, reference
// counts, autorelease pools. Mistakes of callers are noted (fail), and the program goes on.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef const char *sel; // the selector's name, interned: equal names are equal pointers
typedef struct object object;
typedef struct class class;

struct object {
	class *isa;
	long refs;
};

struct method {
	const char *name; // add_class replaces it by the selector
	void *code;       // f(object *self, sel, …)
};

struct class {
	class *isa; // NULL, which distinguishes classes from other objects
	const char *name;
	class *super;
	size_t size;
	struct method *methods, *statics; // each ends with a name of NULL; NULL is none
	struct method *newer;             // instance methods that came with macOS 15
	struct method *fourteen;          // instance methods that came with macOS 14
	bool protocol;                    // a protocol: objc_getClass does not return it
	int since;                        // the version of macOS that brought it; 0: all have it
	void (*dealloc)(object *);        // frees what the object owns, not the object itself
	struct method *more[6];           // instance methods that other files add (add_methods)
	struct method *added;             // instance methods that programs add
	struct method *more_statics[2];   // methods of the class itself that other files add
	long live, made;                  // objects that have not been freed, and all that were made; with subclasses
	class *next;
};

// The parameters of a method without arguments, and what avoids warnings if they are not used.
#define SELF object *self, sel s
#define UNUSED (void)self, (void)s
#define EXPORT __attribute__((visibility("default")))

EXPORT void objc_msgSend(void); // cast to the type of the message
void add_class(class *c);
// add_methods adds methods to a class of another file, instance methods or with statics those of the class itself.
// A method of the same name that the class has comes first.
void add_methods(class *c, struct method *methods, struct method *statics);
bool responds(object *o, sel s);
sel intern(const char *name);

object *new_object(class *c); // zeroed, with one reference, which the caller owns
object *retain(object *o);
void release(object *o);
object *autorelease(object *o); // released when this thread's innermost pool ends
bool is_kind(object *o, class *c);
bool is_freed(object *o);
// given returns whether an argument of a method is an object of class c, and notes a mistake if not.
bool given(object *o, class *c, sel method);

extern int macos; // the version of macOS that the stand-in has

// fail notes a mistake of the caller.
void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

// mishear.c: alterations of messages.
extern bool mishearing;
void mishear(object *o, sel *s, uintptr_t *registers, bool *dropped, bool *again);
void twice(uintptr_t *registers, sel s, void *code);
void hear_well(void);

// The layouts of strings, URLs and arrays. A string literal of a compiled program has that of struct string.
struct string { object base; char *text; };
struct array { object base; size_t n; object **elements; };

extern class NSObject, NSString, NSArray, NSURL, NSError, NSData;
object *string(const char *text);         // autoreleased
const char *text_of(object *string);      // "" for nil
object *error(const char *domain, long code, const char *description); // autoreleased
object *new_error(const char *domain, long code, const char *description); // the caller releases it
object *new_url(const char *path);        // the caller releases it
object *array(object **elements, size_t n); // autoreleased
object *new_array(object **elements, size_t n); // the caller releases it
object *data(const void *bytes, size_t n);  // autoreleased
