//go:build linux

package objc

// Probe makes a method of the stand-in's test class Probe, which is not in the Table.
func Probe(selector, types string) *Method {
	m := &Method{Class: "Probe", Selector: selector, Types: types}
	probes = append(probes, m)
	return m
}

var probes []*Method

// RegisterProbes registers the selectors of these methods; it is called after Load.
func RegisterProbes() {
	for _, m := range probes {
		m.register(c.registerName)
	}
}
