import { expect, test } from 'vitest'
import type { DayRow, ItemRow, PartRow } from '../../api/schema.ts'
import {
  bytes,
  byTokens,
  columnsOf,
  costOf,
  MEASURES,
  ordered,
  partShares,
  queryOf,
  share,
  ticks,
  tokensInAll,
} from './measures.ts'

const nothing = {
  turns: 0,
  calls: 0,
  request_tokens: 0,
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: '0',
  turns_without_price: 0,
  calls_without_usage: 0,
  calls_without_price: 0,
}
const day = (name: string, turns: number, precision: number | null): DayRow => ({
  day: name,
  sessions: 1,
  active_sessions: 1,
  spent: { ...nothing, turns },
  quality: { selected: 0, selected_used: 0, selected_probably: 0, missed: 0, precision, recall: null },
  prefix: {
    compared: 0,
    kept_share: null,
    cached_share: null,
    rebases: 0,
    rebase_usd: '0',
    expected_tokens: 0,
    read_tokens: 0,
    collapses: 0,
    missing_tokens: 0,
  },
})
const measure = (name: string) => MEASURES.find((one) => one.name === name)!

test('days on which nothing happened have their place, as nothing or as unknown', () => {
  const rows = [day('2026-02-27', 2, 0.5), day('2026-03-02', 4, null)]

  expect(columnsOf(rows, measure('turns')).map(({ key, value }) => [key, value])).toEqual([
    ['2026-02-27', 2],
    ['2026-02-28', 0],
    ['2026-03-01', 0],
    ['2026-03-02', 4],
  ])
  expect(columnsOf(rows, measure('precision')).map(({ value }) => value)).toEqual([0.5, null, null, null])
  expect(columnsOf([], measure('turns'))).toEqual([])
})

test('tokens that no provider counted are those that we counted, for each day and for all of them', () => {
  const counted = (name: string, tokens: Partial<DayRow['spent']>) => ({
    ...day(name, 1, null),
    spent: { ...nothing, ...tokens },
  })
  const ours = counted('2026-02-27', { request_tokens: 90, output_tokens: 3 })
  const theirs = counted('2026-02-28', { request_tokens: 90, input_tokens: 100, output_tokens: 5 })

  expect(columnsOf([ours, theirs], measure('tokens')).map(({ value }) => value)).toEqual([93, 105])
  expect(tokensInAll([ours, theirs])).toEqual({ tokens: 190, counted: 'both' })
  expect(tokensInAll([ours])).toEqual({ tokens: 90, counted: 'we' })
  expect(tokensInAll([theirs])).toEqual({ tokens: 100, counted: 'provider' })
})

test.each([
  [0, [0, 1]],
  [3, [0, 1, 2, 3]],
  [47, [0, 20, 40, 60]],
  [0.0031, [0, 0.002, 0.004]],
  [1_200_000, [0, 500_000, 1_000_000, 1_500_000]],
])('an axis up to %s has round numbers', (largest, marks) => {
  expect(ticks(largest)).toEqual(marks)
})

test('an axis of shares ends at the whole', () => {
  expect(ticks(0.3, 1)).toEqual([0, 0.5, 1])
})

test('the last days are counted from today, today included', () => {
  const today = new Date('2026-03-02T23:30:00Z')

  expect(queryOf({ days: '7', agent: 'pane' }, today)).toEqual({ since: '2026-02-24', agent: 'pane' })
  expect(queryOf({}, today)).toEqual({})
})

test('parts are added up in groups, the largest first', () => {
  const row = (kind: PartRow['kind'], tokens: number): PartRow => ({
    kind,
    tokens,
    requests: 1,
    share: 0,
    cost_usd: '0.5',
    cut: 1,
  })

  expect(
    partShares([row('core', 10), row('site', 5), row('history', 40), row('summary', 0), row('attached', 3)]),
  ).toEqual([
    { group: 'history', title: 'History', tokens: 40, cost: 0.5, cut: 1 },
    { group: 'system', title: 'System', tokens: 15, cost: 1, cut: 2 },
    { group: 'message', title: 'Message', tokens: 3, cost: 0.5, cut: 1 },
  ])
})

test('agents stand in the order of their bars', () => {
  const rows = [
    { agent: 'asked often', spent: { ...nothing, turns: 9, input_tokens: 10 } },
    { agent: 'asked for much', spent: { ...nothing, turns: 1, request_tokens: 50, output_tokens: 5 } },
  ]

  expect(byTokens(rows).map(({ agent }) => agent)).toEqual(['asked for much', 'asked often'])
})

test('items are ordered by what matters', () => {
  const rows = [
    { tokens: 1, no_trace_tokens: 4, unused_tokens: 5 },
    { tokens: 5, no_trace_tokens: 2, unused_tokens: 0 },
  ] as ItemRow[]

  expect(ordered(rows, 'tokens').map(({ tokens }) => tokens)).toEqual([5, 1])
  expect(ordered(rows, 'unused').map(({ tokens }) => tokens)).toEqual([1, 5])
})

test('sizes and shares are read at a glance', () => {
  expect([bytes(12), bytes(2048), bytes(5 * 2 ** 20)]).toEqual(['12 B', '2.0 KiB', '5.0 MiB'])
  expect([share(null), share(0.456)]).toEqual(['–', '46%'])
})

test('a sum of some calls is not told as the sum of all', () => {
  const spent = { turns: 3, turns_without_price: 0, calls_without_usage: 0, calls_without_price: 0, cost_usd: '0.5' }
  expect(costOf(spent as never)).toBe('$0.50')
  expect(costOf({ ...spent, turns_without_price: 1, calls_without_price: 2 } as never)).toBe('at least $0.50')
  expect(costOf({ ...spent, turns_without_price: 3, calls_without_usage: 3, cost_usd: '0' } as never)).toBe('–')
})
