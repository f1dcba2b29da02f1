import { expect, test } from 'vitest'
import { hunks, lineDiff, type Line } from './lines.ts'

const written = (lines: readonly Line[]) =>
  lines.map(({ kind, text }) => ({ same: ' ', old: '-', new: '+' })[kind] + text)

test('equal texts differ in no line', () => {
  expect(lineDiff('a\nb\n', 'a\nb\n').every(({ kind }) => kind === 'same')).toBe(true)
  expect(lineDiff('', '')).toEqual([])
})

test('a changed line is one taken away and one added, with its numbers', () => {
  expect(lineDiff('a\nb\nc\n', 'a\nB\nc\n')).toEqual([
    { kind: 'same', text: 'a', before: 1, after: 1 },
    { kind: 'old', text: 'b', before: 2, after: null },
    { kind: 'new', text: 'B', before: null, after: 2 },
    { kind: 'same', text: 'c', before: 3, after: 3 },
  ])
})

test.each([
  ['a\nb\nc\na\nb\nb\na', 'c\nb\na\nb\na\nc'],
  ['', 'a\nb'],
  ['a\nb', ''],
  ['x\ny\nz', 'y\nz\nx'],
  [
    Array.from({ length: 4000 }, (_, n) => `a${n}`).join('\n'),
    Array.from({ length: 4000 }, (_, n) => `b${n}`).join('\n'),
  ],
])('the lines make up both texts again', (before, after) => {
  const lines = lineDiff(before, after)
  const side = (kind: 'old' | 'new') =>
    lines
      .filter((line) => line.kind === 'same' || line.kind === kind)
      .map(({ text }) => text)
      .join('\n')
  expect([side('old'), side('new')]).toEqual([before, after])
})

test('the fewest lines are named', () => {
  const lines = lineDiff('a\nb\nc\na\nb\nb\na', 'c\nb\na\nb\na\nc')
  expect(lines.filter(({ kind }) => kind !== 'same')).toHaveLength(5)
})

test('hunks hold what differs and what is around it, and meet when they are near', () => {
  const before = Array.from({ length: 20 }, (_, n) => `${n + 1}`).join('\n')
  const after = before.replace('\n2\n', '\ntwo\n').replace('\n5\n', '\nfive\n').replace('\n18\n', '\n')
  expect(hunks(lineDiff(before, after), 1).map(written)).toEqual([
    [' 1', '-2', '+two', ' 3', ' 4', '-5', '+five', ' 6'],
    [' 17', '-18', ' 19'],
  ])
})
