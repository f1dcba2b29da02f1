import { expect, test } from 'vitest'
import type { CarriedItem, ContextItem, TurnReceipt } from '../api/schema.ts'
import { placeOf, sentRows, sorted } from './sent.ts'

const item = (type: ContextItem['type'], name: string, tokens: number, status: ContextItem['status'] = 'used') =>
  ({ type, name, server: null, tokens, status, include_mode: 'always', reason: '' }) as ContextItem
const part = (kind: string, tokens: number, name = '') => ({ kind, name, tokens, status: 'used', reason: '' }) as never
const context = {
  items: [item('rule', 'tone', 20), item('reference', 'billing', 50), item('tool', 'gone', 9, 'server_down')],
  carried: [] as CarriedItem[],
  parts: [part('core', 20), part('rules', 24), part('references', 52), part('history', 10, 'message_3')],
  budget: { used_tokens: 106 } as never,
}
const receipt = {
  input_cost_usd: '0.001',
  usage: { input_tokens: 200 },
  calls: 2,
} as TurnReceipt

test('the rows of what was sent add up to the request', () => {
  const uses = [
    {
      ref: { type: 'rule', name: 'tone', server: null },
      used: true,
      how: 'quoted',
      trace: '',
      verdict: 'used',
      nearness: null,
    } as const,
  ]
  const rows = sentRows(context, receipt, uses)

  expect(rows.map(({ name, group, tokens }) => [name, group, tokens])).toEqual([
    ['tone', 'rules', 20],
    ['billing', 'references', 50],
    ['core', 'system', 20],
    ['history · message 3', 'history', 10],
    ['Headings and framing', 'system', 6],
  ])
  expect(rows.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(106)
  expect(rows.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1)
  expect(rows[1]!.cost).toBeCloseTo(0.0005)
  expect(rows[0]!.use?.how).toBe('quoted')
})

test('what stands there since an earlier turn is a row of its own, unless the message selected it again', () => {
  const carried = ['billing', 'refunds'].map(
    (name) => ({ type: 'reference', name, server: null, turn: 1, tokens: 30 }) as CarriedItem,
  )
  const rows = sentRows({ ...context, carried, budget: { used_tokens: 136 } as never }, null, null)

  expect(rows.filter((row) => row.carried).map(({ name, group, tokens }) => [name, group, tokens])).toEqual([
    ['refunds', 'references', 30],
  ])
  expect(rows.at(-1)).toMatchObject({ name: 'Headings and framing', tokens: 6 })
})

test('a past message is named by its turn and by who said it, where that is known', () => {
  const said = [
    { seq: 3, turn: 1, role: 'user' },
    { seq: 7, turn: 1, role: 'assistant' },
    { seq: 9, turn: null, role: 'user' },
  ]
  const names = ['message 3', 'message 7', 'message 9', 'message 30'].map((name) => placeOf(name, said))
  expect(names).toEqual(['turn 1, message', 'turn 1, answer', 'message 9', 'message 30'])
})

test('rows are ordered by any column, in both directions', () => {
  const rows = sentRows(context, null, [])
  expect(sorted(rows, 'tokens', false)[0]!.name).toBe('billing')
  expect(sorted(rows, 'name', true).map(({ name }) => name)).toEqual([
    'billing',
    'core',
    'Headings and framing',
    'history · message 3',
    'tone',
  ])
  expect(rows.every(({ cost }) => cost === null)).toBe(true)
})
