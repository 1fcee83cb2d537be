package backend

import "github.com/mlxc/mlxc/ir"

// AllocMemory returns a buffer with the initial contents of m: those of a
// weight that its blob holds are mapped, not copied.
func AllocMemory(d Device, m *ir.Memory) (Buffer, error) {
	if m.Kind == ir.Weight && m.Init.Kind == ir.InitBlob && m.Init.Blob != nil {
		data, err := m.Init.Blob.Bytes()
		if err != nil {
			return nil, err
		}
		return d.Map(data)
	}
	b, err := d.Alloc(m.Size)
	if err != nil {
		return nil, err
	}
	if err := m.WriteInit(b.Bytes()[:m.Size]); err != nil {
		_ = b.Close() // the first error is the one to tell
		return nil, err
	}
	return b, nil
}
