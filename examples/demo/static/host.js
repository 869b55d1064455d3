// The host of a demonstration without any server. It runs several instances of one WebAssembly module: the director,
// which has the nodes, the store and the ledger, and one for each replica. They share nothing but what the host carries
// between them, so a replica that is killed or frozen is really gone, or really stands still: nothing of it runs. Time
// is the host's, too.
//
// It runs in a worker (worker.js) or in Node.js (the tests), and needs wasm_exec.js of Go.
"use strict";

// HostTime is the time of all instances. Its speed can be changed, and it may stand still. It goes on only while the host
// can run: a browser that is busy, or has put the page to sleep, is no fault of the cluster's.
class HostTime {
	constructor() {
		this.reached = Date.now();
		this.since = performance.now();
		this.speed = 1;
		this.timers = new Map();
		this.last = 0;
		this.wakeUp = undefined;
	}

	// now is in milliseconds, with fractions.
	now() {
		const real = performance.now();
		this.reached += Math.min(real - this.since, HostTime.longestStep) * this.speed;
		this.since = real;
		return this.reached;
	}

	setSpeed(factor) {
		this.now();
		this.speed = factor;
		this.arm();
	}

	after(delay, run) {
		const id = ++this.last;
		this.timers.set(id, { due: this.now() + delay, run });
		this.arm();
		return id;
	}

	cancel(id) { this.timers.delete(id); }

	// arm has the host woken when the next timer is due.
	arm() {
		clearTimeout(this.wakeUp);
		if (!this.speed || !this.timers.size) return;
		let next = Infinity;
		for (const t of this.timers.values()) next = Math.min(next, t.due);
		this.wakeUp = setTimeout(() => this.run(), Math.max(0, (next - this.now()) / this.speed));
	}

	run() {
		const now = this.now();
		const due = [...this.timers].filter(([, t]) => t.due <= now).sort((a, b) => a[1].due - b[1].due);
		for (const [id, t] of due) {
			if (this.timers.delete(id)) t.run(); // unless one before has cancelled it
		}
		this.arm();
	}
}

// The host looks at the time more often than that, in milliseconds, unless it cannot run.
HostTime.longestStep = 60;
HostTime.lookEvery = 20;

// Instance is one run of the module. Nothing of Go runs but inside of enter.
class Instance {
	constructor(host, number, settings) {
		this.host = host;
		this.number = number;
		this.frozen = false;
		this.over = false;
		this.held = []; // what is to be entered when it thaws
		this.connections = new Set();
		this.api = { settings };
		const go = this.go = new Go();
		go.env = { TENURE_INSTANCE: String(number) };
		go.exit = (code) => host.ended(this, code ? "exit status " + code : "");
		this.keepTime(go.importObject.gojs);
	}

	// keepTime has Go ask the host for the time, and for timers.
	keepTime(gojs) {
		const go = this.go, time = this.host.time;
		gojs["runtime.nanotime1"] = (sp) => go.mem.setBigInt64((sp >>> 0) + 8, BigInt(Math.round(time.now() * 1e6)), true);
		gojs["runtime.walltime"] = (sp) => {
			const now = time.now(), seconds = Math.floor(now / 1000);
			go.mem.setBigInt64((sp >>> 0) + 8, BigInt(seconds), true);
			go.mem.setInt32((sp >>> 0) + 16, Math.floor((now - seconds * 1000) * 1e6), true);
		};
		gojs["runtime.scheduleTimeoutEvent"] = (sp) => {
			sp >>>= 0;
			const id = time.after(Number(go.mem.getBigInt64(sp + 8, true)), () => this.enter(() => {
				if (go._scheduledTimeouts.delete(id)) go._resume();
			}));
			go._scheduledTimeouts.set(id, id);
			go.mem.setInt32(sp + 16, id, true);
		};
		gojs["runtime.clearTimeoutEvent"] = (sp) => {
			const id = go.mem.getInt32((sp >>> 0) + 8, true);
			time.cancel(id);
			go._scheduledTimeouts.delete(id);
		};
	}

	boot(module) {
		this.enter(() => this.go.run(new WebAssembly.Instance(module, this.go.importObject)));
	}

