import { expect, test } from 'vitest'
import { lossText, partName, partTitle, useOf, wasteOf } from './kinds.ts'

const share = (kind: 'tool' | 'skills' | 'mcp' | 'setting', tokens: number) => ({
  kind,
  parts: 1,
  bytes: 4 * tokens,
  tokens,
  cost_usd: null,
})

test('kinds of one colour are one share, and settings without tokens are none', () => {
  expect(useOf([share('tool', 60), share('skills', 5), share('mcp', 15), share('setting', 0)], 1000)).toEqual({
    shares: [
      { group: 'tools', title: 'Tools', tokens: 60 },
      { group: 'references', title: 'Skills and MCP', tokens: 20 },
    ],
    used: 80,
    reply: 0,
    window: 1000,
    room: 920,
  })
})

test('a window that is not known is as large as what is sent', () => {
  const use = useOf([share('tool', 60)], null)
  expect([use.window, use.room]).toEqual([60, 0])
})

test('what is of no use is said in words', () => {
  const tool = { server: '', bytes: 9, tokens: 7, session_tokens: 21 }
  expect(
    wasteOf({
      tools: [
        { ...tool, name: 'Read', calls: 2 },
        { ...tool, name: 'Write', calls: 0 },
      ],
      stale: [{ tool: 'Read', subject: '/a.txt', reads: 3, tokens: 14 }],
      repeated: [{ kind: 'reminder', name: '', copies: 2, tokens: 1 }],
    }),
  ).toEqual({
    unused: '1 of 2 tools never called: 7 tokens in each call, 21 in the session.',
    stale: ['Read /a.txt: read 3 times, 14 tokens of old results.'],
    repeated: ['Reminder: 2 copies, 1 token more than one takes.'],
  })
  expect(wasteOf({ tools: [], stale: [], repeated: [] })).toEqual({ unused: '', stale: [], repeated: [] })
})

test('a part without a name has that of its kind', () => {
  expect(partName({ kind: 'message', name: '' })).toBe('User message')
})

test('what was lost is said with its reasons', () => {
  expect(lossText({ full: 2, store: 1 })).toBe(
    '3 calls passed on and not recorded since the server started (2: too much was waiting; 1: the store did not take them).',
  )
  expect(lossText({})).toBe('')
})

test('a part is told by its kind and its name, and not twice by the same word', () => {
  expect(partTitle({ kind: 'call', name: 'Read' })).toBe('Tool call Read')
  expect(partTitle({ kind: 'reply', name: '' })).toBe('Reply')
  expect(partTitle({ kind: 'skills', name: 'skills' })).toBe('Skills')
})
