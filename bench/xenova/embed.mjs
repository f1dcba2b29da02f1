// Embed texts with the original's stack and report CPU times as JSON: node embed.mjs MODELS_FOLDER TEXTS.json
import { readFileSync } from 'node:fs'
import { env, pipeline } from '@xenova/transformers'

const [folder, file] = process.argv.slice(2)
const { chunks, queries } = JSON.parse(readFileSync(file, 'utf8'))
env.localModelPath = folder
env.allowRemoteModels = false
env.backends.onnx.wasm.numThreads = 1

const cpu = () => { const used = process.cpuUsage(); return (used.user + used.system) / 1e6 }
const options = { pooling: 'mean', normalize: true }

let start = cpu()
const embed = await pipeline('feature-extraction', 'model', {
  quantized: true,
  session_options: { intraOpNumThreads: 1, interOpNumThreads: 1 },
})
const load = cpu() - start
await embed('warm', options)
start = cpu()
for (const chunk of chunks) await embed(chunk, options)
const all = cpu() - start
start = cpu()
for (const query of queries) await embed(query, options)
const each = (cpu() - start) / queries.length
console.log(JSON.stringify({ load_s: load, chunks_s: all, query_ms: each * 1000, memory_mb: process.memoryUsage().rss / 1e6 }))
