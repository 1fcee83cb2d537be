package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/mlxc/mlxc/msl"
)

// TestTwins: every kernel of the library has a CPU twin, and every twin belongs to a declared kernel.
func TestTwins(t *testing.T) {
	for _, f := range msl.Functions() {
		d := msl.Declarations(f)[0]
		assert.NotNil(t, Lookup(f), "%s:%d: kernel %s has no twin: register one in a file of backend/cpu (docs/kernels.md)", d.File, d.Line, f)
	}
	for _, n := range Names() {
		assert.NotNil(t, msl.Declarations(n), "the CPU has a kernel %s, which no msl/*.metal declares: is it the name of the @kernel line?", n)
	}
	assert.Nil(t, Lookup("absent"))
}

func TestRegisterRefusesASecondKernel(t *testing.T) {
	assert.PanicsWithValue(t, "cpu: two kernels are called rmsfloat32", func() { Register(Lookup("rmsfloat32")) })
}

func TestRegisterRefusesHalfATwin(t *testing.T) {
	assert.PanicsWithValue(t, `cpu: the twin "half" lacks its Name, Units, Run or Cost`, func() { Register(&Kernel{Name: "half", Run: rms}) })
	assert.Nil(t, Lookup("half"))
}
