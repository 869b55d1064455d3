package web

import "github.com/tenure-dev/tenure/internal/view"

// frame draws a page around what it shows.
func (p *page) frame(main markup) []byte {
	asset := func(name string) markup { return m(`%sassets/%s?v=%s`, p.Root, name, versions[name]) }
	link := func(to, text markup, kind string) markup {
		current := when(p.Kind == kind && p.Within == "", ` aria-current="page"`) + when(p.Within == kind, ` aria-current="true"`)
		return m(`<a href="%s%s"%s>%s</a>`+"\n", p.Root, to, current, text)
	}
	head := m(`<!doctype html>
<html lang="en" data-now="%s" data-root="%s">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>%s – %s</title>
<link rel="icon" href="%s" type="image/svg+xml">
<link rel="stylesheet" href="%s">
<script src="%s" defer></script>
</head>
`, p.Now, p.Root, visible(p.Title), visible(p.Site), asset("icon.svg"), asset("app.css"), asset("app.js"))
	top := m(`<body data-page="%s">
<a class="skip" href="#main">To the content</a>
<header>
<a class="site" href="%s">%s</a>
<nav aria-label="Pages">
%s</nav>
<span id="state" role="status" data-state="static"></span>
</header>
<div id="live" aria-live="polite" class="unseen"></div>
`, p.Kind, p.Root, visible(p.Site), link("", "Overview", "overview")+link("jobs", "Jobs", "jobs")+link("runs", "Failures", "runs")+
		link("elections", "Elections", "elections")+link("nodes", "Nodes", "nodes")+link("orders", "Orders", "orders"))
	foot := m(`<footer>
<p>%sTimes are in UTC; point at one for yours.
%s</p>
<noscript><p>Without script this page does not update itself: load it again.</p></noscript>
</footer>
</body>
</html>
`, p.age(), when(!p.Acts, "This page only shows: orders need <code>web.WithActions</code>."))
	return []byte(head + top + m(`<main id="main" tabindex="-1" data-parts="%s">`+"\n%s%s\n</main>\n", p.Parts, p.sentence(), main) + foot)
}

// sentence draws the present in words, and what cannot be shown.
func (p *page) sentence() markup {
	if p.Status == nil {
		return ""
	}
	problems := each(p.Status.Problems, "", func(d view.Problem) markup { return m(`<li data-part="%s">%s</li>`, d.Part, d.Text) })
	return m(`<p id="sentence" class="%s">%s</p>`+"\n%s", p.Status.Level, p.Status.Sentence, when(problems != "", `<ul id="problems">%s</ul>`, problems))
}

// age says how old the page is.
func (p *page) age() markup {
	if p.Status == nil || p.Parts == "" || p.Status.Oldest.IsZero() {
		return ""
	}
	return m("Read %s. ", ago(p.Status.Oldest))
}

// draw draws that something is not there, or not allowed.
func (d *errorDoc) draw(p *page) markup {
	return m(`<h1>%s</h1><p>%s</p><p><a href="%s">To the overview</a></p>`, p.Title, d.Text, p.Root)
}
