// Package objc sends Objective-C messages to Metal without cgo. It knows nothing of graphs.
//
//   - [Load] opens the system's libraries, or a stand-in for them in tests.
//   - A [Method] is a selector with the kinds of its arguments and its result. The table of all methods
//     that backend/metal sends is in foundation.go and metal_*.go; a test compares it with the C++
//     headers that Apple publishes.
//   - [Method.Send] sends one message by one call from Go to C. A [Batch] collects messages in memory
//     outside of Go and sends all by one call; a message may go to the object that an earlier message
//     of the batch returns. It saves time since a dispatch takes about ten messages, and a call to C
//     costs more than most of them.
//   - [Pool] is an autorelease pool, [String] and [GoString] convert text, [Failure] makes an error
//     of an NSError.
//
// # How arguments are passed
//
// All arguments are integers in registers, at most eight with the object and the selector: Apple's arm64
// convention lays out arguments on the stack in its own way, which is not supported. A structure of 16
// bytes (NSRange) takes two registers. A larger one (MTLSize) is passed as a pointer to a copy, which
// the called method may change; the copy lies outside of Go's memory, so it does not move as goroutine
// stacks do. Methods that return a structure of more than 16 bytes are not called at all.
//
// # Who owns what is returned
//
// The method's name says it, by Cocoa's rule: if it begins with alloc, new, copy or mutableCopy, the
// caller owns the result and calls [Release]. All other results live until the [Pool] around the call
// ends, unless the caller calls [Retain].
package objc
