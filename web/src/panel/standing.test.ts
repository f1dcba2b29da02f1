import { expect, test } from 'vitest'
import { standing } from './standing.ts'

const TOOL = { type: 'tool', known: undefined, sent: undefined, server: null, listed: true } as const
const RULE = { ...TOOL, type: 'rule' } as const

test('a tool whose server is on its way is not taken for one that is gone', () => {
  expect(standing(TOOL)).toBe('')
  expect(
    standing({
      ...TOOL,
      server: { state: 'connecting', error: '' },
      sent: { status: 'missing', reason: 'no longer in the agent' },
    }),
  ).toBe('Its server is starting')
  expect(standing({ ...TOOL, server: { state: 'failed', error: 'no such program' } })).toBe(
    'Its server is not available: no such program',
  )
  expect(standing({ ...TOOL, server: { state: 'disabled', error: '' } })).toBe('Its server is switched off')
  expect(standing({ ...TOOL, server: { state: 'ready', error: '' } })).toBe('No longer in the agent')
})

test('what the next request says counts, and an item that is in neither list is gone', () => {
  expect(standing({ ...RULE, sent: { status: 'used', reason: 'in every session' } })).toBe('')
  expect(standing({ ...RULE, sent: { status: 'disabled', reason: 'disabled by the agent' } })).toBe(
    'disabled by the agent',
  )
  expect(standing(RULE)).toBe('No longer in the agent')
  expect(standing({ ...RULE, listed: false })).toBe('')
})
