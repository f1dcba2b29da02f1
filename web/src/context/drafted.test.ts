import { expect, test } from 'vitest'
import type { CarriedItem, Candidate, ContextItem } from '../api/schema.ts'
import { drafted, leftOutText } from './drafted.ts'

const evidence = (score: number | null) =>
  score === null ? null : { score, meaning: null, words: null, rank: null, passage: null, cut_off: null, floor: null }
const item = (
  name: string,
  include_mode: ContextItem['include_mode'],
  score: number | null = null,
  server: string | null = null,
): ContextItem => ({
  type: server ? 'tool' : 'rule',
  name,
  server,
  include_mode,
  status: 'used',
  reason: '',
  tokens: 0,
  hash: null,
  version: '',
  priority: null,
  evidence: evidence(score),
  offered_name: null,
  found: null,
  since: null,
})
const left = (name: string, score: number | null): Candidate => ({
  type: 'rule',
  name,
  server: null,
  reason: '',
  code: '',
  evidence: evidence(score),
})

test('a draft shows what it alone brings in: names first, then scores, without what every request has', () => {
  const items = [
    item('held', 'always'),
    item('low', 'agent', 0.3),
    item('named', 'manual'),
    item('high', 'agent', 0.9),
    item('set', 'always', null, 'windowpane'),
  ]
  const carried = [{ type: 'rule', name: 'still-there', server: null } as CarriedItem]
  const candidates = [left('still-there', 0.1), left('unmeasured', null), left('far', 0.01), left('near', 0.19)]

  const found = drafted({ items, candidates, carried }, [
    { ref: { type: 'rule', name: 'held', server: null }, mode: 'always' },
  ] as never)

  expect(found.selected.map(({ name }) => name)).toEqual(['named', 'high', 'low'])
  expect(found.leftOut.map(({ name }) => name)).toEqual(['near', 'far', 'unmeasured'])
  expect(leftOutText({ candidates, carried })).toBe('3 considered, not selected')
  // Manual items are left out too, and no selection has considered them.
  expect(leftOutText({ candidates: [], carried })).toBe('why, and what can be done')
})
