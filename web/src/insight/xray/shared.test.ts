import { expect, test } from 'vitest'
import type { SharedSession } from '../../api/schema.ts'
import { answersOf, readFile } from './shared.ts'

const usage = { input_tokens: 10, output_tokens: 1, cache_read_tokens: 2, cache_write_tokens: 0 }
const view = (number: number, turn: number | null) => ({ number, turn, usage, cost_usd: '0.5' })
const call = (number: number, turn: number | null, same: number, text: string | null) => ({
  record: { call: view(number, turn), body: null },
  same,
  text,
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
  calls: [call(1, 1, 0, 'a🫖bc'), call(2, null, 0, null), call(3, 1, 3, 'd')],
  comparisons: [{ before: { number: 1 }, after: { number: 3 } }],
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
    usage: { input_tokens: 20, output_tokens: 2, cache_read_tokens: 4, cache_write_tokens: 0 },
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

test('neighbouring calls can be compared, and others are refused with a reason', () => {
  const { id, answer } = answersOf(file)
  const compare = (after: number) =>
    answer('compare_calls', { path: { session_id: id, number: 1 }, query: { with: after } })

  expect(compare(3)).toEqual(file.comparisons[0])
  expect(() => compare(2)).toThrow('only calls that follow one another')
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
