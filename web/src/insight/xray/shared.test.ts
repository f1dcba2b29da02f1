import { expect, test } from 'vitest'
import type { SharedSession } from '../../api/schema.ts'
import { answersOf, readFile } from './shared.ts'

const usage = {
  input_tokens: 10,
  output_tokens: 1,
  cache_read_tokens: 2,
  cache_write_tokens: 0,
  cache_write_1h_tokens: 0,
}
const view = (number: number, turn: number | null) => ({ number, turn, usage, cost_usd: '0.5' })
const part = (kind: string, name: string, tokens: number) => ({ kind, name, tokens })
const call = (number: number, turn: number | null, same: number, text: string | null, ...said: [object, number][]) => ({
  record: { call: view(number, turn), body: null, parts: said.map(([one]) => one) },
  same,
  text,
  read: said.map(([, place], at) => ({ part: at, text: place })),
})
const file = {
  format: 'windowpane.share',
  version: 1,
  session: { id: 'ses_1', open_turn: {} },
  messages: [{ role: 'user' }],
  report: {
    calls: [{ call: view(1, 1) }, { call: view(2, null) }, { call: view(3, 1) }],
    together: { usage },
    cache: 'c',
  },
  calls: [
    call(1, 1, 0, 'a🫖bc', [part('tool', 'find', 5), 0], [part('system', 'Style', 4), 1], [part('user', '', 1), 2]),
    call(2, null, 0, null),
    call(3, 1, 3, 'd', [part('tool', 'find', 5), 0], [part('system', 'Style', 6), 3], [part('reply', '', 2), 4]),
  ],
  texts: [
    'find',
    'Be brief.\nBe plain.\nBe kind.\nBe on time.',
    'Hello',
    'Be brief.\nBe clear.\nBe kind.\nBe on time.',
    'Hi',
  ],
} as unknown as SharedSession

function sharedIn(text: string): SharedSession {
  const found = readFile(text)
  if (found.kind !== 'share') throw new Error('not a share file')
  return found.shared
}

test('a file answers for its session alone', () => {
  const { id, answer } = answersOf(sharedIn(JSON.stringify(file)))
  const path = { session_id: id }

  expect(answer('read_session', { path: { session_id: 'ses_1' } })).toBeUndefined()
  expect(answer('read_session', { path })).toEqual({ id: 'shared:ses_1', open_turn: null })
  expect(answer('list_messages', { path })).toEqual({ messages: [{ role: 'user' }], before: null })
  expect(answer('get_session_cache', { path })).toBe('c')
  expect(answer('list_calls', { path: { ...path, turn: 1 } })).toEqual({
    calls: [view(1, 1), { ...view(3, 1), number: 2 }],
    usage: {
      input_tokens: 20,
      output_tokens: 2,
      cache_read_tokens: 4,
      cache_write_tokens: 0,
      cache_write_1h_tokens: 0,
    },
    cost_usd: '1',
    without_usage: 0,
    without_price: 0,
  })
  expect(() => answer('delete_session', { path })).toThrow('This is not in the file.')
})

test('bodies are put together from what is new in each', () => {
  const { id, answer } = answersOf(file)
  const body = (number: number) => answer('get_session_call', { path: { session_id: id, number } })

  expect([1, 2, 3].map((number) => (body(number) as { body: string | null }).body)).toEqual(['a🫖bc', null, 'a🫖bd'])
  expect(answer('get_call', { path: { session_id: id, turn: 1, number: 2 } })).toEqual(body(3))
})

test('any two calls are compared, part by part', () => {
  const { id, answer } = answersOf(file)
  const compare = (before: number, after: number) =>
    answer('compare_calls', { path: { session_id: id, number: before }, query: { with: after } })

  expect(compare(1, 3)).toEqual({
    before: view(1, 1),
    after: view(3, 1),
    before_tokens: 10,
    after_tokens: 13,
    same_bytes: 6,
    same_tokens: 5,
    changes: [
      {
        kind: 'system',
        name: 'Style',
        happened: 'changed',
        tokens: 2,
        diff: '@@ -1,4 +1,4 @@\n Be brief.\n-Be plain.\n+Be clear.\n Be kind.\n Be on time.',
      },
      { kind: 'reply', name: '', happened: 'entered', tokens: 2, diff: '@@ -0,0 +1 @@\n+Hi' },
      { kind: 'user', name: '', happened: 'left', tokens: -1, diff: '@@ -1 +0,0 @@\n-Hello' },
    ],
    tokens_by_kind: { system: 2, user: -1, reply: 2 },
  })
  expect(compare(3, 3)).toMatchObject({ same_bytes: 6 + 1, same_tokens: 13, changes: [], tokens_by_kind: {} })
  expect(() => compare(1, 4)).toThrow('This is not in the file.')
})

test('an export is told apart, with what it holds', () => {
  const events = [
    { type: 'session.created', agent: 'guide', name: 'First name' },
    { type: 'turn.started', turn: 1 },
    { type: 'session.updated', changes: { name: 'Albums' } },
    { type: 'turn.started', turn: 2 },
  ].map((event, index) => ({ seq: index + 1, at: '', event }))
  const text = JSON.stringify({ format: 'windowpane.session', version: 1, exported_at: '2026-01-02T03:04:05Z', events })

  expect(readFile(text)).toEqual({
    kind: 'export',
    about: { name: 'Albums', agent: 'guide', turns: 2, at: '2026-01-02T03:04:05Z' },
  })
})

test('another file is refused with a next step', () => {
  expect(() => readFile('{')).toThrow('it is not JSON, or only the beginning of it. Take the file that “Export”')
  expect(() => readFile('null')).toThrow('it is something else')
  expect(() => readFile('{"format": "windowpane.session", "version": 2}')).toThrow(
    'A newer Windowpane wrote this file (its format is 2, this one reads 1). Update',
  )
})
