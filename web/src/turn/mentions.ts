/** `@rule:name` and `@reference:name` while a message is being written: what is being named, and what it could be. */

import type { ItemView } from '../api/schema.ts'

export type Mention = { start: number; end: number; query: string }
export type Mentionable = Pick<ItemView, 'type' | 'name' | 'title' | 'description' | 'enabled'>

const OPEN = /(^|[\s(])@([A-Za-z0-9_:-]*)$/
const SHOWN = 8

/** Return the mention that is being written before the caret, or null. */
export function mentionAt(text: string, caret: number): Mention | null {
  const found = OPEN.exec(text.slice(0, caret))
  if (!found) return null
  const query = found[2] ?? ''
  return { start: caret - query.length - 1, end: caret, query }
}

/** Return what can be named so, best first: names that begin with it before names and descriptions that hold it. */
export function matching<I extends Mentionable>(items: readonly I[], query: string): I[] {
  const [kind, rest] = query.includes(':')
    ? (query.toLowerCase().split(':', 2) as [string, string])
    : ['', query.toLowerCase()]
  return items
    .filter((item) => item.type !== 'tool' && item.enabled && item.type.startsWith(kind))
    .map((item) => ({ item, rank: rankOf(item, rest) }))
    .filter(({ rank }) => rank < 3)
    .sort((one, other) => one.rank - other.rank || one.item.name.localeCompare(other.item.name))
    .slice(0, SHOWN)
    .map(({ item }) => item)
}

function rankOf(item: Mentionable, wanted: string): number {
  const name = item.name.toLowerCase()
  if (name.startsWith(wanted) || item.type.startsWith(wanted)) return 0
  if (name.includes(wanted)) return 1
  return `${item.title} ${item.description}`.toLowerCase().includes(wanted) ? 2 : 3
}

/** Return the text with the mention completed, and where the caret is then. */
export function completed(text: string, mention: Mention, item: Mentionable): { text: string; caret: number } {
  const written = `@${item.type}:${item.name}`
  const after = text.slice(mention.end)
  const gap = /^[\s.,;:!?)]/.test(after) ? '' : ' '
  const step = gap || /^\s/.test(after) ? 1 : 0
  return { text: text.slice(0, mention.start) + written + gap + after, caret: mention.start + written.length + step }
}
