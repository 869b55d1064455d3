package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(p *program) *cobra.Command {
	return p.shows(&cobra.Command{
		Use:     "version",
		Short:   "The version of this binary",
		Example: `  tenure version -o json`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return p.show(newVersionDocument()) },
	})
}

// versionDocument is the output of `tenure version`.
type versionDocument struct {
	Version  string `json:"version"`  // version of the module; (devel) for a build from a checkout without versions
	Revision string `json:"revision"` // revision of the checkout; null if the build did not record it
	Modified bool   `json:"modified"` // the checkout had uncommitted changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionDocument() versionDocument {
	info, known := debug.ReadBuildInfo()
	if !known {
		info = &debug.BuildInfo{}
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	return versionDocument{
		Version: cmp.Or(info.Main.Version, "(devel)"), Revision: settings["vcs.revision"], Modified: settings["vcs.modified"] == "true",
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func (d versionDocument) text(w *page) {
	changes := ""
	if d.Modified {
		changes = "with changes"
	}
	w.linef("%s, %s, %s", join(" ", "tenure", d.Version, d.Revision, changes), d.Go, d.Platform)
}
