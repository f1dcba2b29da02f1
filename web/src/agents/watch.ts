/**
 * Watch an agent: its files, what is wrong with them, its tool servers and its index.
 *
 * Only what happens after the stream has begun is told, so a view of an agent reads it then. Browsers allow a
 * server only a few streams, of all tabs together; so a hidden tab has none until it is shown again.
 */

import { address } from '../api/call.ts'
import { OPERATIONS, type AgentEvent } from '../api/schema.ts'

const TYPES: AgentEvent['type'][] = ['agent.files', 'agent.problems', 'agent.server', 'agent.indexing', 'agent.deleted']

export interface Listener {
  /** From now on everything is told; nothing of what was before. `again`: it was told before that, with a gap since. */
  onBegin(again: boolean): void
  onTold(told: AgentEvent): void
  /** Nothing can be told. */
  onRefused(): void
}

/** Watch until the returned function is called. */
export function watchAgent(agent: string, listener: Listener): () => void {
  let events: EventSource | null = null
  let before = false

  function look(): void {
    if (document.visibilityState !== 'visible') return end()
    if (events) return
    events = new EventSource(address(OPERATIONS.watch_agent[1], { agent }))
    events.onopen = () => {
      listener.onBegin(before)
      before = true
    }
    events.onerror = () => {
      if (events?.readyState !== EventSource.CLOSED) return
      events = null
      listener.onRefused()
    }
    for (const type of TYPES)
      events.addEventListener(type, (event) =>
        listener.onTold(JSON.parse((event as MessageEvent<string>).data) as AgentEvent),
      )
  }

  function end(): void {
    events?.close()
    events = null
  }

  document.addEventListener('visibilitychange', look)
  look()
  return () => {
    document.removeEventListener('visibilitychange', look)
    end()
  }
}
