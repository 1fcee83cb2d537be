// Package cuda calls NVIDIA's driver API (libcuda), in Go without cgo. The library is loaded at run time: a program
// that imports the package also runs without a driver, and gets an error that says what is missing.
//
//	cuda.Load()                       // the library, once
//	d, err := cuda.Open(0)            // a device, with its primary context
//	d.Do(func() error {               // on a thread where that context is current
//		m, err := cuda.LoadModule(ptx)
//		…
//	})
//
// The driver's functions are looked up by name (api.go); types and constants are those of the CUDA Driver API
// reference, version 12. Every error names the function, and has the driver's own text.
package cuda
