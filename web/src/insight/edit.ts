/** One change of a rule or a reference in its agent's folder, made to the file as it is now. */

import { agents } from '../agents/items.svelte.ts'
import { ifMatch } from '../agents/agent.svelte.ts'
import { call } from '../api/call.ts'
import type { ItemEdit, ItemRef } from '../api/schema.ts'

/** `also` is a session that gets the item as well. */
export async function changeItem(
  agent: string,
  ref: ItemRef,
  body: ItemEdit,
  also: string | null = null,
): Promise<void> {
  if (ref.type === 'tool') return
  const path = { agent, type: ref.type, name: ref.name }
  const { revision } = await call('read_agent_item', { path })
  const headers = revision ? ifMatch(revision) : {}
  await call('change_agent_item', { path, query: also ? { also_in: also } : {}, body }, { headers })
  await agents.loadItems(agent)
}