	enter(run) {
		if (this.over) return;
		if (this.frozen) {
			this.held.push(run);
			return;
		}
		try {
			run();
		} catch (err) {
			if (this.over) return;
			console.error(err);
			this.host.ended(this, String(err));
		}
	}

	thaw() {
		this.frozen = false;
		const held = this.held;
		this.held = [];
		for (const run of held) this.host.post(() => this.enter(run));
	}
}

// Host carries bytes, reports and orders between instances.
class TenureHost {
	// The listeners are publish(text), for messages, answered(id, error) and failed(text).
	constructor(module, listeners) {
		this.module = module;
		this.listeners = listeners;
		this.time = new HostTime();
		this.instances = new Map();
		this.connections = new Map();
		this.lastInstance = -1;
		this.lastConnection = 0;
		this.queue = [];
		this.channel = new MessageChannel();
		this.channel.port1.onmessage = () => this.drain();
		globalThis.tenure = {};
		this.director = this.begin(undefined);
		Object.assign(this.director.api, {
			launch: (settings) => this.begin(settings).number,
			kill: (number) => this.ended(this.instances.get(number), "killed"),
			freeze: (number) => { this.instances.get(number).frozen = true; },
			thaw: (number) => this.instances.get(number)?.thaw(),
			stop: (number) => this.call(this.instances.get(number), "stop"),
			speed: (factor) => this.time.setSpeed(factor),
			publish: (text) => listeners.publish(text),
			answered: (id, error) => listeners.answered(id, error),
		});
		this.looks = setInterval(() => this.time.now(), HostTime.lookEvery);
		this.flushes = setInterval(() => this.call(this.director, "flush"), 50);
	}

	// close ends everything.
	close() {
		clearInterval(this.looks);
		clearInterval(this.flushes);
		for (const i of this.instances.values()) i.over = true;
		this.instances.clear();
		this.time.timers.clear();
		this.time.arm();
		this.channel.port1.close();
	}

	// order hands the director an order of the page.
	order(id, order) { this.call(this.director, "order", id, JSON.stringify(order)); }

	begin(settings) {
		const i = new Instance(this, ++this.lastInstance, settings);
		this.instances.set(i.number, i);
		Object.assign(i.api, {
			report: (line) => this.call(this.director, "reported", i.number, line),
			dial: () => this.dial(i),
			send: (id, bytes) => this.send(i, id, bytes),
			close: (id) => this.hangUp(i, id),
		});
		globalThis.tenure[i.number] = i.api;
		this.post(() => i.boot(this.module));
		return i;
	}

	ended(i, why) {
		if (!i || i.over) return;
		i.over = true;
		i.held = [];
		this.instances.delete(i.number);
		delete globalThis.tenure[i.number];
		for (const id of [...i.connections]) this.hangUp(i, id);
		if (i === this.director) this.listeners.failed(why || "the director has ended");
		else this.call(this.director, "exited", i.number, why);
	}

	// call calls a function of an instance, soon.
	call(i, name, ...args) {
		if (!i) return;
		this.post(() => i.enter(() => i.api[name] && i.api[name](...args)));
	}

	dial(from) {
		const id = ++this.lastConnection;
		this.connections.set(id, [from, this.director]);
		from.connections.add(id);
		this.director.connections.add(id);
		this.call(this.director, "accept", id);
		return id;
	}

	send(from, id, bytes) {
		const ends = this.connections.get(id);
		if (ends) this.call(ends[0] === from ? ends[1] : ends[0], "receive", id, bytes);
	}

	hangUp(from, id) {
		const ends = this.connections.get(id);
		if (!ends) return;
		this.connections.delete(id);
		for (const i of ends) i.connections.delete(id);
		this.call(ends[0] === from ? ends[1] : ends[0], "receive", id, null);
	}

	// post runs something soon, after what was posted before: not inside of an instance that runs.
	post(run) {
		this.queue.push(run);
		if (this.queue.length === 1) this.channel.port2.postMessage(0);
	}

	drain() {
		const queue = this.queue.slice();
		for (const run of queue) run();
		this.queue.splice(0, queue.length);
		if (this.queue.length) this.channel.port2.postMessage(0);
	}
}

// unpacked returns the bytes of the module, also where a server or a browser has unpacked them already.
async function unpacked(bytes) {
	if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

globalThis.TenureHost = TenureHost;
globalThis.TenureUnpacked = unpacked;
