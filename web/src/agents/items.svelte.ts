/** What an agent makes available, read when somebody first asks and again when it may have changed. */

import { call } from '../api/call.ts'
import type { AgentSummary, ItemView } from '../api/schema.ts'

class Agents {
  list: AgentSummary[] = $state.raw([])
  loaded = $state(false)
  #items: Record<string, ItemView[]> = $state.raw({})

  async load(): Promise<void> {
    this.list = (await call('list_agents', {})).agents
    this.loaded = true
  }

  /** The items of an agent as last read; nothing before `loadItems` has ended. */
  items(agent: string): ItemView[] {
    return this.#items[agent] ?? []
  }

  async loadItems(agent: string): Promise<void> {
    const { items } = await call('list_agent_items', { path: { agent } })
    this.#items = { ...this.#items, [agent]: items }
  }
}

export const agents = new Agents()
