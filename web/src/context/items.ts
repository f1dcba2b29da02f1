/** Items in groups, in the order in which they are shown everywhere: by priority and name, tools by server and name. */

import type { CarriedItem, ContextItem } from '../api/schema.ts'
import type { ItemName } from '../routing/route.ts'

export type ItemType = 'rule' | 'reference' | 'tool'
export type Shown = { type: ItemType; name: string; server?: string | null; priority?: number | null }
export type Group<I> = { type: ItemType; title: string; items: I[] }

const TITLES: [ItemType, string][] = [
  ['rule', 'Rules'],
  ['reference', 'References'],
  ['tool', 'Tools'],
]

export function grouped<I extends Shown>(items: readonly I[]): Group<I>[] {
  return TITLES.map(([type, title]) => ({
    type,
    title,
    items: items.filter((item) => item.type === type).sort(inOrder),
  }))
}

function inOrder(one: Shown, other: Shown): number {
  return (
    (one.server ?? '').localeCompare(other.server ?? '') ||
    (one.priority ?? Infinity) - (other.priority ?? Infinity) ||
    one.name.localeCompare(other.name)
  )
}

/** Whether an item has all words of a search in its name, its server's or its description. */
export function hasWords(item: { name: string; server?: string | null; description: string }, query: string): boolean {
  const text = `${item.server ?? ''} ${item.name} ${item.description}`.toLowerCase()
  return query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

/** The item's name as addresses have it. */
export function named({ type, name, server }: Shown): ItemName {
  return { type, name, ...(server ? { server } : {}) }
}

/** Tell one item of a list from the others. */
export function refKey({ type, name, server }: Shown): string {
  return JSON.stringify([type, server ?? null, name])
}

/** A priority as three digits. */
export function threeDigits(priority: number): string {
  return String(priority).padStart(3, '0')
}

type Sent = { type: ItemType; include_mode: 'always' | 'manual' | 'agent'; status: string }
const MODES = ['agent', 'always', 'manual'] as const

/** What the model was given, in one line: "5 rules (3 agent, 2 always), 1 reference (manual); 1 not sent". */
export function summaryLine(items: readonly Sent[]): string {
  const sent = items.filter(({ status }) => status === 'used' || status === 'truncated')
  const groups = TITLES.map(([type]) =>
    groupSummary(
      type,
      sent.filter((item) => item.type === type),
    ),
  ).filter(Boolean)
  const missed = items.length - sent.length
  return (groups.join(', ') || 'no items') + (missed ? `; ${missed} not sent` : '')
}

function groupSummary(noun: string, items: readonly Sent[]): string {
  if (!items.length) return ''
  if (items.length === 1) return `1 ${noun} (${items[0]!.include_mode})`
  const counts = MODES.map((mode) => [items.filter((item) => item.include_mode === mode).length, mode] as const).filter(
    ([count]) => count,
  )
  const modes = counts.length === 1 ? `all ${counts[0]![1]}` : counts.map((pair) => pair.join(' ')).join(', ')
  return `${items.length} ${noun}s (${modes})`
}

/** What a request has of its items, and of those that stand in the prompt since earlier turns. */
export type Given = {
  items: readonly Pick<ContextItem, 'type' | 'name' | 'server' | 'status'>[]
  carried: readonly CarriedItem[]
}

/** What the model was given although the message did not select it: it stands in the prompt since an earlier turn. */
export function standing({ items, carried }: Given): CarriedItem[] {
  const sent = new Set(items.filter(({ status }) => status === 'used' || status === 'truncated').map(refKey))
  return carried.filter((item) => !sent.has(refKey(item)))
}
