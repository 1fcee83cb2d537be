//go:build linux

package objc

// Probe is a method of the stand-in's class Probe, which the table has not.
func Probe(selector, types string) *Method {
	m := &Method{Class: "Probe", Selector: selector, Types: types}
	probes = append(probes, m)
	return m
}

var probes []*Method

// RegisterProbes makes them ready, after Load.
func RegisterProbes() {
	for _, m := range probes {
		m.register(c.registerName)
	}
}
