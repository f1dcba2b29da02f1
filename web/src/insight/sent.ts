/** Everything that a turn's model was given, in rows that add up: each item, and each part that is no item. */

import type { CarriedItem, ContextItem, ItemUse, RequestContext, TurnReceipt } from '../api/schema.ts'
import { refKey, standing } from '../context/items.ts'
import { groupOf, type PartGroup } from '../context/parts.ts'

export type SentRow = {
  key: string
  group: PartGroup
  name: string
  /** Set for an item that the message selected or the session has. */
  item: ContextItem | null
  /** Set for one that stands there since an earlier turn. */
  carried: CarriedItem | null
  tokens: number
  /** Of what the request took, between 0 and 1. */
  share: number
  /** In dollars; null when it is not known. */
  cost: number | null
  use: ItemUse | null
}
/** A message of the conversation. */
export type Said = { seq: number; turn: number | null; role: string }
export type Column = 'name' | 'tokens' | 'cost' | 'used'

/** Parts that are made of items. */
const OF_ITEMS = ['rules', 'references', 'selected', 'tools']
const GROUPS: Record<ContextItem['type'], PartGroup> = { rule: 'rules', reference: 'references', tool: 'tools' }

export function sentRows(
  context: Pick<RequestContext, 'items' | 'carried' | 'parts' | 'budget'>,
  receipt: TurnReceipt | null,
  uses: readonly ItemUse[] | null,
  said: readonly Said[] = [],
): SentRow[] {
  const used = new Map(uses?.map((use) => [refKey(use.ref), use]))
  const price = pricePerToken(receipt)
  const rows: Omit<SentRow, 'share' | 'cost'>[] = context.items
    .filter(({ status }) => status === 'used' || status === 'truncated')
    .map((item) => ({
      key: refKey(item),
      group: GROUPS[item.type],
      name: item.name,
      item,
      carried: null,
      tokens: item.tokens,
      use: used.get(refKey(item)) ?? null,
    }))
  for (const item of standing(context))
    rows.push({
      key: refKey(item),
      group: GROUPS[item.type],
      name: item.name,
      item: null,
      carried: item,
      tokens: item.tokens,
      use: used.get(refKey(item)) ?? null,
    })
  context.parts.forEach((part, index) => {
    if (OF_ITEMS.includes(part.kind) || part.status === 'left_out' || !part.tokens) return
    const group = groupOf(part.kind as Exclude<typeof part.kind, 'selected'>)
    rows.push({
      key: `part ${index}`,
      group,
      name: partName(part, said),
      item: null,
      carried: null,
      tokens: part.tokens,
      use: null,
    })
  })
  const rest = context.budget.used_tokens - rows.reduce((sum, { tokens }) => sum + tokens, 0)
  if (rest > 0)
    rows.push({
      key: 'rest',
      group: 'system',
      name: 'Headings and framing',
      item: null,
      carried: null,
      tokens: rest,
      use: null,
    })
  const whole = rows.reduce((sum, { tokens }) => sum + tokens, 0)
  return rows.map((row) => ({
    ...row,
    share: whole ? row.tokens / whole : 0,
    cost: price === null ? null : price * row.tokens,
  }))
}

/** Return the rows by one column; what has no value there comes last. */
export function sorted(rows: readonly SentRow[], column: Column, rising: boolean): SentRow[] {
  const by = {
    name: (one: SentRow, other: SentRow) => one.name.localeCompare(other.name),
    tokens: (one: SentRow, other: SentRow) => one.tokens - other.tokens,
    cost: (one: SentRow, other: SentRow) => one.tokens - other.tokens,
    used: (one: SentRow, other: SentRow) => rank(one) - rank(other) || one.tokens - other.tokens,
  }[column]
  return [...rows].sort((one, other) => (rising ? by(one, other) : by(other, one)) || one.key.localeCompare(other.key))
}

const USES: Record<NonNullable<ItemUse['how']>, string> = {
  called: 'Called',
  cited: 'Cited',
  quoted: 'Quoted',
  drawn_upon: 'Reused',
}
const VERDICTS: Record<ItemUse['verdict'], string> = {
  used: 'Yes',
  probably: 'Probably',
  no_trace: 'No trace',
  not_called: 'Not called',
  unknown: '',
}

/** Whether an item was used, in a word or two: how, where that is known. */
export function useText({ how, verdict }: ItemUse): string {
  return verdict === 'used' && how ? USES[how] : VERDICTS[verdict]
}

/** Every call of a turn sends the request again, so an item costs its tokens as often as there were calls. */
function pricePerToken(receipt: TurnReceipt | null): number | null {
  if (!receipt || receipt.input_cost_usd === null || !receipt.usage.input_tokens) return null
  return (Number(receipt.input_cost_usd) / receipt.usage.input_tokens) * receipt.calls
}

function partName({ kind, name }: { kind: string; name: string }, said: readonly Said[]): string {
  const words = (text: string) => text.replaceAll('_', ' ')
  return name && name !== kind ? `${words(kind)} · ${words(placeOf(name, said))}` : words(kind)
}

/** Return the turn of a past message and who said it, where it is known: a part is named by its place in the log. */
export function placeOf(name: string, said: readonly Said[]): string {
  const message = said.find(({ seq }) => name === `message ${seq}`)
  if (message === undefined || message.turn === null) return name
  return `turn ${message.turn}, ${message.role === 'user' ? 'message' : 'answer'}`
}

function rank({ use }: SentRow): number {
  return use === null ? 0 : use.used ? 3 : use.verdict === 'probably' ? 2 : 1
}
