package web

import (
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"

	"github.com/tenure-dev/tenure/internal/view"
)

// markup is text of HTML as it is sent: constants of this package, and what m makes of them. Pages
// are made by functions and not by html/template: that calls methods by their names, so that the
// linker leaves out none of the whole program, and a user's binary grows by 13 MB.
type markup string

// m puts arguments into markup, each for a verb of fmt. Texts are escaped as they have to be in
// elements and in attributes within quotation marks; markup and numbers stay.
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

// when is markup that is there in one case only.
func when(is bool, format markup, args ...any) markup {
	if !is {
		return ""
	}
	return m(format, args...)
}

// either is markup, or what stands for none.
func either(is, none markup) markup {
	if is == "" {
		return none
	}
	return is
}

// each draws all, with something between them.
func each[T any](all []T, between markup, draw func(T) markup) markup {
	var b strings.Builder
	for i, t := range all {
		if i > 0 {
			b.WriteString(string(between))
		}
		b.WriteString(string(draw(t)))
	}
	return markup(b.String())
}

const (
	none   markup = `<span class="none">–</span>`
	unread markup = `<p class="card empty">Not read yet.</p>`
	nojobs markup = `<p class="card empty" id="empty-jobs">No replica tells of a job. Start one with <code>scheduler.New</code>. If replicas run: ` +
		`they may have another prefix (<code>redlock.WithPrefix</code>) or other nodes than the process that serves this page, ` +
		`or be told to say nothing (<code>scheduler.WithTelling</code>).</p>`
)

// query is an address with parameters, without those that are empty.
func query(path string, pairs ...string) string {
	values := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return path + "?" + values.Encode()
}

// words are a word of the code as people read it: run_now, not_leader.
func words(text string) string { return strings.ReplaceAll(visible(text), "_", " ") }

func name(text string) markup { return m(`<bdi class="name">%s</bdi>`, visible(text)) }

func jobLink(job string) markup {
	return m(`<a href="%s">%s</a>`, query("job", "name", job), name(job))
}

func electionLink(election string) markup {
	return m(`<a href="%s">%s</a>`, query("elections", "name", election), name(election))
}

// do leads to the form of an order.
func do(kind, text markup, pairs ...string) markup {
	return m(`<a class="do" data-do="%s" href="%s">%s</a>`, kind, query("order", append(pairs, "kind", string(kind))...), text)
}

// icon is the shape of a state.
func icon(look markup) markup {
	return m(`<svg aria-hidden="true"><use href="#i-%s"/></svg>`, look)
}

// iconOf is a shape in its colour, beside a name.
func iconOf(look markup) markup { return m(`<span class="st %s">%s</span>`, look, icon(look)) }

// st draws a state: a shape, a word and a colour.
func st(look, word markup) markup {
	return m(`<span class="st %s">%s%s</span>`, look, icon(look), word)
}

func sources(n int) markup {
	return m(`<span class="src" title="on how many nodes it was seen">· %s</span>`, view.Counted(n, "node"))
}

// why is an explanation, if there is one.
func why(text string) markup { return when(text != "", ` <span class="why">%s</span>`, text) }

// sub is a text beside another, if there is one.
func sub(text string) markup { return when(text != "", ` <span class="sub">%s</span>`, text) }

// table is a table with the heads of its columns: those of numbers have an angle before them.
func table(id, caption markup, rows markup, heads ...string) markup {
	return m(`<table%s class="rows">%s<thead><tr>%s</tr></thead><tbody>%s</tbody></table>`, id, when(caption != "", `<caption class="unseen">%s</caption>`, caption),
		each(heads, "", func(head string) markup {
			head, right := strings.CutPrefix(head, ">")
			return m(`<th scope="col"%s>%s</th>`, when(right, ` class="num"`), head)
		}), "\n"+rows)
}

// th, td and num are the cells of a row: where the page is narrow, their label is said beside them.
func th(label, is markup) markup { return m(`<th scope="row" data-l="%s">%s</th>`, label, is) }

func td(label, is markup) markup { return m(`<td data-l="%s">%s</td>`, label, is) }

func num(label markup, is any) markup {
	return m(`<td data-l="%s" class="num">%v</td>`, label, is)
}

// cut is a cell whose text is cut where it is long.
func cut(label, is markup) markup {
	return m(`<td data-l="%s" class="cutoff"><span>%s</span></td>`, label, is)
}

// took is how long something took; zero is not known.
func took(s view.Span) markup {
	if s == 0 {
		return none
	}
	return escaped(s.String())
}

// fact is a row of what is known of something.
func fact(label, is markup) markup { return m("<div><dt>%s</dt><dd>%s</dd></div>\n", label, is) }

// section is a part of a page with a heading.
func section(id, heading, is markup) markup {
	return m(`<section aria-labelledby="h-%s"><h2 id="h-%s">%s</h2>`+"\n%s</section>\n", id, id, heading, is)
}

func decimal[N ~uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }
