/** A unified diff as git writes it, taken apart: which lines of which file. */

import type { Hunk } from '../ui/lines.ts'

/** Return the hunks of each file by its name; a file that is not text has none. */
export function patchOf(patch: string): Map<string, Hunk[]> {
  const files = new Map<string, Hunk[]>()
  for (const part of patch.split(/^(?=diff --git )/m)) {
    if (!part.startsWith('diff --git ')) continue
    const lines = part.split('\n')
    if (lines.at(-1) === '') lines.pop()
    const first = lines.findIndex((line) => line.startsWith('@@ '))
    const name = nameIn(first < 0 ? lines : lines.slice(0, first))
    if (name !== null) files.set(name, first < 0 ? [] : hunksIn(lines.slice(first)))
  }
  return files
}

function nameIn(head: readonly string[]): string | null {
  const after = (start: string) => head.find((line) => line.startsWith(start))?.slice(start.length)
  const now = after('+++ ')
  const named = now === undefined || now === '/dev/null' ? after('--- ') : now
  if (named !== undefined && named !== '/dev/null') return plain(named).slice(2)
  const renamed = after('rename to ') ?? after('copy to ')
  if (renamed !== undefined) return plain(renamed)
  // Without lines of its own, a file has the same name twice.
  const both = after('diff --git ') ?? ''
  const half = both.slice(0, (both.length - 1) / 2)
  return half ? plain(half).slice(2) : null
}

/** A name without the quotes and the tab that git puts around unusual ones. */
function plain(name: string): string {
  const bare = name.replace(/\t$/, '')
  if (!bare.startsWith('"')) return bare
  const bytes: number[] = []
  for (const [whole, octal, sign] of bare.slice(1, -1).matchAll(/\\([0-7]{3})|\\(.)|[^\\]+/g)) {
    if (octal) bytes.push(parseInt(octal, 8))
    else bytes.push(...new TextEncoder().encode(sign ? (SIGNS[sign] ?? sign) : whole))
  }
  return new TextDecoder().decode(new Uint8Array(bytes))
}

const SIGNS: Record<string, string> = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' }

function hunksIn(lines: readonly string[]): Hunk[] {
  const found: Hunk[] = []
  let before = 0
  let after = 0
  for (const line of lines) {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(line)
    const text = line.slice(1)
    if (head) {
      before = Number(head[1])
      after = Number(head[2])
      found.push([])
    } else if (line.startsWith('-')) found.at(-1)!.push({ kind: 'old', text, before: before++, after: null })
    else if (line.startsWith('+')) found.at(-1)!.push({ kind: 'new', text, before: null, after: after++ })
    else if (line.startsWith(' ')) found.at(-1)!.push({ kind: 'same', text, before: before++, after: after++ })
  }
  return found
}
