import { expect, test } from 'vitest'
import { completed, matching, mentionAt, type Mentionable } from './mentions.ts'

const item = (type: 'rule' | 'reference' | 'tool', name: string, description = '', enabled = true): Mentionable => ({
  type,
  name,
  title: '',
  description,
  enabled,
})
const ITEMS = [
  item('rule', 'tone'),
  item('reference', 'photo-upload', 'uploading'),
  item('reference', 'upload'),
  item('tool', 'upload'),
  item('rule', 'uploads-off', '', false),
]

test.each([
  ['@', 1, { start: 0, end: 1, query: '' }],
  ['see @ref', 8, { start: 4, end: 8, query: 'ref' }],
  ['(@rule:to', 9, { start: 1, end: 9, query: 'rule:to' }],
  ['a@b.org', 7, null],
  ['@tone done', 10, null],
  ['no', 2, null],
])('%j with the caret at %i names %j', (text, caret, mention) => {
  expect(mentionAt(text, caret)).toEqual(mention)
})

test('what is offered can be named, is enabled, and begins so before it holds so', () => {
  expect(matching(ITEMS, 'upload').map(({ name }) => name)).toEqual(['upload', 'photo-upload'])
  expect(matching(ITEMS, 'rule:').map(({ name }) => name)).toEqual(['tone'])
  expect(matching(ITEMS, 'nothing')).toEqual([])
})

test('a completed mention keeps the rest of the message', () => {
  const text = 'see @to, please'
  expect(completed(text, mentionAt(text, 7)!, ITEMS[0]!)).toEqual({ text: 'see @rule:tone, please', caret: 14 })
  expect(completed('@', { start: 0, end: 1, query: '' }, ITEMS[0]!)).toEqual({ text: '@rule:tone ', caret: 11 })
})
