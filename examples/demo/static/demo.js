// The page of the demonstration. It draws what the program tells (internal/demo/protocol.go), and sends
// orders to the worker in which the program runs.
"use strict";

(() => {
	const $ = (id) => document.getElementById(id);
	const root = document.documentElement;
	const svgNames = "http://www.w3.org/2000/svg";
	const longest = 60_000; // milliseconds on the timeline, where it is wide
	let shown = longest;
	const items = new Map(); // by id
	let state = null;
	let received = 0; // when state came, by performance.now()

	// element makes an element with attributes and children; texts are texts, whatever they contain.
	function element(name, attributes = {}, ...children) {
		const e = document.createElement(name);
		for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
		e.append(...children);
		return e;
	}

	function svg(name, attributes) {
		const e = document.createElementNS(svgNames, name);
		for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
		return e;
	}

	// set changes a text or an attribute only if it is another one, so that screen readers are told once.
	function setText(e, text) { if (e.textContent !== text) e.textContent = text; }
	function setData(e, key, value) { if (e.dataset[key] !== String(value)) e.dataset[key] = value; }

	const time = (ms) => {
		const t = new Date(ms);
		return t.toLocaleTimeString("en-GB") + "." + String(t.getMilliseconds()).padStart(3, "0");
	};

	// now is the program's time.
	const now = () => state ? state.now + (performance.now() - received) * state.speed : 0;

	// --- The program, in a worker.

	function worker() {
		const program = new Worker("worker.js");
		const waiting = new Map();
		let last = 0;
		program.onerror = (event) => { connected(false); notice("The program does not run here: " + (event.message || "worker.js cannot be loaded")); };
		program.onmessage = (event) => {
			const data = event.data;
			if (data.message) { connected(true); take(JSON.parse(data.message)); return; }
			if (data.failed) { connected(false); notice("The program does not run here: " + data.failed); return; }
			const answered = waiting.get(data.id);
			waiting.delete(data.id);
			if (answered) data.error ? answered.reject(new Error(data.error)) : answered.resolve();
		};
		return (order) => new Promise((resolve, reject) => {
			waiting.set(++last, { resolve, reject });
			program.postMessage({ id: last, order });
		});
	}

	function connected(is) {
		if (root.dataset.connected === String(is)) return;
		root.dataset.connected = is;
		notice(is ? "" : "The program does not answer. The page tries again.");
	}

	function notice(text) {
		const e = $("notice");
		e.hidden = !text;
		setText(e, text);
	}

	async function order(o) {
		try {
			await send(o);
			if (root.dataset.connected === "true") notice("");
		} catch (err) {
			notice(err.message.replace(/^refused: /, "That cannot be done: "));
		}
		if (state) update();
	}

	function take(message) {
		switch (message.type) {
		case "state":
			state = message;
			received = performance.now();
			update();
			break;
		case "item":
			items.set(message.id, message);
			if (timeline) timeline.put(message);
			break;
		case "line":
			line(message);
			break;
		}
	}

	function line(l) {
		const log = $("log");
		const at = element("time", { datetime: new Date(l.at).toISOString() }, time(l.at));
		log.prepend(element("li", { "data-kind": l.kind, "data-line": l.id }, at, element("span", {}, l.text)));
		while (log.children.length > 100) log.lastChild.remove();
	}

	// --- The present.

	let built = "";

	function update() {
		const names = state.replicas.map((r) => r.name).join() + "/" + state.nodes.length;
		if (built !== names) {
			built = names;
			build();
		}
		setText($("sentence"), state.sentence);
		for (const [id, count] of Object.entries(state.counters)) {
			setText($(id), String(count));
			$(id).closest("div").classList.toggle("wrong", count > 0);
		}
		$("taken").hidden = state.counters.accepted === 0 && state.switches.fence;
		const leader = $("leader");
		setData(leader, "leader", state.leader);
		setData(leader, "term", state.term || "");
		setText(leader, state.leader ? `${state.leader} leads, term ${state.term}` : "nobody leads");
		const t = state.takeover;
		const takeover = $("takeover");
		if (t) {
			setData(takeover, "after", t.after);
			setData(takeover, "bound", t.bound);
			const was = { kill: "was killed", freeze: "was frozen", stop: "was told to stop", partition: "was cut off", lost: "lost its lease" }[t.cause] || t.cause;
			setText(takeover, `${t.to} took over ${(t.after / 1000).toFixed(2)} s after ${t.from} ${was}` + (t.bound ? ` (promised: ${(t.bound / 1000).toFixed(1)} s at most)` : ""));
		} else setText(takeover, "");
		setData($("story"), "story", state.story ? state.story.name : "");
		setText($("story"), state.story ? state.story.text : "");
		for (const r of state.replicas) replica(r);
		for (const n of state.nodes) node(n);
		links();
		for (const id of ["gate", "fence"]) $(id).checked = state.switches[id];
		$("gate").disabled = Boolean(state.story);
		if (document.activeElement !== $("speed")) $("speed").value = String(state.speed);
		for (const id of ["deploy", "late", "amnesia", "mend"]) $(id).disabled = !allowed(id);
	}

	// allowed says whether an order makes sense now.
	function allowed(name, of) {
		if (["deploy", "late", "amnesia"].includes(name)) return !state.story;
		if (name === "mend") {
			return [...state.replicas, ...state.nodes].some((e) => e.cut.length || e.state === "dead" || e.state === "frozen");
		}
		switch (name) {
		case "kill": return of.state !== "dead";
		case "freeze": return of.state === "running";
		case "thaw": return of.state === "frozen";
		case "stop": return of.state === "running" || of.state === "frozen";
		case "jump": return of.state !== "dead";
		case "restart": return of.state !== "stopping" && of.state !== "starting";
		case "partition": return of.cut.length < (of.number ? state.replicas.length : state.nodes.length);
		case "heal": return of.cut.length > 0;
		}
		return true;
	}

	function button(text, attributes) { return element("button", { type: "button", ...attributes }, text); }

	function build() {
		const replicas = $("replicas"), nodes = $("nodes");
		replicas.replaceChildren(...state.replicas.map((r) => element("article", { class: "card", id: "replica-" + r.name, "aria-label": "replica " + r.name },
			element("p", {}),
			element("div", { class: "row" },
				...["kill", "freeze", "thaw", "restart", "stop", "partition", "heal"].map((name) => button(name, { "data-do": name, "data-replica": r.name, "aria-label": `${name} replica ${r.name}` }))))));
		nodes.replaceChildren(...state.nodes.map((n) => element("article", { class: "card", id: "node-" + n.number, "aria-label": "node " + n.number },
			element("p", {}),
			element("div", { class: "row" }, ...nodeButtons(n)))));
		const head = element("tr", {}, element("td", {}), ...state.nodes.map((n) => element("th", { scope: "col" }, "node " + n.number)));
		const rows = state.replicas.map((r) => element("tr", {}, element("th", { scope: "row" }, r.name), ...state.nodes.map((n) =>
			element("td", {}, button("", { "data-do": "partition", "data-replica": r.name, "data-node": n.number })))));
		$("links").replaceChildren(element("thead", {}, head), element("tbody", {}, ...rows));
		timeline = draw();
		for (const i of items.values()) timeline.put(i);
	}

	function nodeButtons(n) {
		const made = [];
		for (const name of ["kill", "freeze", "thaw"]) made.push(button(name, { "data-do": name, "data-node": n.number, "aria-label": `${name} node ${n.number}` }));
		made.push(button("restart", { "data-do": "restart", "data-node": n.number, "data-data": "true", "aria-label": `restart node ${n.number} with its data` }));
		made.push(button("restart empty", { "data-do": "restart", "data-node": n.number, "data-data": "false", "aria-label": `restart empty: node ${n.number}, without its data` }));
		made.push(button("clock +5 s", { "data-do": "jump", "data-node": n.number, "aria-label": `clock +5 s: node ${n.number}` }));
		for (const name of ["partition", "heal"]) made.push(button(name, { "data-do": name, "data-node": n.number, "aria-label": `${name} node ${n.number}` }));
		return made;
	}

	function card(e, of, parts) {
		const text = e.querySelector("p");
		const html = JSON.stringify(parts);
		if (text.dataset.parts !== html) {
			text.dataset.parts = html;
			text.title = parts.flat().filter((p) => p !== "crown").join("");
			text.replaceChildren(element("b", {}, parts[0]), ...parts.slice(1).map((p) => Array.isArray(p) ? element("span", { class: p[0] }, p[1]) : p));
		}
		setData(e, "state", of.state);
		for (const b of e.querySelectorAll("button")) b.disabled = !allowed(b.dataset.do, of);
	}

	function replica(r) {
		const e = $("replica-" + r.name);
		const parts = [r.name];
		if (r.leads) parts.push(["crown", "leads, "]);
		parts.push(r.state + (r.cut.length === state.nodes.length ? ", cut off" : r.cut.length ? `, without node ${r.cut.join(", ")}` : ""));
		card(e, r, parts);
		setData(e, "leads", r.leads);
	}

	function node(n) {
		const e = $("node-" + n.number);
		const parts = ["node " + n.number, n.state, n.votes ? ", votes" : `, does not vote${n.why ? ": " + n.why : ""}`];
		parts.push(n.cut.length === state.replicas.length ? ", cut off" : n.cut.length ? `, without ${n.cut.join(", ")}` : "");
		card(e, n, parts);
		setData(e, "votes", n.votes);
	}

	function links() {
		for (const b of $("links").querySelectorAll("button")) {
			const cut = state.replicas.find((r) => r.name === b.dataset.replica).cut.includes(Number(b.dataset.node));
			setData(b, "do", cut ? "heal" : "partition");
			if (b.getAttribute("aria-pressed") !== String(cut)) b.setAttribute("aria-pressed", cut);
			setText(b, cut ? "cut" : "linked");
			const label = `${cut ? "cut" : "linked"}: replica ${b.dataset.replica}, node ${b.dataset.node}`;
			if (b.getAttribute("aria-label") !== label) b.setAttribute("aria-label", label);
		}
	}

	// --- The timeline: a lane for each replica, and a thin one for each node.

	let timeline = null;

	function draw() {
		const picture = $("timeline");
		picture.replaceChildren();
		const left = 58, right = 14, tall = 48, thin = 15, top = 20;
		const lanes = new Map(), nodeLanes = new Map();
		state.replicas.forEach((r, i) => lanes.set(r.name, top + i * tall));
		const below = top + state.replicas.length * tall + 6;
		state.nodes.forEach((n, i) => nodeLanes.set(n.number, below + i * thin));
		const height = below + state.nodes.length * thin + 6;
		picture.style.height = height + "px";
		let width = 0, scale = 0;
		const epoch = state.now; // of x = 0 in what moves
		const clip = svg("clipPath", { id: "clip" }), clipped = svg("rect", { x: left, y: 0, height });
		clip.append(clipped);
		const fixed = svg("g", {}), window = svg("g", { "clip-path": "url(#clip)" }), moving = svg("g", {}), grid = svg("g", {});
		const present = svg("line", { class: "now", y1: 2, y2: height - 2 });
		moving.append(grid);
		window.append(moving);
		picture.append(clip, fixed, window, present);
		const drawn = new Map(); // item id to its group
		const open = new Set(); // ids of those that go on

		const x = (t) => (t - epoch) * scale;
		const rect = (name, from, to, y, h) => svg("rect", { class: name, x: x(from).toFixed(2), y, width: Math.max(1.5, x(to) - x(from)).toFixed(2), height: h, rx: 1.5 });

		// follows reports whether the label of an outage would lie on that of one before.
		function follows(i) {
			for (const o of items.values()) {
				if (o.kind === "outage" && o.id < i.id && o.node === i.node && o.replica === i.replica && (i.from - o.from) * scale < 7 * o.text.length + 8) return true;
			}
			return false;
		}

		// shapes draws one item.
		function shapes(i) {
			const y = i.node ? nodeLanes.get(i.node) : lanes.get(i.replica);
			if (y === undefined) return [];
			const to = i.to || now();
			switch (i.kind) {
			case "term": {
				const until = Math.max(i.from, Math.min(to, i.until));
				const made = [rect("term", i.from, until, y + 33, 10)];
				if (!i.to && i.until > to) made.push(rect("trust", to, i.until, y + 33, 10));
				return made;
			}
			case "run": {
				const until = Math.max(i.from, Math.min(to, i.until || to));
				const made = [];
				if (!i.to && i.until > to + 100) made.push(rect("trust", to, i.until, y + 16, 4));
				if (to > until + 50) made.push(rect("run over", until, to, y + 9, 20));
				made.push(rect(i.attempt > 1 ? "run again" : "run", i.from, until, y + 9, 20));
				return made;
			}
			case "write": {
				if (!i.late) return [svg("line", { class: "write", x1: x(i.from), x2: x(i.from), y1: y + 6, y2: y + 31 })];
				const made = i.end === "refused"
					? [svg("text", { class: "cross", x: x(i.from), y: y + 26 })]
					: [svg("line", { class: "write", x1: x(i.from), x2: x(i.from), y1: y + 2, y2: y + 31 })];
				if (i.end === "refused") made[0].textContent = "✕";
				const said = svg("text", { class: "said", x: x(i.from) - 11, y: y + 24 }); // what comes next is to the right
				said.textContent = i.end === "refused" ? "late write refused" : "LATE WRITE TAKEN";
				return [...made, said];
			}
			case "outage": {
				const made = [];
				if (i.to && i.to - i.from < 50) made.push(svg("rect", { class: "instant", x: x(i.from) - 2, y: y + 1, width: 4, height: i.node ? thin - 3 : tall - 4 }));
				else made.push(rect("outage", i.from, to, y + 1, i.node ? thin - 3 : tall - 4));
				const title = svg("title", {});
				title.textContent = i.text;
				const text = svg("text", { x: x(i.from) + 5, y: i.node ? y + 11 : y + 13 });
				text.textContent = i.text;
				const room = !i.to || i.to - i.from < 50 || (to - i.from) * scale > 7 * i.text.length + 8;
				return room && !follows(i) ? [...made, text, title] : [...made, title]; // labels do not lie on what follows
			}
			}
			return [];
		}

		function put(i) {
			let g = drawn.get(i.id);
			if (!g) {
				g = svg("g", { "data-item": i.id, "data-kind": i.kind, "data-replica": i.replica });
				drawn.set(i.id, g);
				if (i.kind === "outage") grid.after(g); else moving.append(g);
			}
			g.setAttribute("data-end", i.end);
			g.setAttribute("data-bad", i.bad);
			g.replaceChildren(...shapes(i));
			if (i.to) open.delete(i.id); else open.add(i.id);
		}

		// size lays everything out anew for the width that there is.
		function size() {
			width = Math.max(200, picture.clientWidth);
			shown = width < 640 ? longest / 3 : longest;
			$("timeline-title").textContent = width < 640 ? "The last 20 seconds" : "The last minute";
			scale = (width - left - right) * 0.94 / shown;
			picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
			clipped.setAttribute("width", width - left - right);
			fixed.replaceChildren();
			for (const [name, y] of lanes) label(name, y + 28, y + tall - 1, "name");
			for (const [number, y] of nodeLanes) label("node " + number, y + 11, y + thin - 1, "");
			for (const i of items.values()) put(i);
			lines();
		}

		function label(text, y, lane, name) {
			const e = svg("text", { class: name, x: 4, y });
			e.textContent = text;
			fixed.append(e, svg("line", { class: "lane", x1: 0, x2: width, y1: lane, y2: lane }));
		}

		// lines draws a line every ten seconds.
		function lines() {
			grid.replaceChildren();
			const first = Math.floor((now() - shown) / 10_000) * 10_000;
			for (let t = first; t < now() + 10_000; t += 10_000) {
				const text = svg("text", { x: x(t) + 3, y: 12 });
				text.textContent = new Date(t).toLocaleTimeString("en-GB");
				grid.append(svg("line", { class: "grid", x1: x(t), x2: x(t), y1: 2, y2: height - 2 }), text);
			}
		}

		function frame() {
			const t = now(), edge = left + shown * scale;
			moving.setAttribute("transform", `translate(${(edge - x(t)).toFixed(2)} 0)`);
			present.setAttribute("x1", edge);
			present.setAttribute("x2", edge);
			for (const id of open) put(items.get(id));
		}

		function sweep() {
			lines();
			for (const [id, i] of items) {
				if (i.to && now() - i.to > longest + 5000) {
					items.delete(id);
					open.delete(id);
					drawn.get(id)?.remove();
					drawn.delete(id);
				}
			}
		}

		size();
		return { put, size, frame, sweep };
	}

	const still = matchMedia("(prefers-reduced-motion: reduce)");
	let painted = 0;
	function animate(at) {
		if (timeline && at - painted >= (still.matches ? 500 : 40)) {
			painted = at;
			timeline.frame();
		}
		requestAnimationFrame(animate);
	}
	requestAnimationFrame(animate);
	setInterval(() => { if (timeline) timeline.sweep(); }, 2000);
	addEventListener("resize", () => { if (timeline) { timeline.size(); timeline.frame(); } });

	// --- The reader's hand.

	document.addEventListener("click", (event) => {
		const b = event.target.closest("button[data-do]");
		if (!b) return;
		const d = b.dataset, o = { do: d.do };
		if (d.replica) o.replica = d.replica;
		if (d.node) o.node = Number(d.node);
		if (d.data) o.data = d.data === "true";
		order(o);
	});
	for (const id of ["gate", "fence"]) $(id).addEventListener("change", (event) => order({ do: "switch", name: id, on: event.target.checked }));
	$("speed").addEventListener("change", (event) => order({ do: "speed", factor: Number(event.target.value) }));

	const send = worker();
})();
