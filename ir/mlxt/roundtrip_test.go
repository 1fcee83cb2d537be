package mlxt_test

import (
	"context"
	"testing"

	"pgregory.net/rapid"

	"github.com/mlxc/mlxc/internal/testing/irtest"
	"github.com/mlxc/mlxc/ir/mlxt"
)

func TestParsePrintIsTheIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := irtest.Module(t)
		text := mlxt.Format(m)
		got, err := mlxt.Parse(context.Background(), "g.mlxt", []byte(text))
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if d := irtest.Diff(m, got); d != "" {
			t.Fatalf("module changed (-want +got):\n%s\nin\n%s", d, text)
		}
		if again := mlxt.Format(got); again != text {
			t.Fatalf("text changed from\n%s\nto\n%s", text, again)
		}
	})
}
