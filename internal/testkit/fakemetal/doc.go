// Package fakemetal stands in for Apple's libraries where there are none: a shared library, made
// from C by the clang that everything uses, that answers the functions and messages which
// internal/objc sends. It shares no code with what it tests and sees messages and bytes alone.
// What its caller does wrong it notes, and tests ask for it at their end ([Library.Failures]):
// objects that leak or are released too often, methods that do not exist, arguments that are none.
package fakemetal
