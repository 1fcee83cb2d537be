// Package cuda calls NVIDIA's driver API (libcuda), in Go without cgo. It is found when it is needed:
// a program that imports the package runs without a driver too, and says what is missing.
//
//	cuda.Load()                       // the library, once
//	d, err := cuda.Open(0)            // a device, with its primary context
//	d.Do(func() error {               // on a thread where that is current
//		m, err := cuda.LoadModule(ptx)
//		…
//	})
//
// The functions are a table (api.go) with the types that the documentation of the driver API gives
// (CUDA Driver API reference, version 12). Every error names the function, and what the driver says.
package cuda
