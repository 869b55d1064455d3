package web

import (
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/tenure-dev/tenure/internal/view"
)

// markup is HTML that can be sent: constants of this package and results of m. Pages are made by
// functions and not by html/template. That package calls methods by their names, so the linker can
// remove no method of the whole program, and a user's binary would grow by 13 MB.
type markup string

// m formats markup as fmt.Sprintf does. It escapes texts for use in elements and in quoted
// attributes. Markup and numbers stay as they are.
func m(format markup, args ...any) markup {
	for i, a := range args {
		switch a := a.(type) {
		case markup, int, int64, uint64, float64, view.Number:
		case string:
			args[i] = escaped(a)
		default:
			args[i] = escaped(fmt.Sprint(a))
		}
	}
	return markup(fmt.Sprintf(string(format), args...))
}

func escaped(text string) markup {
	return markup(html.EscapeString(strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")))
}

// when returns the formatted markup if is is true, and else nothing.
func when(is bool, format markup, args ...any) markup {
	if !is {
		return ""
	}
	return m(format, args...)
}

// choice returns yes or no. Both are evaluated.
func choice[T any](is bool, yes, no T) T {
	if is {
		return yes
	}
	return no
}

// either returns is, or none if is is empty.
func either(is, none markup) markup { return choice(is != "", is, none) }

// each draws all items, with between between them.
func each[T any](all []T, between markup, draw func(T) markup) markup {
	return markup(strings.Join(view.All(all, func(t T) string { return string(draw(t)) }), string(between)))
}

const (
	none   markup = `<span class="none">–</span>`
	unread markup = `<p class="card empty">Not read yet.</p>`
	nojobs markup = `<p class="card empty" id="empty-jobs">No replica tells of a job. Start one with <code>scheduler.New</code>. If replicas run: ` +
		`they may have another prefix (<code>redlock.WithPrefix</code>) or other nodes than the process that serves this page, ` +
		`or be told to say nothing (<code>scheduler.WithTelling</code>).</p>`
)

// query returns an address with the non-empty parameters.
func query(path string, pairs ...string) string {
	values := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return path + "?" + values.Encode()
}

// or returns is; if that is empty it returns unread for a part that was not read, and else empty.
func (p *page) or(is markup, of part, empty markup) markup {
	read, shown := p.Status.Read[of.String()]
	return either(is, choice(shown && read.At.IsZero(), unread, empty))
}

// words returns a word of the code for people: run_now becomes run now.
func words(text string) string { return strings.ReplaceAll(visible(text), "_", " ") }

func name(text string) markup { return m(`<bdi class="name">%s</bdi>`, visible(text)) }

func jobLink(job string) markup {
	return m(`<a href="%s">%s</a>`, query("job", "name", job), name(job))
}

func electionLink(election string) markup {
	return m(`<a href="%s">%s</a>`, query("elections", "name", election), name(election))
}

// do links to the form of an order.
func do(kind, text markup, pairs ...string) markup {
	return m(`<a class="do" data-do="%s" href="%s">%s</a>`, kind, query("order", append(pairs, "kind", string(kind))...), text)
}

// icon draws the shape of a state.
func icon(look markup) markup {
	return m(`<svg aria-hidden="true"><use href="#i-%s"/></svg>`, look)
}

// iconOf draws the shape of a state in its colour.
func iconOf(look markup) markup { return m(`<span class="st %s">%s</span>`, look, icon(look)) }

// st draws a state: shape, word and colour.
func st(look, word markup) markup {
	return m(`<span class="st %s">%s%s</span>`, look, icon(look), word)
}

func sources(n int) markup {
	return m(`<span class="src" title="on how many nodes it was seen">· %s</span>`, view.Counted(n, "node"))
}

// why draws an explanation, if there is one.
func why(text string) markup { return when(text != "", ` <span class="why">%s</span>`, text) }

// sub draws a secondary text, if there is one.
func sub(text string) markup { return when(text != "", ` <span class="sub">%s</span>`, text) }

// table draws a table. A head that begins with > is of a column of numbers. Without rows table
// returns nothing.
func table(id, caption markup, rows markup, heads ...string) markup {
	if rows == "" {
		return ""
	}
	return m(`<table%s class="rows">%s<thead><tr>%s</tr></thead><tbody>%s</tbody></table>`, id, when(caption != "", `<caption class="unseen">%s</caption>`, caption),
		each(heads, "", func(head string) markup {
			head, right := strings.CutPrefix(head, ">")
			return m(`<th scope="col"%s>%s</th>`, when(right, ` class="num"`), head)
		}), "\n"+rows)
}

// th, td and num draw the cells of a row. On a narrow page their label is shown beside them.
func th(label, is markup) markup { return m(`<th scope="row" data-l="%s">%s</th>`, label, is) }

func td(label, is markup) markup { return m(`<td data-l="%s">%s</td>`, label, is) }

func num(label markup, is any) markup {
	return m(`<td data-l="%s" class="num">%v</td>`, label, is)
}

// cut draws a cell whose text is cut if it is long.
func cut(label, is markup) markup {
	return m(`<td data-l="%s" class="cutoff"><span>%s</span></td>`, label, is)
}

// took draws a duration; zero means not known.
func took(s view.Span) markup { return choice(s == 0, none, escaped(s.String())) }

// fact draws a row of a list of facts.
func fact(label, is markup) markup { return m("<div><dt>%s</dt><dd>%s</dd></div>\n", label, is) }

// headed draws a section with something beside its heading.
func headed(id, heading, beside, is markup) markup {
	return m(`<section aria-labelledby="h-%s"><div class="head"><h2 id="h-%s">%s</h2>%s</div>`+"\n%s</section>\n", id, id, heading, beside, is)
}

// levels are the levels of looks. Other looks are bad.
var levels = map[markup]markup{"ok": "ok", "cutshort": "cut", "running": "hold", "paused": "none", "skipped": "none"}

// verdict draws the top of a page: state, heading, elements beside the heading, and a text.
func verdict(look, heading, beside, more markup) markup {
	return m(`<section class="verdict state-%s"><div class="title"><h1>%s</h1>%s</div>`+"\n<p>%s</p></section>\n", either(levels[look], "bad"), heading, beside, more)
}

// factsOf draws a list of facts, with the attributes of its element.
func factsOf(heading, attributes, facts markup) markup {
	return headed("facts", heading, "", m(`<dl id="facts" class="facts" %s>`+"\n%s</dl>", attributes, facts))
}

// section draws a section with a heading.
func section(id, heading, is markup) markup {
	return m(`<section aria-labelledby="h-%s"><h2 id="h-%s">%s</h2>`+"\n%s</section>\n", id, id, heading, is)
}

func decimal[N ~uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }

// visible makes invisible characters visible, because names and texts come from users and from
// servers. m escapes texts for HTML.
var visible = view.Visible

// inSentence returns a name for use in a sentence. A name with letters that may run from right to
// left is isolated, so that it does not reorder the text around it.
func inSentence(name string) string {
	name = view.Shortened(visible(name), 60)
	if name == "" || name[0] == ' ' || name[len(name)-1] == ' ' {
		name = "“" + name + "”"
	}
	// No script before Hebrew in Unicode runs from right to left, and punctuation does not either.
	if strings.ContainsFunc(name, func(r rune) bool { return r >= 0x0590 && !unicode.IsPunct(r) }) {
		const isolate, pop = "\u2068", "\u2069"
		name = isolate + name + pop
	}
	return name
}

// timeElement draws a time. With an attribute the script rewrites its text once a second.
func timeElement(t view.Time, attribute markup, text string) markup {
	if t.IsZero() {
		return none
	}
	return m(`<time datetime="%s" title="%s UTC"%s>%s</time>`, t.Format("2006-01-02T15:04:05.000Z"), t.Format("2006-01-02 15:04:05"),
		when(attribute != "", ` data-%s="%d"`, attribute, t.UnixMilli()), text)
}

// ago draws the age of a time.
func ago(t view.Time) markup {
	return timeElement(t, "ago", view.Rough(time.Since(t.Time))+" ago")
}

// in draws a countdown to a time.
func in(t view.Time) markup {
	left := time.Until(t.Time)
	return timeElement(t, "in", choice(left < 0, "due "+view.Rough(-left)+" ago", "in "+view.Rough(left)))
}

// clock draws a time of the day.
func clock(t view.Time) markup { return timeElement(t, "", t.Clock(time.Now())) }
