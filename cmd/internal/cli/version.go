package cli

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Version describes this build: the module's version, and the revision that it was
// built from if that is known.
func Version(name string) string {
	info, _ := debug.ReadBuildInfo()
	return name + " " + versionOf(info)
}

func versionOf(info *debug.BuildInfo) string {
	v, of := "(devel)", runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH
	if info == nil {
		return v + ", " + of
	}
	if info.Main.Version != "" {
		v = info.Main.Version
	}
	set := map[string]string{}
	for _, s := range info.Settings {
		set[s.Key] = s.Value
	}
	parts := []string{v}
	if r := set["vcs.revision"]; r != "" {
		r = "revision " + r[:min(len(r), 12)]
		if t := set["vcs.time"]; t != "" {
			r += " of " + t
		}
		if set["vcs.modified"] == "true" {
			r += ", modified"
		}
		parts = append(parts, r)
	}
	return strings.Join(append(parts, of), ", ")
}
