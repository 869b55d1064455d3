// This file is the script of the pages, and of a worker that all pages of a browser share, so that
// they need one connection for events and not one each: a browser has six for a server.
"use strict";

if (typeof document === "undefined") serveTabs();
else startPage();

// serveTabs is the worker: one stream of events for all pages that are seen.
function serveTabs() {
  const tabs = new Map(); // from port to when it was heard and whether it is seen
  const beat = 10000;
  let source = null;
  const tell = (message) => { for (const port of tabs.keys()) port.postMessage(message); };
  const look = () => {
    const now = Date.now();
    let seen = false;
    for (const [port, tab] of tabs) {
      if (now - tab.heard > 4 * beat) tabs.delete(port);
      else seen = seen || tab.seen;
    }
    if (seen && !source) source = follow("../events", tell);
    if (!seen && source) {
      source.close();
      source = null;
    }
  };
  self.onconnect = (e) => {
    const port = e.ports[0];
    port.onmessage = (m) => {
      const was = tabs.get(port);
      if (m.data.gone) tabs.delete(port);
      else tabs.set(port, { heard: Date.now(), seen: m.data.seen });
      look();
      if (source && m.data.seen && !(was && was.seen)) port.postMessage({ state: source.state() });
    };
  };
  setInterval(look, beat);
}

// follow hears events, and connects anew where the browser does not.
function follow(url, tell) {
  let source, timer, heard, state = "lost", closed = false;
  const say = (s) => { state = s; tell({ state: s }); };
  const open = () => {
    clearTimeout(timer);
    source = new EventSource(url);
    heard = Date.now();
    source.addEventListener("hello", () => { heard = Date.now(); say("live"); });
    for (const name of ["change", "run", "skip", "term", "order", "missed"])
      source.addEventListener(name, (e) => { heard = Date.now(); tell({ name, data: JSON.parse(e.data) }); });
    source.onerror = () => {
      if (closed || source.readyState !== EventSource.CLOSED) return;
      say("lost"); // refused: too many pages, or the reader may not read any more
      timer = setTimeout(open, 10000);
    };
  };
  // A connection that was cut somewhere on the way says nothing, not even a change in 30 s.
  const watch = setInterval(() => {
    if (Date.now() - heard < 30000) return;
    say("lost");
    source.close();
    open();
  }, 5000);
  open();
  return { close() { closed = true; clearTimeout(timer); clearInterval(watch); source.close(); }, state: () => state };
}

