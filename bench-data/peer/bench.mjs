// Measures llama.cpp on a GGUF: prompt tokens a second, then tokens a second
// after it. Settings come from the environment: THREADS, CTX, FA=1 for flash
// attention.
//
//   npm install && THREADS=2 CTX=2048 node bench.mjs MODEL.gguf PROMPT_TOKENS TOKENS
import { getLlama, LlamaLogLevel } from "node-llama-cpp";

const [model, prompt, tokens] = process.argv.slice(2);
const threads = Number(process.env.THREADS ?? 2);
const llama = await getLlama({
  gpu: false, build: "never", skipDownload: true, maxThreads: threads, logLevel: LlamaLogLevel.error,
});
const loaded = await llama.loadModel({ modelPath: model, useMmap: true });
const context = await loaded.createContext({
  contextSize: Number(process.env.CTX ?? 2048), batchSize: 512, threads, flashAttention: process.env.FA === "1",
});
const sequence = context.getSequence();

const rate = async (n, work) => {
  const start = performance.now();
  await work();
  return (n * 1000 / (performance.now() - start)).toFixed(2);
};
const ids = Array.from({ length: Number(prompt) }, (_, i) => 300 + (i * 7919) % 200);
const prefill = await rate(ids.length, () => sequence.evaluateWithoutGeneratingNewTokens(ids));
const decode = await rate(Number(tokens), async () => {
  let n = 0;
  for await (const _ of sequence.evaluate([301], { temperature: 0, yieldEogToken: true })) {
    if (++n === Number(tokens)) break;
  }
});
console.log(`prefill ${ids.length} ${prefill} tok/s   decode ${tokens} ${decode} tok/s`);
process.exit(0);
