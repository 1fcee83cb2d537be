// Package irtest draws random valid modules for property tests and compares
// modules.
//
// [Module] uses every feature of package ir: several graphs that share states,
// aliases, params with constraints, all kinds of contents, kernels of all
// kinds of library, views and grids that are affine in params, all forms of
// effects, groups, odd labels. Whatever it draws, [ir.Module.Check] accepts.
// The graphs mean nothing: they may read undefined bytes and race. Tests of
// passes want graphs that compute something; those are made elsewhere.
//
//	rapid.Check(t, func(t *rapid.T) {
//		m := irtest.Module(t)
//		got := roundTrip(m)
//		if d := irtest.Diff(m, got); d != "" {
//			t.Fatal(d)
//		}
//	})
package irtest