function startPage() {
  const root = document.documentElement;
  const base = new URL(root.dataset.root, location.href).href;
  const main = document.getElementById("main");
  const state = document.getElementById("state");
  const clock = document.getElementById("clock");
  const live = document.getElementById("live");
  // The browser's clock may be wrong: ages are by the server's.
  let skew = Number(root.dataset.now) - Date.now();
  const now = () => Date.now() + skew;

  const rough = (ms) => { // as view.Rough says it
    const s = Math.floor(Math.max(ms, 0) / 1000);
    if (s < 60) return s + " s";
    if (s < 600) return Math.floor(s / 60) + " min " + s % 60 + " s";
    if (s < 3600) return Math.floor(s / 60) + " min";
    if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s / 60) % 60 + " min";
    return Math.floor(s / 86400) + " d " + Math.floor(s / 3600) % 24 + " h";
  };
  const write = (e, text) => { if (e.textContent !== text) e.textContent = text; };
  const tick = () => {
    const at = now();
    write(clock, new Date(at).toISOString().slice(11, 19) + " UTC");
    for (const e of document.querySelectorAll("time[data-ago]")) write(e, rough(at - e.dataset.ago) + " ago");
    for (const e of document.querySelectorAll("time[data-in]")) {
      const left = e.dataset.in - at;
      write(e, left < 0 ? "due " + rough(-left) + " ago" : "in " + rough(left));
    }
    for (const e of document.querySelectorAll("svg.bar")) {
      const left = Math.max(e.dataset.end - at, 0);
      e.firstElementChild.setAttribute("width", Math.min(100 * left / e.dataset.full, 100).toFixed(1));
      const text = e.parentElement.querySelector(".left");
      if (text) write(text, (Math.floor(left / 100) / 10).toFixed(1) + " s left");
    }
  };
  setInterval(tick, 250);
  document.addEventListener("pointerover", (e) => {
    const t = e.target.closest && e.target.closest("time[datetime]");
    if (t && !t.dataset.told) {
      t.dataset.told = "1";
      t.title += "\n" + new Date(t.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
    }
  });

  // morph makes one element like another, and leaves alone what is alike: focus, selection, and
  // what a screen reader reads stay.
  const keyOf = (n) => n.nodeType === 1 ? n.dataset.key || n.id || n.dataset.job || n.dataset.token || n.dataset.election || n.dataset.node || n.dataset.replica || n.dataset.term || n.dataset.reason || "" : "";
  const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
  const morph = (a, b) => {
    if (a.nodeType !== 1) {
      if (a.nodeValue !== b.nodeValue) a.nodeValue = b.nodeValue;
      return;
    }
    if (a.dataset.keep !== undefined) return;
    for (const { name } of [...a.attributes]) if (!b.hasAttribute(name)) a.removeAttribute(name);
    for (const { name, value } of b.attributes) if (a.getAttribute(name) !== value) a.setAttribute(name, value);
    if (/^(UL|TBODY)$/.test(a.nodeName) && a.matches(":hover, :focus-within")) { // nothing moves under a hand
      const at = new Map([...a.children].map((e, i) => [keyOf(e), i]));
      const place = (e) => at.get(keyOf(e)) ?? at.size;
      b.append(...[...b.children].sort((x, y) => place(x) - place(y)));
    }
    let x = a.firstChild;
    const wanted = new Set([...b.childNodes].map(keyOf));
    for (const y of [...b.childNodes]) {
      while (x && !wanted.has(keyOf(x))) {
        const next = x.nextSibling;
        x.remove();
        x = next;
      }
      let found = x;
      while (found && !alike(found, y)) found = found.nextSibling;
      if (!found) a.insertBefore(y, x);
      else {
        if (found === x) x = x.nextSibling;
        else a.insertBefore(found, x);
        morph(found, y);
      }
    }
    while (x) {
      const next = x.nextSibling;
      x.remove();
      x = next;
    }
  };

  const parts = new Set(main.dataset.parts.split(" ").filter(Boolean));
  const least = 1000; // between two reads of the page
  let timer = 0, busy = false, again = false, last = Date.now();
  const show = (s, text) => {
    if (s === "lost" && state.dataset.state === s) return;
    state.dataset.state = s;
    write(state, s === "lost" ? text + " since " + clock.textContent : text);
  };
  const read = async () => {
    timer = 0;
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { cache: "no-store", credentials: "same-origin", redirect: "error", signal: AbortSignal.timeout(10000) });
      const text = await answer.text();
      const page = new DOMParser().parseFromString(text, "text/html");
      const next = page.getElementById("main");
      if (!next || !page.documentElement.dataset.now) throw new Error("no page of this program: " + answer.status);
      skew = Number(page.documentElement.dataset.now) - Date.now();
      morph(main, next);
      for (const where of ["header nav", "title"]) morph(document.querySelector(where), page.querySelector(where));
      if (document.body.className !== page.body.className) document.body.className = page.body.className;
      const icon = document.querySelector("link[rel=icon]"), nextIcon = page.querySelector("link[rel=icon]").getAttribute("href");
      if (icon.getAttribute("href") !== nextIcon) icon.setAttribute("href", nextIcon);
      const foot = document.querySelector("footer"), nextFoot = page.querySelector("footer p");
      if (foot && nextFoot) morph(foot.querySelector("p"), nextFoot);
      tick();
      if (state.dataset.state !== "live") show("polling", "asks every 10 s");
    } catch {
      show("lost", "not connected");
    }
    last = Date.now();
    busy = false;
    if (again) {
      again = false;
      soon();
    }
  };
  const soon = () => {
    if (!parts.size || document.hidden || timer) return;
    timer = setTimeout(read, Math.max(last + least - Date.now(), 0));
  };
  const say = (text) => { live.textContent = text; };
  const hear = (m) => {
    if (m.state === "live") {
      show("live", "live");
      soon();
    } else if (m.state) {
      if (state.dataset.state === "live") show("polling", "asks every 10 s");
      soon(); // which says whether the page is lost too
    } else if (m.name === "missed" || m.name === "change" && m.data.parts.some((p) => parts.has(p))) soon();
    else if (m.name === "term") say(m.data.event === "elected" ? m.data.identity + " leads " + m.data.election : m.data.identity + " has " + m.data.event + " " + m.data.election);
  };

  let tabs = null, own = null;
  const visit = () => {
    const seen = !document.hidden;
    if (tabs) tabs.postMessage({ seen });
    else if (seen && !own) own = follow(base + "events", hear);
    else if (!seen && own) {
      own.close();
      own = null;
    }
    if (seen) soon();
  };
  const start = () => {
    if (!parts.size) return;
    if (window.SharedWorker) {
      try {
        const worker = new SharedWorker(document.querySelector("script[src]").src);
        worker.onerror = () => { tabs = null; visit(); };
        tabs = worker.port;
        tabs.onmessage = (e) => hear(e.data);
      } catch {
        tabs = null;
      }
    }
    visit();
    document.addEventListener("visibilitychange", visit);
    setInterval(() => { if (tabs) tabs.postMessage({ seen: !document.hidden }); }, 10000);
    // Without events, and now and then in any case: ages of what nobody tells.
    setInterval(() => { if (Date.now() - last > 10000) soon(); }, 1000);
    addEventListener("pagehide", () => { if (tabs) tabs.postMessage({ gone: true }); });
    addEventListener("pageshow", (e) => { if (e.persisted) visit(); });
  };
  start();
  tick();
}
