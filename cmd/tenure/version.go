package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(p *program) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "The version of this binary",
		Example: `  tenure version -o json`,
		Args:    cobra.NoArgs,
	}
	p.shows(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		info, _ := debug.ReadBuildInfo()
		return p.show(newVersionDocument(info))
	}
	return cmd
}

// versionDocument is what `tenure version` shows.
type versionDocument struct {
	Version  string `json:"version"`  // of the module; (devel) for one that was built from a checkout without versions
	Revision string `json:"revision"` // of the checkout; null if the build did not note it
	Modified bool   `json:"modified"` // the checkout had changes
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersionDocument(info *debug.BuildInfo) versionDocument {
	d := versionDocument{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return d
	}
	if info.Main.Version != "" {
		d.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			d.Revision = s.Value
		case "vcs.modified":
			d.Modified = s.Value == "true"
		}
	}
	return d
}

func (d versionDocument) text(w *page) {
	revision := ""
	if d.Revision != "" {
		revision = " " + d.Revision
	}
	if d.Modified {
		revision += " with changes"
	}
	w.linef("tenure %s%s, %s, %s", d.Version, revision, d.Go, d.Platform)
}
