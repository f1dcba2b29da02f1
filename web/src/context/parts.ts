/** The context window by part: what a request takes of it, in groups that people know, and what is left. */

import type { CarriedItem, ContextItem, Part } from '../api/schema.ts'

export type PartGroup =
  'system' | 'rules' | 'references' | 'tools' | 'summary' | 'recall' | 'fetched' | 'history' | 'message'
export type Share = { group: PartGroup; title: string; tokens: number }

/** All in tokens. `reply` is kept free for the answer; `room` is what a longer request could still take. */
export type WindowUse = { shares: Share[]; used: number; room: number; reply: number; window: number }

/** What is known of a request: its parts, the items that were sent, and the room there was. */
export type Windowed = {
  parts: readonly Pick<Part, 'kind' | 'tokens'>[]
  items: readonly Pick<ContextItem, 'type' | 'include_mode' | 'tokens'>[]
  /** What stands in the prompt since earlier turns: also among the items where the message selected it again. */
  carried?: readonly Pick<CarriedItem, 'type' | 'tokens'>[]
  budget: { window_tokens: number; reply_tokens: number }
}

const TITLES: [PartGroup, string][] = [
  ['system', 'System'],
  ['rules', 'Rules'],
  ['references', 'References'],
  ['tools', 'Tools'],
  ['summary', 'Summary'],
  ['recall', 'Recall'],
  ['fetched', 'Fetched'],
  ['history', 'History'],
  ['message', 'Message'],
]
/** The group of each kind of part. Sources stand in the history, files before their message; additions name tools. */
const GROUPS: Record<Exclude<Part['kind'], 'selected'>, PartGroup> = {
  core: 'system',
  site: 'system',
  user_context: 'system',
  time_context: 'system',
  override: 'system',
  resume: 'system',
  rules: 'rules',
  references: 'references',
  tools: 'tools',
  additions: 'tools',
  summary: 'summary',
  recall: 'recall',
  fetched: 'fetched',
  history: 'history',
  sources: 'history',
  attached: 'message',
  message: 'message',
}
/** What is there because of the message. */
const OF_MESSAGE: readonly Part['kind'][] = ['message', 'attached', 'selected', 'recall']

/** Return what a request takes. Without its message, what any message would find taken already. */
export function windowUse(context: Windowed, { withMessage = true }: { withMessage?: boolean } = {}): WindowUse {
  const found = new Map<PartGroup, number>()
  const add = (group: PartGroup, tokens: number) => found.set(group, (found.get(group) ?? 0) + tokens)
  for (const part of context.parts) {
    if (!withMessage && OF_MESSAGE.includes(part.kind)) continue
    if (part.kind === 'selected') {
      const rules = Math.round(part.tokens * ruleShare(context))
      add('rules', rules)
      add('references', part.tokens - rules)
    } else add(groupOf(part.kind), part.tokens)
  }
  const shares = TITLES.map(([group, title]) => ({ group, title, tokens: found.get(group) ?? 0 })).filter(
    ({ tokens }) => tokens > 0,
  )
  const used = shares.reduce((sum, { tokens }) => sum + tokens, 0)
  const { window_tokens: window, reply_tokens: reply } = context.budget
  return { shares, used, reply, window, room: Math.max(0, window - reply - used) }
}

export function groupOf(kind: Exclude<Part['kind'], 'selected'>): PartGroup {
  return GROUPS[kind]
}

/** What was selected stands in one block; its headings are shared out as its items are. */
function ruleShare({ items, carried = [] }: Windowed): number {
  const selected = [...items.filter((item) => item.include_mode === 'agent'), ...carried]
  const sum = (type: ContextItem['type']) =>
    selected.filter((item) => item.type === type).reduce((tokens, item) => tokens + item.tokens, 0)
  const rules = sum('rule')
  return rules ? rules / (rules + sum('reference')) : 0
}

const NUMBER = new Intl.NumberFormat('en')

export function inDigits(count: number): string {
  return NUMBER.format(count)
}

export function tokensText(count: number): string {
  return `${inDigits(count)} token${count === 1 ? '' : 's'}`
}

/** A share of a whole as people say it: "12%", and never "0%" of something that is there. */
export function percent(part: number, whole: number): string {
  if (!part || !whole) return '0%'
  const share = (100 * part) / whole
  return share < 1 ? 'under 1%' : `${Math.min(100, Math.round(share))}%`
}
