import { expect, test } from 'vitest'
import { changes, recorded, withSettings } from './whatif.ts'

const preset = { enabled: true, top_k: 20, top_n: 5, include_score: 0.7, floor: 0.2, share_of_best: 0.6 }

test('only what differs from the turn is asked for', () => {
  const was = recorded({ text: preset, tools: preset, deadline_s: 1 })!
  const now = withSettings(was, { text: { floor: 0.05, top_k: 3 }, other: { floor: 1 } })

  expect(changes(was, now)).toEqual({ text: { floor: 0.05 } })
  expect(changes(was, { ...was, tools: { ...was.tools, top_n: NaN } })).toEqual({})
})

test('a record that does not say its settings has none to change', () => {
  expect([recorded({}), recorded({ text: preset })]).toEqual([null, null])
})
