import { expect, test } from 'vitest'
import { costText, dollars } from './money.ts'

test.each([
  [null, 'no known price'],
  ['0', '$0'],
  ['0.00000123', '< $0.0001'],
  ['0.001234', '$0.0012'],
  ['12.345', '$12.35'],
])('%s dollars are read as %s', (cost, text) => {
  expect(dollars(cost)).toBe(text)
})

test('a known cost of nothing is free, unless calls are missing in it', () => {
  expect([costText('0'), costText('0.012'), costText('0', 1), costText('0.012', 2)]).toEqual([
    'free',
    '$0.012',
    '$0 (1 call unknown)',
    '$0.012 (2 calls unknown)',
  ])
})
