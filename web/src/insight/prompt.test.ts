import { expect, test } from 'vitest'
import { blocksOf, matchesIn, sameBefore } from './prompt.ts'

const message = (part: string, content: string, more: object = {}) =>
  ({ role: 'system', part, name: '', content, tool_calls: [], tool_call_id: null, is_error: false, ...more }) as never
const RULES = '# Rules\n\nFollow every rule.\n\n## tone\n\nBe kind.\n\n## not an item\n\n## style\n\nBe brief.'
const SELECTED =
  '[[context 1]]\n# Rules\n\n## late\n\nLate.\n\n# References\n\n## tone: How to sound\n\nOther.\n[[end 1]]'
const context = {
  items: [
    { type: 'rule', name: 'tone', tokens: 5 },
    { type: 'rule', name: 'style', tokens: 6 },
    { type: 'rule', name: 'late', tokens: 7 },
    { type: 'tool', name: 'list', offered_name: 'notes__list', tokens: 9 },
  ],
  carried: [{ type: 'reference', name: 'tone', tokens: 8 }],
  parts: [{ kind: 'core', name: 'core', tokens: 3 }],
} as never
const tools = [{ offered_name: 'notes__list', description: 'Lists.', parameters: {} }] as never

test('a prompt is cut into blocks of owners, and nothing of it is lost', () => {
  const messages = [
    message('core', 'You are Pane.', { name: 'core' }),
    message('rules', RULES),
    message('selected', SELECTED, { name: 'turn 1' }),
  ]
  const blocks = blocksOf(messages, tools, context)

  expect(blocks.map(({ heading, group, tokens }) => [heading, group, tokens])).toEqual([
    ['Core', 'system', 3],
    ['Rules', 'rules', null],
    ['tone', 'rules', 5],
    ['style', 'rules', 6],
    ['Selected · turn 1 · rules', 'rules', null],
    ['late', 'rules', 7],
    ['Selected · turn 1 · references', 'references', null],
    ['tone', 'references', 8],
    ['notes__list', 'tools', 9],
  ])
  expect(
    blocks
      .slice(1, 4)
      .map(({ text }) => text)
      .join(''),
  ).toBe(RULES)
  expect(
    blocks
      .slice(4, 8)
      .map(({ text }) => text)
      .join(''),
  ).toBe(SELECTED)
})

test('what is as it was in the turn before ends at the first difference', () => {
  const one = blocksOf([message('core', 'a'), message('rules', RULES)], [], context)
  const other = blocksOf([message('core', 'a'), message('rules', RULES.replace('Be brief', 'Be long'))], [], context)

  expect(sameBefore(one, one)).toBe(one.length)
  expect(sameBefore(one, other)).toBe(3)
  expect(sameBefore(one, [])).toBe(0)
})

test('words are found whatever their case', () => {
  expect(matchesIn('A cat, a CAT.', 'cat')).toEqual(['A ', 'cat', ', a ', 'CAT', '.'])
  expect(matchesIn('nothing', 'cat')).toEqual(['nothing'])
})
