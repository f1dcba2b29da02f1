/** What became of a turn's items since: compared with the agent now, and asked for where that does not tell. */

import { call } from '../api/call.ts'
import type { ContextItem, ItemView, SentItem } from '../api/schema.ts'
import { builtIn } from '../context/drafted.ts'
import { refKey } from '../context/items.ts'

export type Later = { since: SentItem['changed_since']; description: string }

export const MARKS: Record<SentItem['changed_since'], string> = {
  unchanged: '',
  changed: 'Edited since this turn',
  deleted: 'Deleted since this turn',
  unknown: '',
}

export async function laterOf(
  session: string,
  turn: number,
  items: readonly ContextItem[],
  now: readonly ItemView[],
): Promise<Map<string, Later>> {
  const known = new Map(now.map((item) => [refKey(item), item]))
  const found = await Promise.all(
    items.map(async (item): Promise<[string, Later]> => {
      const key = refKey(item)
      const current = known.get(key)
      if (current)
        return [
          key,
          {
            since: !item.hash || item.hash === current.hash ? 'unchanged' : 'changed',
            description: current.description,
          },
        ]
      return [key, await asked(session, turn, item)]
    }),
  )
  return new Map(found)
}

async function asked(session: string, turn: number, item: ContextItem): Promise<Later> {
  const { type, name, server } = item
  const path = { session_id: session, turn, type, name }
  try {
    const { definition, changed_since } = await call('read_sent_item', { path, query: server ? { server } : {} })
    const description = typeof definition?.description === 'string' ? definition.description : ''
    // Tools of the product itself are no agent's, so no agent can have deleted them.
    return { since: builtIn(item) ? 'unchanged' : changed_since, description }
  } catch {
    return { since: 'unknown', description: '' }
  }
}
