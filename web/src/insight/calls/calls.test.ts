import { expect, test } from 'vitest'
import type { CallList, CallView, Usage, WireSpan } from '../../api/schema.ts'
import { barsOf, kindsOf, ownersOf, stretchesOf, timeText, togetherText, usageText } from './calls.ts'

const BODY = '{"model":"m","messages":["Grüße 👋🏽","Tone"]}'
const span = (start: number, end: number, kind: WireSpan['kind'], owner: string): WireSpan => ({
  start,
  end,
  kind,
  owner,
})
const SPANS = [
  span(0, 1, 'mapping', 'JSON'),
  span(1, 12, 'setting', 'model'),
  span(12, 25, 'mapping', 'JSON'),
  span(25, 35, 'message', 'message'),
  span(35, 36, 'mapping', 'JSON'),
  span(36, 42, 'item', 'rule:tone'),
  span(42, 44, 'mapping', 'JSON'),
]
const used = (input: number, output: number, cached = 0): Usage => ({
  input_tokens: input,
  output_tokens: output,
  cache_read_tokens: cached,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
})
const listed = (count: number, more: Partial<CallList>): CallList => ({
  calls: Array<CallView>(count).fill({ usage: null, outcome: 'complete' } as CallView),
  usage: used(0, 0),
  cost_usd: null,
  without_usage: 0,
  without_price: 0,
  ...more,
})

test('a body is cut by characters, also where a character takes two places', () => {
  const stretches = stretchesOf(BODY, SPANS)

  expect(stretches).toEqual([
    { text: '{', kind: 'mapping', owner: 'JSON' },
    { text: '"model":"m"', kind: 'setting', owner: 'model' },
    { text: ',"messages":[', kind: 'mapping', owner: 'JSON' },
    { text: '"Grüße 👋🏽"', kind: 'message', owner: 'message' },
    { text: ',', kind: 'mapping', owner: 'JSON' },
    { text: '"Tone"', kind: 'item', owner: 'rule:tone' },
    { text: ']}', kind: 'mapping', owner: 'JSON' },
  ])
  expect(stretches.map(({ text }) => text).join('')).toBe(BODY)
})

test('the owners of a body have all of its bytes', () => {
  const owners = ownersOf(stretchesOf(BODY, SPANS))

  expect(owners).toEqual([
    { kind: 'message', owner: 'message', bytes: 18 },
    { kind: 'mapping', owner: 'JSON', bytes: 17 },
    { kind: 'setting', owner: 'model', bytes: 11 },
    { kind: 'item', owner: 'rule:tone', bytes: 6 },
  ])
  expect(kindsOf(owners)).toEqual([
    { kind: 'message', title: 'Message', bytes: 18 },
    { kind: 'item', title: 'Item', bytes: 6 },
    { kind: 'setting', title: 'Setting', bytes: 11 },
    { kind: 'mapping', title: 'Client library', bytes: 17 },
  ])
  expect(owners.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(new TextEncoder().encode(BODY).length)
})

test('a sum says how many calls are unknown, and what is unknown is never nothing', () => {
  expect(togetherText(listed(0, {}))).toBe('none recorded')
  expect(togetherText(listed(1, { without_usage: 1 }))).toBe('1 call · tokens unknown · cost unknown')
  expect(togetherText(listed(2, { usage: used(3900, 40), without_price: 2 }))).toBe(
    '2 calls · 3,900 tokens in, 40 out · cost unknown',
  )
  expect(
    togetherText(listed(4, { usage: used(3900, 40), cost_usd: '0.012', without_usage: 1, without_price: 1 })),
  ).toBe('4 calls · 3,900 tokens in, 40 out (1 call unknown) · $0.012 (2 calls unknown)')
})

test('a call says what was reported for it', () => {
  const outcome = 'complete'
  expect(usageText({ usage: null, outcome })).toBe('tokens unknown')
  expect(usageText({ usage: used(1761, 32), outcome })).toBe('1,761 in, 32 out')
  expect(usageText({ usage: used(1761, 32, 1024), outcome })).toBe('1,761 in (1,024 cached), 32 out')
  expect(usageText({ usage: used(0, 32), outcome })).toBe('unknown in, 32 out')
  expect(usageText({ usage: used(1761, 0), outcome, output_unknown: true })).toBe('1,761 in, unknown out')
  expect(usageText({ usage: used(1761, 0), outcome })).toBe('1,761 in, 0 out')
})

test('a call that runs is running, and not unknown', () => {
  const call = { usage: null, outcome: 'running', duration_ms: null, cost_usd: null } as CallView

  expect([usageText(call), timeText(call)]).toEqual(['running', ''])
  expect(togetherText({ ...listed(1, { without_usage: 1 }), calls: [call] })).toBe('1 call, running')
  expect(timeText({ ...call, outcome: 'error', duration_ms: 3 })).toBe('3 ms · cost unknown')
})

test('a call to a built-in model is in this process and free, with our own count', () => {
  const one = {
    usage: null,
    outcome: 'complete',
    duration_ms: 3,
    cost_usd: '0',
    built_in: true,
    counted_tokens: 1204,
  } as CallView
  const asked = { usage: used(500, 20), outcome: 'complete', cost_usd: '0.012' } as CallView
  const free = { cost_usd: '0', calls: [one, one] }

  expect([usageText(one), timeText(one)]).toEqual(['1,204 in, our count', '3 ms · free'])
  expect(togetherText({ ...listed(2, {}), ...free })).toBe('2 calls in this process · 2,408 in, our count · free')
  expect(togetherText({ ...listed(2, { usage: used(500, 20), cost_usd: '0.012' }), calls: [one, asked] })).toBe(
    '2 calls (1 in this process) · 500 tokens in, 20 out · $0.012',
  )
  const uncounted = { ...one, counted_tokens: null }
  expect(usageText(uncounted)).toBe('')
  expect(togetherText({ ...listed(1, free), calls: [uncounted] })).toBe('1 call in this process · free')
})

test('calls and tools follow one another in time', () => {
  const call = (step: number, at: string, more: object = {}) =>
    ({ step, started_at: at, duration_ms: 400, purpose: 'answer', outcome: 'complete', seen: true, ...more }) as never
  const tool = {
    id: 'a',
    offered_name: 'notes__list',
    arguments: '{}',
    ref: { type: 'tool', name: 'list', server: 'notes' },
  }
  const steps = [
    { tool_calls: [tool], results: [{ call_id: 'a', content: '', is_error: false, latency_ms: 30 }] },
    { tool_calls: [], results: [] },
  ] as never
  const bars = barsOf(
    [call(1, '2026-01-01T00:00:01.000Z'), call(2, '2026-01-01T00:00:02.000Z', { seen: false, duration_ms: 500 })],
    steps,
  )
  expect(bars.map(({ kind, from, ms }) => [kind, from, ms])).toEqual([
    ['call', 0, 400],
    ['tool', 400, 30],
    ['call', 500, 500],
  ])
})
