// find returns the sections that have all words of a query, the best first.
function find(sections, query) {
	const words = query.toLowerCase().split(/\s+/).filter(Boolean);
	if (!words.length) return [];
	const rated = [];
	for (const s of sections) {
		const [page, title, text] = [s.p, s.t, s.x].map((t) => t.toLowerCase());
		let points = 0;
		for (const w of words) {
			const here = (page.includes(w) ? 4 : 0) + (title.includes(w) ? 8 : 0) + Math.min(text.split(w).length - 1, 3);
			if (!here) { points = 0; break; }
			points += here;
		}
		if (points) rated.push([points, s]);
	}
	return rated.sort((a, b) => b[0] - a[0]).map((r) => r[1]);
}

if (globalThis.document) {
	const query = document.getElementById("query"), found = document.getElementById("found");
	const show = () => {
		const hits = find(globalThis.sections || [], query.value).slice(0, 12);
		found.replaceChildren(...hits.map((s) => {
			const item = document.createElement("li"), link = document.createElement("a"), where = document.createElement("small");
			link.href = s.u;
			link.textContent = s.t;
			where.textContent = s.p === s.t ? "" : " " + s.p;
			link.append(where);
			item.append(link);
			return item;
		}));
		if (query.value.trim() && !hits.length) found.textContent = "Nothing has all of these words.";
		found.hidden = !query.value.trim();
	};
	query.addEventListener("input", () => {
		if (globalThis.sections) return show();
		const script = document.createElement("script");
		script.src = "index.js";
		script.onload = show;
		document.head.append(script);
	});
	document.addEventListener("keydown", (e) => {
		if (e.key === "/" && document.activeElement !== query) { e.preventDefault(); query.focus(); }
		if (e.key === "Escape") { query.value = ""; show(); }
		if (e.key === "Enter" && document.activeElement === query) found.querySelector("a")?.click();
	});
	if (matchMedia("(max-width: 55rem)").matches) document.querySelector("nav details").open = false;
}
