// Runs the demonstration of a directory in Node.js, with the page's side of its protocol on standard input and output:
// a line of JSON is an order {id, order}, or what the worker would send to the page.
"use strict";

const fs = require("node:fs"), path = require("node:path"), vm = require("node:vm"), readline = require("node:readline");

const directory = process.argv[2];
// Node.js has modules named fs and path, and no globals: wasm_exec.js makes its own, as in a browser.
for (const script of ["wasm_exec.js", "host.js"]) {
	vm.runInThisContext(fs.readFileSync(path.join(directory, script), "utf8"), { filename: script });
}
const say = (message) => process.stdout.write(JSON.stringify(message) + "\n");
console.log = console.warn = console.error;

(async () => {
	const bytes = await TenureUnpacked(new Uint8Array(fs.readFileSync(path.join(directory, "demo.wasm.gz"))));
	const host = new TenureHost(await WebAssembly.compile(bytes), {
		publish: (text) => say({ message: JSON.parse(text) }),
		answered: (id, error) => say({ id, error }),
		failed: (failed) => say({ failed }),
	});
	const lines = readline.createInterface({ input: process.stdin });
	lines.on("line", (line) => {
		const { id, order } = JSON.parse(line);
		host.order(id, order);
	});
	lines.on("close", () => process.exit(0));
})();
