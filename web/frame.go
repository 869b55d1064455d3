package web

import (
	"time"

	"github.com/tenure-dev/tenure/internal/view"
)

// frame draws the whole page around its main content.
func (p *page) frame(main markup) []byte {
	asset := func(name string) markup { return m(`%sassets/%s?v=%s`, p.Root, name, versions[name]) }
	needs, level := p.Status.needs, markup("none")
	if needs.needs() > 0 || needs.known > 0 {
		level = map[string]markup{"good": "ok", "warn": "warn", "bad": "bad"}[p.Status.Level]
	}
	link := func(to, text markup, kind string, count markup) markup {
		current := when(p.Kind == kind && p.Within == "", ` aria-current="page"`) + when(p.Within == kind, ` aria-current="true"`)
		return m(`<a href="%s%s"%s>%s%s</a>`+"\n", p.Root, to, current, text, count)
	}
	count := func(n int) markup {
		return when(n > 0, `<span>%d<span class="unseen"> need someone</span></span>`, n)
	}
	q := needs.quorum
	nodes := when(q.Spare != nil && q.Votes < q.Total, `<span%s>%d/%d<span class="unseen"> vote</span></span>`, when(len(needs.nodes) == 0, ` class="warn"`), q.Votes, q.Total)
	prefix := when(needs.needs() > 0, "(%d) ", needs.needs())
	icon := asset("icon.svg") + when(level == "bad" || level == "warn", "&amp;s=%s", level)
	head := m(`<!doctype html>
<html lang="en" data-now="%s" data-root="%s">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>%s%s: %s</title>
<link rel="icon" href="%s" type="image/svg+xml">
<link rel="stylesheet" href="%s">
<script src="%s" defer></script>
</head>
`, p.Now, p.Root, prefix, visible(p.Site), visible(p.Title), icon, asset("app.css"), asset("app.js"))
	top := m(`<body data-page="%s" class="state-%s">
%s<a class="skip" href="#main">To the content</a>
<header class="top"><div>
<a class="site" href="%s">%s</a>
<nav aria-label="Pages">
%s</nav>
<span class="live"><span id="state" role="status" data-state="static"></span><span id="clock">%s UTC</span></span>
</div></header>
<div id="live" aria-live="polite" class="unseen"></div>
`, p.Kind, level, sprite, p.Root, visible(p.Site), link("", "Overview", "overview", "")+link("jobs", "Jobs", "jobs", count(len(needs.jobs)))+link("runs", "Failures", "runs", "")+
		link("elections", "Elections", "elections", count(len(needs.elections)))+link("nodes", "Nodes", "nodes", nodes)+link("orders", "Orders", "orders", ""), time.Now().UTC().Format("15:04:05"))
	foot := m(`<footer>
<p>%sTimes are in UTC; point at one for yours.
%s</p>
<noscript><p>Without script this page does not update itself: load it again.</p></noscript>
</footer>
</body>
</html>
`, p.age(), when(!p.Acts, "This page only shows: orders need <code>web.WithActions</code>, or <code>tenure web --actions</code>."))
	return []byte(head + top + m(`<main id="main" tabindex="-1" data-parts="%s">`+"\n%s%s\n</main>\n", p.Parts, p.above(), main) + foot)
}

// above draws the notice that nothing is granted, and the problems, on pages other than the
// overview.
func (p *page) above() markup {
	if p.Kind == "overview" {
		return ""
	}
	q := p.Status.needs.quorum
	return when(q.Spare != nil && *q.Spare < 0, `<p id="sentence" class="card note lost">%s</p>`+"\n", p.Status.Sentence) + p.problems()
}

// problems draws the parts that are not up to date.
func (p *page) problems() markup {
	return when(len(p.Status.Problems) > 0, `<ul id="problems" class="card note bad">%s</ul>`+"\n",
		each(p.Status.Problems, "", func(d view.Problem) markup { return m(`<li data-part="%s">%s</li>`, d.Part, d.Text) }))
}

// age draws how old the data of the page is.
func (p *page) age() markup {
	return when(!p.Status.Oldest.IsZero(), "Read %s. ", ago(p.Status.Oldest))
}

// draw draws the page of a refusal.
func (d *refusal) draw(p *page) markup {
	return m(`<section><h1>%s</h1><p>%s</p><p><a href="%s">To the overview</a></p></section>`, p.Title, d.Text, p.Root)
}
