// The reference implementation's matcher on a stream: microseconds per delta, as JSON.
//   bun reference_matcher.ts PACKAGES INPUT.json
// PACKAGES is the folder that has @oh-my-pi in its node_modules; INPUT.json has `conditions`, `deltas`, `seconds`.
import { readFileSync } from "node:fs";

const [packages, input] = process.argv.slice(2);
const { TtsrManager } = await import(`${packages}/node_modules/@oh-my-pi/pi-coding-agent/src/export/ttsr`);
const { conditions, deltas, seconds } = JSON.parse(readFileSync(input, "utf8"));

const manager = new TtsrManager({ builtinRules: false } as any);
let accepted = 0;
for (const [at, condition] of conditions.entries()) {
	const rule = { name: `r${at}`, path: `r${at}.md`, content: "", condition: [condition], scope: ["text"] };
	if (manager.addRule(rule as any)) accepted++;
}
const began = performance.now();
const marks: number[] = [];
let done = 0;
let matched = 0;
for (const delta of deltas) {
	matched += manager.checkDelta(delta, { source: "text" } as any).length;
	marks.push(performance.now());
	done++;
	if (performance.now() - began > seconds * 1000) break;
}
const part = Math.max(1, Math.floor(done / 10));
const perDelta = (from: number, to: number) => ((marks[to - 1] - (from ? marks[from - 1] : began)) * 1000) / (to - from);
console.log(
	JSON.stringify({ accepted, matched, done, mean: perDelta(0, done), first: perDelta(0, part), last: perDelta(done - part, done) }),
);
