package inputs

import (
	"strings"

	"github.com/mlxc/mlxc/frontend"
	"github.com/mlxc/mlxc/frontend/gguf"
	"github.com/mlxc/mlxc/frontend/mlxfn"
	"github.com/mlxc/mlxc/frontend/safetensors"
)

// sources are the front ends that the commands have.
var sources = []frontend.Source{gguf.Source, safetensors.Source, mlxfn.Source}

// Models says for help texts which models can be recorded: "GGUF, architectures …; safetensors, folders …".
func Models() string {
	return each("; ", func(s frontend.Source) string { return s.Name + ", " + s.Holds })
}

// Kinds names the kinds of models for help texts: "GGUF".
func Kinds() string { return each(" or ", func(s frontend.Source) string { return s.Name }) }

func each(between string, say func(frontend.Source) string) string {
	var all []string
	for _, s := range sources {
		all = append(all, say(s))
	}
	return strings.Join(all, between)
}

// source returns the front end for a file; nil if none reads it.
func source(f *frontend.File) *frontend.Source {
	for i := range sources {
		if sources[i].Match(f) {
			return &sources[i]
		}
	}
	return nil
}
