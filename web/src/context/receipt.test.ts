import { expect, test } from 'vitest'
import type { TurnReceipt } from '../api/schema.ts'
import { receiptLine, shortScore, tokensOf, useOf } from './receipt.ts'

const item = (type: 'rule' | 'reference' | 'tool', name: string, more: Partial<TurnReceipt['items'][number]> = {}) => ({
  type,
  name,
  server: null,
  include_mode: 'always' as const,
  score: null,
  tokens: 10,
  sent: true,
  carried: false,
  ...more,
})
const receipt: TurnReceipt = {
  turn: 4,
  at: '2026-01-01T00:00:00Z',
  outcome: 'completed',
  model: 'openai:gpt-4o',
  context_tokens: 1900,
  window_tokens: 128000,
  reply_tokens: 4096,
  parts: [
    { kind: 'core', tokens: 100 },
    { kind: 'selected', tokens: 40 },
  ],
  items: [
    item('rule', 'tone'),
    item('rule', 'style'),
    item('reference', 'include-modes', { include_mode: 'agent', score: 0.789 }),
    item('reference', 'agent-folder', { include_mode: 'agent', score: 0.94 }),
    item('tool', 'read', { server: 'notes' }),
    item('tool', 'gone', { server: 'notes', sent: false }),
  ],
  left_out: 6,
  summarised: false,
  degraded: false,
  calls: 1,
  usage: {
    input_tokens: 1938,
    output_tokens: 20,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cache_write_1h_tokens: 0,
  },
  cost_usd: '0.0052',
  input_cost_usd: '0.005',
  without_usage: 0,
  without_price: 0,
  built_in: 0,
  duration_ms: 900,
}

test('a receipt says in one line what was sent, what it cost and what is new', () => {
  expect(receiptLine(receipt, { ...receipt, turn: 3, context_tokens: 1276 }).join(' · ')).toBe(
    '1,938 tokens · $0.0052 · 2 rules · 2 references (agent-folder .94, include-modes .79) · 1 tool · 7 left out · +624 since turn 3',
  )
})

test('what stands in the prompt since earlier turns is counted apart', () => {
  const items = [item('rule', 'tone'), item('reference', 'billing', { include_mode: 'agent', carried: true })]
  expect(receiptLine({ ...receipt, items }, null).join(' · ')).toBe(
    '1,938 tokens · $0.0052 · 1 rule · 1 from earlier turns · 6 left out',
  )
  expect(useOf({ ...receipt, items }).shares.map(({ group, tokens }) => [group, tokens])).toEqual([
    ['system', 100],
    ['references', 40],
  ])
})

test('what is unknown is not told as if it were known', () => {
  const open = { ...receipt, calls: 1, without_usage: 1, cost_usd: null }
  expect(tokensOf(open)).toBe(1900)
  expect(receiptLine(open, null)[1]).toBe('2 rules')
  expect(receiptLine({ ...receipt, calls: 3, without_price: 1 }, null).slice(0, 2)).toEqual([
    '1,938 tokens in 3 calls',
    '$0.0052 (1 call unknown)',
  ])
  expect([shortScore(1), shortScore(0.07)]).toEqual(['1.0', '.07'])
})

test('a turn of a built-in model is free, by our own count of its tokens', () => {
  const answered = { ...receipt, calls: 1, built_in: 1, usage: { ...receipt.usage, input_tokens: 0 }, cost_usd: '0' }
  const searched = { ...answered, calls: 2, usage: { ...receipt.usage, input_tokens: 12 }, cost_usd: '0.0052' }
  expect(receiptLine(answered, null).slice(0, 2)).toEqual(['1,900 tokens', 'free'])
  expect(receiptLine(searched, null).slice(0, 2)).toEqual(['1,900 tokens, 2 calls', '$0.0052'])
})

test('the bar of a receipt has the parts of the window', () => {
  expect(useOf(receipt).shares.map(({ group, tokens }) => [group, tokens])).toEqual([
    ['system', 100],
    ['references', 40],
  ])
})
