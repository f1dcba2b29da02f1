import { expect, test } from 'vitest'
import type { CarriedItem, ContextItem } from '../api/schema.ts'
import { contextText } from './text.ts'

const item = (more: Partial<ContextItem> & Pick<ContextItem, 'type' | 'name' | 'include_mode'>): ContextItem => ({
  server: null,
  status: 'used',
  reason: '',
  tokens: 0,
  hash: null,
  version: '',
  priority: null,
  evidence: null,
  offered_name: null,
  found: null,
  since: null,
  ...more,
})

test('a context as text has its groups, and tools with their servers', () => {
  const evidence = { score: 0.848, meaning: null, words: null, rank: 1, passage: null, cut_off: null, floor: null }
  const items = [
    item({ type: 'tool', name: 'query', server: 'database', include_mode: 'agent', evidence }),
    item({ type: 'rule', name: 'Authentication Rules', include_mode: 'always' }),
    item({ type: 'reference', name: 'Guide', include_mode: 'manual', status: 'over_budget' }),
  ]

  const carried = [{ type: 'tool', name: 'drop', server: 'database', turn: 2 } as CarriedItem]

  expect(contextText({ items, carried })).toBe(
    `Context Used: 1 rule (always), 1 tool (agent); 1 not sent

Rules (1):
• Authentication Rules [Always]

References (1):
• Guide [Manual] (over budget)

Tools (1):
• database:query [Agent - 0.85]

From earlier turns (1):
• database:drop [since turn 2]`,
  )
})
