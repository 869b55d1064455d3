// The host of a demonstration without any server. It runs several instances of one WebAssembly module: the director,
// which has the nodes, the store and the ledger, and one for each replica. They share nothing but what the host carries
// between them, so a replica that is killed or frozen is really gone, or really stands still: nothing of it runs. Time
// is the host's, too.
//
// It runs in a worker (worker.js), and needs wasm_exec.js of Go.
"use strict";

// HostTime is the time of all instances. Its speed can be changed, and it may stand still. It keeps pace with the reader's
// as long as the host does. A host that is slow, or was put to sleep, slows time down, which is no fault of the
// cluster's: no time passes while something is on its way, or past a timer that has not run.
class HostTime {
	// Time passes only while idle() says that nothing is on its way.
	constructor(idle) {
		this.idle = idle;
		this.reached = Date.now(); // in milliseconds, with fractions
		this.since = performance.now(); // when it was reached
		this.speed = 1;
		this.timers = new Map();
		this.last = 0;
		this.wakeUp = undefined;
	}

	// now goes on a little each time, so that what waits for it in a loop comes to an end.
	now() { return this.reached += HostTime.leastStep; }

	setSpeed(factor) {
		this.since = performance.now();
		this.speed = factor;
		this.arm();
	}

	after(delay, run) {
		const id = ++this.last;
		this.timers.set(id, { id, due: this.reached + delay, run });
		this.arm();
		return id;
	}

	cancel(id) { this.timers.delete(id); }

	// next is the timer that is due next.
	next() {
		let next;
		for (const t of this.timers.values()) if (!next || t.due < next.due) next = t;
		return next;
	}

	// arm has the host look when the next timer is due.
	arm() {
		clearTimeout(this.wakeUp);
		const next = this.next();
		if (this.speed && next) this.wakeUp = setTimeout(() => this.look(), Math.max(0, (next.due - this.reached) / this.speed));
	}

	// look lets time pass as far as it may, and runs timers.
	look() {
		const real = performance.now();
		let left = Math.min(real - this.since, HostTime.longestStep) * this.speed;
		this.since = real;
		while (this.speed && this.idle()) {
			const next = this.next();
			if (!next || next.due > this.reached + left) {
				this.reached += left;
				break;
			}
			left -= Math.max(0, next.due - this.reached);
			this.reached = Math.max(this.reached, next.due);
			this.timers.delete(next.id);
			next.run();
		}
		this.arm();
	}
}

// In milliseconds: how much time passes at once at the most, how often the host looks at least, and now.
HostTime.longestStep = 60;
HostTime.lookEvery = 20;
HostTime.leastStep = 0.0005;

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

	// keepTime has Go ask the host for the time, and for timers. For time.Now Go asks for the wall clock, and right after
	// that for the monotonic one: both get one answer, or a pause between the two would look like a clock that was set.
	keepTime(gojs) {
		const go = this.go, time = this.host.time;
		let told = NaN;
		gojs["runtime.nanotime1"] = (sp) => {
			const now = Number.isNaN(told) ? time.now() : told;
			told = NaN;
			go.mem.setBigInt64((sp >>> 0) + 8, BigInt(Math.round(now * 1e6)), true);
		};
		gojs["runtime.walltime"] = (sp) => {
			const now = told = time.now(), seconds = Math.floor(now / 1000);
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
		this.time = new HostTime(() => !this.queue.length);
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
		this.looks = setInterval(() => this.time.look(), HostTime.lookEvery);
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
			dial: (replica, node) => this.dial(i, replica, node),
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

	dial(from, replica, node) {
		const id = ++this.lastConnection;
		this.connections.set(id, [from, this.director]);
		from.connections.add(id);
		this.director.connections.add(id);
		this.call(this.director, "accept", id, replica, node);
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
		else this.time.arm();
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
