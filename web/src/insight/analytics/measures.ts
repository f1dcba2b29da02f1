/** What the dashboard draws: pure readings of its numbers. */

import type { DayRow, ItemRow, PartRow, Spent } from '../../api/schema.ts'
import { groupOf, inDigits, type PartGroup } from '../../context/parts.ts'
import type { AnalyticsFilters } from '../../routing/route.ts'
import { dollars } from '../../ui/money.ts'

const DAY_MS = 86_400_000
export const RANGES = [
  ['7', '7 days'],
  ['30', '30 days'],
  ['90', '90 days'],
  ['', 'All'],
] as const

/** What the server is asked for: days back from today, which counts as the last of them. */
export function queryOf(
  filters: AnalyticsFilters,
  today: Date,
): { since?: string; agent?: string; model?: string; everyone?: boolean } {
  const days = Number(filters.days)
  return {
    ...(days > 0 ? { since: dayOf(new Date(today.getTime() - (days - 1) * DAY_MS)) } : {}),
    ...(filters.agent ? { agent: filters.agent } : {}),
    ...(filters.model ? { model: filters.model } : {}),
    ...(filters.everyone ? { everyone: true } : {}),
  }
}

/** The tokens of turns, as the provider counted them or, when it did not, as we counted what was sent. */
export function tokensOf(spent: Spent): number {
  return tokensIn(spent) + spent.output_tokens
}

/** Rows by their tokens, the most first, as their bars are. */
export function byTokens<Row extends { spent: Spent }>(rows: readonly Row[]): Row[] {
  return [...rows].sort((one, other) => tokensOf(other.spent) - tokensOf(one.spent))
}

/** How many calls are missing in the cost. */
export function unpriced(spent: Spent): number {
  return spent.calls_without_usage + spent.calls_without_price
}

/** The cost of turns; "at least" where that of some calls is unknown, and a dash where all is. */
export function costOf(spent: Spent): string {
  if (spent.turns_without_price === spent.turns && !Number(spent.cost_usd)) return '–'
  return `${unpriced(spent) ? 'at least ' : ''}${dollars(spent.cost_usd)}`
}

function tokensIn(spent: Spent): number {
  return spent.input_tokens || spent.request_tokens
}

/** What went in on all days together, by the same counts as the days have, and who counted. */
export function tokensInAll(days: readonly DayRow[]): { tokens: number; counted: 'provider' | 'we' | 'both' } {
  const ours = days.filter(({ spent }) => !spent.input_tokens && spent.request_tokens)
  return {
    tokens: days.reduce((sum, { spent }) => sum + tokensIn(spent), 0),
    counted: !ours.length ? 'provider' : days.some(({ spent }) => spent.input_tokens) ? 'both' : 'we',
  }
}

export type Measure = {
  name: string
  title: string
  about: string
  of: (row: DayRow) => number | null
  text: (value: number) => string
  most?: number
}

/** What can be looked at day by day. A share goes up to 1; where nothing was counted it is null. */
export const MEASURES: readonly Measure[] = [
  {
    name: 'cost',
    title: 'Cost',
    about: 'Calls whose usage and price are known; where others were made, at least this',
    of: ({ spent }) => Number(spent.cost_usd),
    text: dollars,
  },
  {
    name: 'tokens',
    title: 'Tokens',
    about: 'Input and output, as providers counted them; where they did not, what was sent by our own count',
    of: ({ spent }) => tokensOf(spent),
    text: inDigits,
  },
  { name: 'turns', title: 'Turns', about: 'Questions asked', of: ({ spent }) => spent.turns, text: inDigits },
  {
    name: 'sessions',
    title: 'Sessions',
    about: 'Sessions that were begun',
    of: ({ sessions }) => sessions,
    text: inDigits,
  },
  {
    name: 'precision',
    title: 'Selected and used',
    about: 'Share of selected items that the answer called, quoted or reused, surely or probably',
    of: ({ quality }) => quality.precision,
    text: share,
    most: 1,
  },
  {
    name: 'recall',
    title: 'Needed and selected',
    about: 'Share of needed items that were selected (estimate)',
    of: ({ quality }) => quality.recall,
    text: share,
    most: 1,
  },
  {
    name: 'prefix',
    title: 'Prompt cache stability',
    about: 'Share of the prompt that is the same as in the turn before, so a provider’s cache can serve it',
    of: ({ prefix }) => prefix.kept_share,
    text: share,
    most: 1,
  },
  {
    name: 'rebases',
    title: 'Re-bases',
    about: 'How many requests did not go on with the last one, so that a provider’s cache could not serve them',
    of: ({ prefix }) => prefix.rebases,
    text: inDigits,
  },
]

