import { expect, test } from 'vitest'
import { dollars } from './money.ts'

test.each([
  [null, 'no known price'],
  ['0', '$0'],
  ['0.00000123', '< $0.0001'],
  ['0.001234', '$0.0012'],
  ['12.345', '$12.35'],
])('%s dollars are read as %s', (cost, text) => {
  expect(dollars(cost)).toBe(text)
})
