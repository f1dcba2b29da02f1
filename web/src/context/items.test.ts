import { expect, test } from 'vitest'
import { badgeText } from '../ui/mode.ts'
import { grouped, summaryLine, threeDigits } from './items.ts'

test('rules and references are ordered by priority and name, tools by server and name', () => {
  const items = [
    { type: 'tool', name: 'b', server: 'x' },
    { type: 'tool', name: 'a', server: 'x' },
    { type: 'tool', name: 'z', server: 'a' },
    { type: 'rule', name: 'later', priority: 500 },
    { type: 'rule', name: 'b', priority: 1 },
    { type: 'rule', name: 'a', priority: 1 },
    { type: 'rule', name: 'gone' },
  ] as const

  expect(grouped(items).map(({ title, items }) => [title, items.map(({ name }) => name)])).toEqual([
    ['Rules', ['a', 'b', 'later', 'gone']],
    ['References', []],
    ['Tools', ['z', 'a', 'b']],
  ])
})

test('the summary counts what was sent by mode', () => {
  const some = (
    count: number,
    type: 'rule' | 'reference' | 'tool',
    include_mode: 'always' | 'manual' | 'agent',
    status = 'used',
  ) => Array.from({ length: count }, () => ({ type, include_mode, status }))

  expect(
    summaryLine([
      ...some(2, 'rule', 'always'),
      ...some(3, 'rule', 'agent'),
      ...some(1, 'reference', 'agent'),
      ...some(1, 'reference', 'manual'),
      ...some(3, 'tool', 'manual'),
    ]),
  ).toBe('5 rules (3 agent, 2 always), 2 references (1 agent, 1 manual), 3 tools (all manual)')
  expect(summaryLine([...some(1, 'rule', 'always'), ...some(2, 'tool', 'agent', 'over_budget')])).toBe(
    '1 rule (always); 2 not sent',
  )
  expect(summaryLine([])).toBe('no items')
})

test('priorities have three digits and badges their score two decimals', () => {
  expect([threeDigits(1), threeDigits(999)]).toEqual(['001', '999'])
  expect([badgeText('always'), badgeText('agent', 0.866), badgeText('manual', 1)]).toEqual([
    'Always',
    'Agent - 0.87',
    'Manual',
  ])
})
