import { expect, test } from 'vitest'
import type { Message } from '../context/session.ts'
import { groupsOf } from './groups.ts'

const said = (seq: number): Message => ({ role: 'user', content: `${seq}`, attachments: [], turn: null, seq, at: '' })

test('earlier and later messages leave the groups between them as they are', () => {
  const all = Array.from({ length: 240 }, (_, seq) => said(seq))

  const before = groupsOf(all.slice(75, 175))
  const after = groupsOf(all, before)

  expect(before.map(({ messages }) => messages.length)).toEqual([25, 50, 25])
  expect(after.map(({ messages }) => messages.length)).toEqual([50, 50, 50, 50, 40])
  expect(after.map((group) => before.includes(group))).toEqual([false, false, true, false, false])
  expect(after.flatMap(({ messages }) => messages)).toEqual(all)
})
