// Package objc sends Objective-C messages to Metal without cgo. It knows nothing of graphs.
//
//   - [Load] opens the system's libraries, or those that stand in for them in tests.
//   - A [Method] is a selector with the kinds of its arguments and its result, as the table in
//     foundation.go and metal_*.go has it: what backend/metal sends, and what its stand-in in tests
//     answers. A test holds the table against the C++ headers that Apple publishes.
//   - [Method.Send] is one message by one transition from Go to C. A [Batch] collects messages in
//     memory outside of Go, among them such as go to an object that an earlier message of the batch
//     returns, and sends all by one transition: a dispatch is about ten messages, and a transition
//     costs more than most of them.
//   - [Pool] is an autorelease pool, [String] and [GoString] convert text, [Failure] makes an error
//     of an NSError.
//
// # How arguments are passed
//
// All are integers in registers: at most eight with the object and the selector, for Apple's arm64
// packs what goes on the stack otherwise than others do. A structure of 16 bytes (NSRange) takes two
// registers. A larger one (MTLSize) is a pointer to a copy that the called method may change; the
// copy lies outside of Go's memory, where goroutine stacks do not move it. Methods that return a
// structure of more than 16 bytes are not called at all.
//
// # Who owns what is returned
//
// The method's name says it (Cocoa's rule): what a method returns whose name begins with alloc, new,
// copy or mutableCopy belongs to the caller, who calls [Release]. Everything else lasts as long as
// the [Pool] around the call, unless the caller calls [Retain].
package objc
