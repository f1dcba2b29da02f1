import { expect, test } from 'vitest'
import type { CacheReport, PrefixBreak } from '../../api/schema.ts'
import { breakText, cacheText, collapseText } from './cache.ts'

const BROKE: PrefixBreak = {
  at: 'system block 1',
  item: 'rule:tone',
  kind: 'edited',
  reason: 'its text changed',
  since: 1,
  before: 'Be brief.',
  after: 'Be polite.',
  lost_tokens: 2961,
  cost_usd: '0.026649',
}

test('a break names the item, the block, the reason and the cost', () => {
  expect(breakText(BROKE)).toBe(
    'The prefix broke at rule:tone (system block 1), because its text changed: 2,961 tokens billed again, $0.027.',
  )
  expect(breakText({ ...BROKE, item: null, cost_usd: null })).toBe(
    'The prefix broke at system block 1, because its text changed: 2,961 tokens billed again, cost unknown.',
  )
})

test('a collapse says how much is missing, and why that may be', () => {
  expect(collapseText({ missing_tokens: 2001, reason: 'the provider dropped it early', cost_usd: '0.5' })).toBe(
    'The cache collapsed: 2,001 tokens fewer than expected, $0.50; the provider dropped it early.',
  )
})

test('a session without a break says only what was read, written and paid in full', () => {
  const report: CacheReport = {
    calls: [],
    read_tokens: 1000,
    written_tokens: 0,
    plain_tokens: 20,
    lost_tokens: 0,
    lost_usd: null,
    blamed: [],
  }

  expect(cacheText(report)).toBe('1,000 tokens read from the cache, 0 written, 20 plain')
  expect(cacheText({ ...report, lost_tokens: 128, lost_usd: '0.01' })).toBe(
    '1,000 tokens read from the cache, 0 written, 20 plain; 128 tokens billed again, $0.010',
  )
})
