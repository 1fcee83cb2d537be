// Package sources says what code a program was made of: what it compiles depends on that, and is kept by it.
package sources
