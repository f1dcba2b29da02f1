/** A rule of the linter: which folder of `src/` may import which. */

import { readdirSync } from 'node:fs'
import { dirname, relative, resolve, sep } from 'node:path'

/** The folders, lowest first: a folder imports only from lines above its own. The files beside them are the page. */
const LAYERS = [
  ['api'],
  ['ui'],
  ['routing'],
  ['auth'],
  ['context'],
  ['live'],
  ['agents'],
  ['sessions'],
  ['applets', 'find', 'insight', 'panel', 'turn'],
]
const SOURCE = resolve(import.meta.dirname, 'src')
const PAGE = LAYERS.length

const folders = readdirSync(SOURCE, { withFileTypes: true }).filter((one) => one.isDirectory())
const unplaced = folders.filter(({ name }) => !LAYERS.flat().includes(name))
if (unplaced.length) throw new Error(`not in LAYERS: ${unplaced.map(({ name }) => name).join(', ')}`)

/** Return the folder of a file and its line; what stands beside the folders has none and the last line. */
function placeOf(file) {
  const [first, ...rest] = relative(SOURCE, file).split(sep)
  return rest.length ? [first, LAYERS.findIndex((line) => line.includes(first))] : ['', PAGE]
}

const order = {
  meta: { schema: [], messages: { up: '{{from}}/ may not import {{what}}: see LAYERS in layers.js' } },
  create(context) {
    const [from, mine] = placeOf(context.filename)
    function check({ source }) {
      if (typeof source?.value !== 'string' || !source.value.startsWith('.')) return
      const [to, other] = placeOf(resolve(dirname(context.filename), source.value))
      if (to === from || other < mine) return
      context.report({ node: source, messageId: 'up', data: { from, what: to ? `${to}/` : 'the page' } })
    }
    return {
      ImportDeclaration: check,
      ImportExpression: check,
      ExportNamedDeclaration: check,
      ExportAllDeclaration: check,
    }
  },
}

export default { rules: { order } }