export type Column = { key: string; label: string; value: number | null }

/** A column for each day from the first to the last, also for those on which nothing happened. */
export function columnsOf(rows: readonly DayRow[], measure: Measure): Column[] {
  const first = rows[0]
  const last = rows.at(-1)
  if (!first || !last) return []
  const known = new Map(rows.map((row) => [row.day, row]))
  const columns: Column[] = []
  for (let time = Date.parse(first.day); time <= Date.parse(last.day); time += DAY_MS) {
    const day = dayOf(new Date(time))
    const row = known.get(day)
    columns.push({ key: day, label: day, value: row ? measure.of(row) : measure.most === undefined ? 0 : null })
  }
  return columns
}

/** Round numbers from zero up to at least the largest value, a few of them. */
export function ticks(largest: number, most?: number): number[] {
  if (most !== undefined) return [0, most / 2, most]
  if (largest <= 0) return [0, 1]
  const rough = largest / 3
  const magnitude = 10 ** Math.floor(Math.log10(rough))
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * magnitude).find((one) => one >= rough)!
  const count = Math.ceil(largest / step - 1e-9)
  return Array.from({ length: count + 1 }, (_, index) => Number((index * step).toPrecision(12)))
}

export type PartShare = { group: PartGroup | 'selected'; title: string; tokens: number; cost: number; cut: number }
const TITLES: Record<PartShare['group'], string> = {
  system: 'System',
  rules: 'Rules',
  references: 'References',
  tools: 'Tools',
  selected: 'Selected for the message',
  summary: 'Summary',
  recall: 'Recall',
  fetched: 'Fetched',
  history: 'History',
  message: 'Message',
}

/** Parts in the groups that people know, the largest first. */
export function partShares(rows: readonly PartRow[]): PartShare[] {
  const found = new Map<PartShare['group'], PartShare>()
  for (const row of rows) {
    const group = row.kind === 'selected' ? 'selected' : groupOf(row.kind)
    const sum = found.get(group) ?? { group, title: TITLES[group], tokens: 0, cost: 0, cut: 0 }
    found.set(group, {
      ...sum,
      tokens: sum.tokens + row.tokens,
      cost: sum.cost + Number(row.cost_usd),
      cut: sum.cut + row.cut,
    })
  }
  return [...found.values()].filter(({ tokens }) => tokens > 0).sort((one, other) => other.tokens - one.tokens)
}

/** What an item took in requests whose answers show no trace of it: that does not prove that it was of no use. */
export function withoutTrace(row: ItemRow): number {
  return row.no_trace_tokens + row.unused_tokens
}

export const ORDERS = {
  tokens: ['Most tokens', (row: ItemRow) => row.tokens],
  unused: ['Most tokens without a trace', (row: ItemRow) => withoutTrace(row)],
  included: ['Most included', (row: ItemRow) => row.included],
  used: ['Most used', (row: ItemRow) => row.used],
  missed: ['Most added by hand', (row: ItemRow) => row.added_by_hand],
} as const satisfies Record<string, readonly [string, (row: ItemRow) => number]>
export type Order = keyof typeof ORDERS

export function ordered(rows: readonly ItemRow[], order: Order): ItemRow[] {
  const [, value] = ORDERS[order]
  return [...rows].sort((one, other) => value(other) - value(one))
}

export function share(value: number | null): string {
  return value === null ? '–' : `${Math.round(value * 100)}%`
}

export function bytes(count: number): string {
  if (count < 1024) return `${count} B`
  const power = Math.min(3, Math.floor(Math.log2(count) / 10))
  return `${(count / 1024 ** power).toFixed(1)} ${['B', 'KiB', 'MiB', 'GiB'][power]}`
}

/** A day as people write it: "3 Nov". */
export function dayText(day: string): string {
  return new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' }).format(new Date(day))
}

function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10)
}
