// The worker in which the demonstration runs. The page sends it {id, order}; it sends {message}, with a message of the
// protocol (internal/demo/protocol.go), {id, error} as the answer to an order, and {failed}.
"use strict";

importScripts("wasm_exec.js", "host.js");

(async () => {
	const failed = (text) => postMessage({ failed: text });
	const early = []; // orders that came before the program was there
	let host = null;
	onmessage = (event) => host ? host.order(event.data.id, event.data.order) : early.push(event.data);
	try {
		const response = await fetch("demo.wasm.gz");
		if (!response.ok) throw new Error(`demo.wasm.gz: ${response.status} ${response.statusText}`);
		const bytes = await TenureUnpacked(new Uint8Array(await response.arrayBuffer()));
		host = new TenureHost(await WebAssembly.compile(bytes), {
			publish: (text) => postMessage({ message: text }),
			answered: (id, error) => postMessage({ id, error }),
			failed,
		});
		for (const { id, order } of early) host.order(id, order);
	} catch (err) {
		failed(String(err));
	}
})();
