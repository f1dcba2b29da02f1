import { expect, test } from 'vitest'
import { marked } from './marked.ts'

test('words are marked from their beginning, whatever their case', () => {
  expect(marked('Billing of a rebill', ['bill'])).toEqual([
    { text: 'Bill', found: true },
    { text: 'ing of a rebill', found: false },
  ])
  expect(marked('Übermut', ['über', 'x'])).toEqual([
    { text: 'Über', found: true },
    { text: 'mut', found: false },
  ])
})

test('words without spaces between them are marked anywhere', () => {
  expect(marked('东京的天气', ['天气'])).toEqual([
    { text: '东京的', found: false },
    { text: '天气', found: true },
  ])
})

test('a text without the words, or with signs in them, stays whole', () => {
  expect(marked('a (b', [])).toEqual([{ text: 'a (b', found: false }])
  expect(marked('', ['x'])).toEqual([{ text: '', found: false }])
  expect(marked('c++', ['c+'])).toEqual([
    { text: 'c+', found: true },
    { text: '+', found: false },
  ])
})
