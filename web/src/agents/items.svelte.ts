/** What an agent makes available, read when first asked for and again when it may have changed. */

import { call } from '../api/call.ts'
import type { AgentSummary, ItemView, ServerView } from '../api/schema.ts'
import { toasts } from '../ui/toasts.svelte.ts'
import { watchAgent } from './watch.ts'

class Agents {
  list: AgentSummary[] = $state.raw([])
  loaded = $state(false)
  #items: Record<string, ItemView[]> = $state.raw({})
  #servers: Record<string, Record<string, ServerView | null>> = $state.raw({})
  #changes: Record<string, number> = $state.raw({})
  #asked = 0
  #answered: Record<string, number> = {}

  async load(): Promise<void> {
    this.list = (await call('list_agents', {})).agents
    this.loaded = true
  }

  /** The items of an agent as last read; nothing before `loadItems` has ended. */
  items(agent: string): ItemView[] {
    return this.#items[agent] ?? []
  }

  async loadItems(agent: string): Promise<void> {
    const asked = ++this.#asked
    const { items } = await call('list_agent_items', { path: { agent } })
    // Answers can overtake one another.
    if (asked < (this.#answered[agent] ?? 0)) return
    this.#answered[agent] = asked
    this.#items = { ...this.#items, [agent]: items }
  }

  /** A tool server as last told; null before that, and when the agent has none of that name. */
  server(agent: string, name: string): ServerView | null {
    return this.#servers[agent]?.[name] ?? null
  }

  /** How often the agent became another while it was watched; what depends on it is asked for again when this changes. */
  changes(agent: string): number {
    return this.#changes[agent] ?? 0
  }

  /** Read an agent's items and keep them and its servers current until the returned function is called. */
  watch(agent: string): () => void {
    let read = false
    const begin = async () => {
      await this.loadItems(agent)
      read = true
      if (!this.#complete(agent)) this.#changed(agent)
    }
    return watchAgent(agent, {
      onBegin: (again) => (again ? this.#changed(agent) : void begin().catch(toasts.failed)),
      onRefused: () => void begin().catch(toasts.failed),
      onTold: (told) => {
        if (told.type === 'agent.files') return this.#changed(agent)
        if (told.type !== 'agent.server') return
        const before = this.server(agent, told.name)
        this.#servers = { ...this.#servers, [agent]: { ...this.#servers[agent], [told.name]: told.server } }
        if ((before && before.state !== told.server?.state) || (read && !this.#complete(agent))) this.#changed(agent)
      },
    })
  }

  /** Tell whether the items hold just the tools that the servers are known to have. */
  #complete(agent: string): boolean {
    return Object.entries(this.#servers[agent] ?? {}).every(([name, server]) => {
      const known = this.items(agent)
        .filter((item) => item.server === name)
        .map((item) => item.name)
      return known.sort().join('\n') === (server?.tools ?? []).toSorted().join('\n')
    })
  }

  #changed(agent: string): void {
    this.#changes = { ...this.#changes, [agent]: this.changes(agent) + 1 }
    // What was read before is still worth showing.
    this.loadItems(agent).catch(() => {})
  }
}

export const agents = new Agents()
