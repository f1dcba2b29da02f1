import { expect, test } from 'vitest'
import type { ContextItem, Part } from '../api/schema.ts'
import { percent, tokensText, windowUse } from './parts.ts'

const part = (kind: Part['kind'], tokens: number): Part => ({
  kind,
  name: '',
  tokens,
  hash: null,
  status: 'used',
  reason: '',
  evidence: null,
})
const item = (type: ContextItem['type'], tokens: number): ContextItem => ({
  type,
  name: type,
  server: null,
  include_mode: 'agent',
  status: 'used',
  reason: '',
  tokens,
  hash: null,
  version: '',
  priority: null,
  evidence: null,
  offered_name: null,
  found: null,
  since: null,
})
const budget = {
  window_tokens: 1000,
  reply_tokens: 100,
  used_tokens: 0,
  window_source: '',
  pieces_tokens: null,
  token_factor: 1,
}

test('parts are put together in the groups that people know, and what is selected counts as what it is', () => {
  const parts = [
    part('core', 10),
    part('override', 5),
    part('rules', 20),
    part('history', 7),
    part('history', 8),
    part('selected', 40),
    part('message', 9),
    part('tools', 100),
  ]

  const use = windowUse({ parts, items: [item('rule', 10), item('reference', 30)], budget })

  expect(use.shares.map(({ title, tokens }) => [title, tokens])).toEqual([
    ['System', 15],
    ['Rules', 30],
    ['References', 30],
    ['Tools', 100],
    ['History', 15],
    ['Message', 9],
  ])
  expect([use.used, use.room, use.reply, use.window]).toEqual([199, 701, 100, 1000])
})

test('no part of a request is missing in its window: files go with their message, added tools with the tools', () => {
  const parts = [part('attached', 70), part('additions', 6), part('sources', 5), part('message', 9)]

  const use = windowUse({ parts, items: [], budget })

  expect(use.shares.map(({ title, tokens }) => [title, tokens])).toEqual([
    ['Tools', 6],
    ['History', 5],
    ['Message', 79],
  ])
  expect(use.used).toBe(90)
})

test('without its message a request takes what any message would find taken', () => {
  const parts = [part('core', 10), part('selected', 40), part('recall', 3), part('attached', 7), part('message', 9)]

  const use = windowUse({ parts, items: [], budget }, { withMessage: false })

  expect([use.shares, use.used]).toEqual([[{ group: 'system', title: 'System', tokens: 10 }], 10])
})

test('a request that is larger than its window leaves no room, and counts are read as words', () => {
  expect(windowUse({ parts: [part('core', 5000)], items: [], budget }).room).toBe(0)
  expect([tokensText(1), tokensText(1234), percent(0, 10), percent(1, 1000), percent(1, 4)]).toEqual([
    '1 token',
    '1,234 tokens',
    '0%',
    'under 1%',
    '25%',
  ])
})
